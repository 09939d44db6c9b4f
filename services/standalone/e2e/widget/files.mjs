// Scenarios of the chat widget: files. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { eventually, write } from '../page.mjs';
import { composer, cors, messageWith, register } from './shared.mjs';

/** Files are dropped, pasted, picked, cancelled, rejected and sent again. */
export async function files({ open, report }) {
  const page = await open();
  await register(page);
  const transfer = (name, type, size) => page.evaluateHandle(([name, type, size]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(size).fill(120)], name, { type }));
    return data;
  }, [name, type, size]);
  const panel = page.locator('.p');

  const dropped = { dataTransfer: await transfer('dropped.txt', 'text/plain', 20) };
  await panel.dispatchEvent('dragenter', dropped);
  await page.getByText('Drop files here to send them').waitFor();
  await panel.dispatchEvent('dragleave', dropped);
  await eventually('the drop hint disappears when the file is dragged away', async () => assert.equal(await page.locator('.drop').count(), 0));
  await panel.dispatchEvent('dragenter', dropped);
  assert.equal(await panel.evaluate((e, dataTransfer) => e.dispatchEvent(new DragEvent('dragover', { dataTransfer, bubbles: true, cancelable: true })), dropped.dataTransfer), false, 'a file may be dropped');
  await panel.dispatchEvent('drop', dropped);
  await page.locator('.staged').getByText('dropped.txt').waitFor();
  assert.equal(await page.locator('.drop').count(), 0);

  const pasted = await transfer('pasted.txt', 'text/plain', 30);
  await composer(page).evaluate((e, clipboardData) => e.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })), pasted);
  await page.locator('.staged').getByText('pasted.txt').waitFor();
  const pick = async (...names) => {
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Attach files' }).click()]);
    await chooser.setFiles(names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(name.startsWith('large') ? 400_000 : 10, 120) })));
  };
  await pick('unwanted.txt');
  await page.getByRole('button', { name: 'Remove unwanted.txt' }).click();
  await write(page, 'two files');
  for (const name of ['dropped.txt', 'pasted.txt']) await page.locator('.mine.t-file').filter({ hasText: name }).waitFor();
  assert.equal(await page.locator('.mine.t-file').filter({ hasText: 'two files' }).count(), 1, 'the text is the caption of one file');
  assert.equal(await page.locator('.mine').filter({ hasText: 'unwanted' }).count(), 0);

  // A slow upload shows its progress and can be cancelled.
  const client = await page.context().newCDPSession(page);
  const limitUpload = (bytes) => client.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: bytes });
  await client.send('Network.enable');
  await limitUpload(40_000);
  await pick('large.txt');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await eventually('the upload shows progress', async () => assert.ok((await page.locator('progress').evaluate((e) => e.value)) > 0));
  await write(page, 'after the file');
  await page.getByRole('button', { name: 'Cancel sending large.txt' }).click();
  await limitUpload(-1);
  await messageWith(page, 'You wrote “after the file”').waitFor();
  assert.equal(await page.locator('.mine').filter({ hasText: 'large.txt' }).count(), 0, 'the cancelled file is removed');

  // A file that the server rejects stays in the chat, even after a reload, until the visitor sends it again.
  const refuse = (route) => (route.request().method() === 'POST' ? route.fulfill({ status: 413, headers: cors, json: { statusCode: 413, code: 'FILE_QUOTA', message: 'no' } }) : route.fallback());
  await page.context().route(/\/message$/, refuse);
  await pick('refused.txt');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('.bad').filter({ hasText: 'refused.txt' }).waitFor();
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => Parley.open());
  await page.locator('.bad').filter({ hasText: 'refused.txt' }).waitFor();
  await page.context().unroute(/\/message$/, refuse);
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.locator('.mine.t-file:not(.pending)').filter({ hasText: 'refused.txt' }).waitFor();
  await messageWith(page, 'I got refused.txt').waitFor();
  assert.equal(await page.locator('.mine').filter({ hasText: 'refused.txt' }).count(), 1, 'the file is shown once');
  await eventually('no file is left in the outbox', async () => assert.deepEqual(await page.evaluate(async () => {
    const [{ name }] = await indexedDB.databases();
    const db = await new Promise((done) => { const r = indexedDB.open(name); r.onsuccess = () => done(r.result); });
    const keys = await new Promise((done) => { const r = db.transaction('files').objectStore('files').getAllKeys(); r.onsuccess = () => done(r.result); });
    db.close();
    return keys;
  }), []));
  assert.deepEqual(page.errors, []);
  report('widget files: dropped, pasted, picked, cancelled, sent again');
}

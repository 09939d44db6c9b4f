// Scenarios of the chat widget: what is broken, refused or lost. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { abortRoute, eventually, forgeScript, write } from '../page.mjs';
import { launcher, messageWith, register, rows, startSite, tagOf, texts } from './shared.mjs';

/** Gateways and the network fail and recover: no message is lost or duplicated, and the order is kept. The Go test sends the commands. */
export async function comingBack({ open, report, nextCommand }) {
  const page = await open();
  await register(page);
  await write(page, 'before');
  await messageWith(page, 'You wrote “before”').waitFor();
  const wanted = ['before'];
  for (let round = 0; ; round++) {
    report(`ready ${round}`);
    const command = await nextCommand();
    if (command === 'end') break;
    if (command === 'offline') await page.context().setOffline(true);
    const text = `round ${round}`;
    await write(page, text);
    wanted.push(text);
    if (command === 'offline') {
      await page.getByText('You are offline.').first().waitFor();
      await page.context().setOffline(false);
    }
    await messageWith(page, `You wrote “${text}”`).waitFor();
  }
  const mine = (await texts(page, '.mine .words')).map((t) => t.trim());
  assert.deepEqual(mine, wanted, 'each message is shown once, in order');
  const answers = (await texts(page, '.theirs .words')).filter((t) => t.startsWith('You wrote')).map((t) => /“(.*?)”/.exec(t)[1]);
  assert.deepEqual(answers, wanted, 'each answer is shown once, in order');
  assert.deepEqual(page.errors, []);
  report(`widget coming back: ${wanted.length} of ${wanted.length} messages, 0 lost, 0 duplicated`);
}

/** The chat, the settings or the session are unavailable: the widget shows an error, throws none at the page, and recovers. */
export async function broken({ config, open, report }) {
  const site = await startSite();
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  let page = await open({ url: site.url });
  const failures = () => page.evaluate(() => window.failures);
  const listen = () => page.evaluate(() => { window.failures = []; Parley.on('error', (e) => failures.push(e.code)); });
  const chat = /\/widget\/chat-/;

  // A modified chat script does not run.
  await listen();
  await page.route(chat, forgeScript);
  await launcher(page).click();
  await eventually('loading the modified chat fails', async () => assert.ok((await failures()).includes('LOAD_FAILED')));
  assert.equal(await page.evaluate(() => window.forged), undefined, 'the modified chat has not run');
  await launcher(page).getByText('!').waitFor();
  await page.unroute(chat, forgeScript);
  await page.context().close();

  // The chat fails to load, and the next click tries again. Then the settings fail to load.
  page = await open({ url: site.url });
  await listen();
  await page.route(chat, abortRoute);
  await launcher(page).click();
  await eventually('an error event is emitted', async () => assert.ok((await failures()).length > 0));
  await page.unroute(chat, abortRoute);
  await page.route(/\/settings\//, abortRoute);
  await launcher(page).click();
  await page.getByText('The chat could not be loaded.').waitFor();
  await page.unroute(/\/settings\//, abortRoute);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByLabel('First name').waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // A page with a stored session opens during an outage. It loads by itself when the server is available again.
  page = await open({ url: site.url });
  await register(page);
  const requests = { settings: 0, message: 0 };
  const outage = /\/(settings|message|socket\.io)\b/;
  const countAndAbort = (route) => {
    requests[outage.exec(route.request().url())[1]]++;
    return route.abort();
  };
  await page.route(outage, countAndAbort);
  await page.reload();
  await launcher(page).click();
  await page.getByText('The chat could not be loaded.').waitFor();
  await eventually('the history is requested again after the settings', async () => assert.ok(requests.settings > 0 && requests.message > 2));
  await page.unroute(outage, countAndAbort);
  await rows(page).first().waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // The application does not exist.
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId: '00000000-0000-4000-8000-000000000000' })}<body></body>`);
  page = await open({ url: site.url });
  await launcher(page).click();
  await page.getByText('The chat is not available on this site.').waitFor();
  assert.deepEqual(page.errors, []);
  await page.context().close();

  // The server rejects the stored token.
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf(config)}<body></body>`);
  page = await open({ url: site.url });
  await register(page);
  await page.evaluate((key) => localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), token: 'no.token.more' })), `parley.${config.appId}`);
  await page.reload();
  await page.waitForFunction(() => window.Parley?.open);
  await page.evaluate(() => Parley.open());
  await page.getByText('Your session has ended. Please introduce yourself again.').waitFor();
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget broken: errors shown, and retried');
}

/** The application does not allow the site: the widget says so, to the owner in the console, and stops. */
export async function refused({ config, open, report }) {
  const site = await startSite();
  const { guardedAppId: appId } = config;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId })}<body></body>`);
  const page = await open({ url: site.url });
  const consoleErrors = [];
  page.on('console', (m) => m.type() === 'error' && m.text().startsWith('Parley') && consoleErrors.push(m.text()));
  await launcher(page).click();
  await page.getByText('The chat is not available on this site.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0);
  assert.deepEqual(consoleErrors, [`Parley ${appId} on ${new URL(site.url).origin}: ORIGIN_NOT_ALLOWED Origin is not allowed`]);
  const asked = page.requestedUrls.length;
  await page.evaluate(() => window.dispatchEvent(new Event('online')));
  await new Promise((done) => setTimeout(done, 6_000)); // longer than the delay of a retry
  assert.equal(page.requestedUrls.length, asked, 'nothing is requested again');
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget refused: named in the console, not retried');
}

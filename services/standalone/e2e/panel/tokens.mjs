// Scenarios of the panel: the first sign-in, and access tokens. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { button, eventually, write } from '../page.mjs';
import { api, assertClean, dialog, navigate, registerVisitor, waitForHeading } from './shared.mjs';

const sh = (line) => execFileSync('sh', ['-c', line], { encoding: 'utf8' });

/** The first sign-in; then a token is created, used with curl, rotated and revoked. */
export async function tokens(env) {
  const { config, open, report } = env;
  const page = await open({ url: config.panel + '/', ready: false });
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.keyboard.press('Enter');
  await page.getByText('The email address or the password is wrong.').waitFor();
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await page.keyboard.press('Enter');
  await waitForHeading(page, 'Inbox');

  await registerVisitor(config, 'Ada', 'Hello');
  const chat = await eventually('the chat is listed', async () => {
    const { chats } = await api(page, 'GET', 'chats?q=Ada');
    assert.equal(chats.length, 1);
    return chats[0];
  });

  await navigate(page, '/tokens');
  await button(page, 'New token').first().click();
  await button(dialog(page, 'New token'), 'Create token').click();
  await page.getByText('Fill in this field.').waitFor();
  await page.getByLabel('Name').fill('Order system');
  await page.getByLabel('Expires').selectOption('90');
  await button(dialog(page, 'New token'), 'Create token').click();
  const ready = dialog(page, 'Token "Order system" is ready');
  const secret = await ready.getByRole('region', { name: 'Token' }).textContent();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await ready.getByRole('button', { name: 'Copy' }).first().click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  const line = (await ready.getByRole('region', { name: 'Try it' }).textContent()).replace('CHAT_ID', chat.id);
  assert.match(sh(`${line} -s`), /Message sent successfully/);
  await page.keyboard.press('Escape');
  await ready.waitFor(); // Escape does not close the dialog with the secret
  await button(ready, 'I have copied it').click();
  assert.ok(!(await page.content()).includes(secret), 'the secret is no longer in the page');

  const entry = page.getByRole('row').filter({ hasText: 'Order system' });
  await entry.getByText(secret.slice(0, 6)).waitFor();
  await entry.getByText(config.email).waitFor();
  await button(page, 'Actions for Order system').click();
  await page.getByRole('menuitem', { name: 'Rotate' }).click();
  await page.getByLabel('Overlap').selectOption('3600');
  await button(dialog(page, 'Rotate "Order system"'), 'Rotate').click();
  const rotated = dialog(page, 'Token "Order system" is ready');
  const second = await rotated.getByRole('region', { name: 'Token' }).textContent();
  await rotated.getByText('The old token works until').waitFor();
  await button(rotated, 'I have copied it').click();
  assert.match(sh(`${line} -s`), /Message sent successfully/, 'the old token works during the overlap');
  const newLine = `${line.replace(secret, second)} -s`;
  assert.match(sh(newLine), /Message sent successfully/);

  await page.getByRole('row').filter({ hasText: second.slice(0, 6) }).getByRole('button', { name: 'Actions for Order system' }).last().click();
  await page.getByRole('menuitem', { name: 'Revoke' }).click();
  const start = Date.now();
  await button(dialog(page, 'Revoke this token?'), 'Revoke').click();
  await page.getByText('"Order system" is revoked').waitFor();
  await eventually('one of the two tokens is refused', async () => assert.ok([sh(newLine), sh(`${line} -s`)].some((answer) => /401|Unauthorized/i.test(answer))));
  report(`a revoked token was refused within ${Date.now() - start} ms`);
  await assertClean(page, config);
}

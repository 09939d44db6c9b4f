// Scenarios of the panel: users, sign-in and companies. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { button, chatRow, signIn } from '../page.mjs';
import { assertClean, dialog, invite, navigate, registerVisitor, waitForHeading } from './shared.mjs';

export async function people(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/people' });
  const { page: bob, email } = await invite(env, page, 'Bob', 'agent');
  await page.reload();
  await button(page, 'Actions for Bob').click();
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByLabel('Role').selectOption('developer');
  await button(page.getByRole('dialog'), 'Save').click();
  await page.getByRole('row').filter({ hasText: email }).getByText('Developer').waitFor();
  await button(page, 'Actions for Bob').click();
  await page.getByRole('menuitem', { name: 'Sessions' }).click();
  await button(dialog(page, 'Sessions of Bob'), 'Sign out everywhere').click();
  await bob.getByText('Your session has ended.').waitFor(); // without a reload
  await bob.getByRole('heading', { name: 'Sign in to Parley' }).waitFor();

  await registerVisitor(config, 'Zoe', 'Please forget me');
  await navigate(page, '/visitors');
  await page.getByLabel('Search by name, email, phone or customer number').fill('zoe');
  await page.getByRole('row').filter({ hasText: 'Zoe' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export Zoe' }).click()]);
  assert.match(await readFile(await download.path(), 'utf8'), /Please forget me/);
  await button(page, 'Erase Zoe').click();
  const erase = dialog(page, 'Erase Zoe?');
  assert.ok(await button(erase, 'Erase for ever').isDisabled(), 'the button is disabled until the word is typed');
  await erase.getByLabel('Type "erase" to confirm').fill('erase');
  await button(erase, 'Erase for ever').click();
  await dialog(page, 'Receipt of erasure').getByText('Everything about this visitor has been erased.').waitFor();
  await button(dialog(page, 'Receipt of erasure'), 'Done').click();
  await page.getByText('No visitor found').waitFor();

  await navigate(page, '/audit');
  await page.getByRole('row').filter({ hasText: 'visitor.erase' }).first().waitFor();
  const changed = page.getByRole('row').filter({ hasText: 'user.update' }).first();
  await changed.getByRole('button').click();
  await page.locator('del').filter({ hasText: 'agent' }).waitFor();
  await page.locator('ins').filter({ hasText: 'developer' }).waitFor();

  await navigate(page, '/account');
  await button(page, 'Set up').click();
  await page.getByLabel('Current password').last().fill('wrong password');
  await button(page, 'Next').click();
  await page.getByText('The password is wrong.').waitFor();
  await page.getByRole('dialog').getByLabel('Current password').fill(config.password);
  await button(page, 'Next').click();
  const key = (await page.getByRole('region', { name: 'Setup key' }).textContent()).replace(/\s/g, '');
  await page.getByRole('dialog').getByLabel('Authentication code').fill(oneTimeCode(key, 0));
  await page.getByRole('img', { name: 'QR code of the setup key' }).waitFor();
  await button(page, 'Confirm').click();
  await page.getByText('Two-factor authentication is on').waitFor();
  const recovery = dialog(page, 'Recovery codes');
  const [recoveryCode] = (await recovery.getByRole('region', { name: 'Recovery codes' }).textContent()).split('\n');
  await recovery.getByLabel('I have stored them in a safe place').click();
  await button(recovery, 'Done').click();
  await button(page, 'Sign out everywhere').click();
  await button(dialog(page, 'Sign out everywhere'), 'Sign out everywhere').click();
  await page.getByLabel('Email').fill(config.email);
  await page.getByLabel('Password', { exact: true }).fill(config.password);
  await button(page, 'Sign in').click();
  await page.getByLabel('Authentication code').fill('000000');
  await button(page, 'Sign in').click();
  await page.getByText('That code is wrong or has expired.').waitFor();
  await page.getByLabel('Authentication code').fill(recoveryCode);
  await button(page, 'Sign in').click();
  await waitForHeading(page, 'Your account'); // the page before the sign-in
  await assertClean(page, config);
}

/** Returns the RFC 6238 code of the current period, or of a later one. */
function oneTimeCode(base32, later) {
  let bits = '';
  for (const c of base32) bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0');
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const mac = createHmac('sha1', key).update(counter).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** An operator works in one company at a time. */
export async function companies(env) {
  const { config } = env;
  const page = await signIn(env);
  await page.getByText('Live', { exact: true }).waitFor();
  await button(page, 'Company: Demo Company').click();
  await page.getByRole('menuitem', { name: 'New company' }).click();
  await page.getByLabel('Company name').fill('Globex');
  await button(page, 'Create company').click();
  await page.getByText('No open chats').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await navigate(page, '/applications');
  await page.getByText('No applications yet').waitFor();
  await button(page, 'New application').first().click();
  await page.getByLabel('Title').fill('Globex help');
  await page.getByLabel('Bot name').fill('Glo');
  await button(page, 'Create application').click();
  await page.frameLocator('iframe').getByText('Hello! How can we help you?').first().waitFor();
  await registerVisitor(config, 'Ada', 'For the demo company');
  await navigate(page, '/inbox');
  await button(page, 'Company: Globex').click();
  await page.getByRole('menuitemradio', { name: 'Demo Company' }).click();
  await chatRow(page, 'Ada').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.reload();
  await button(page, 'Company: Demo Company').waitFor(); // the selection is stored
  await assertClean(page, config);
}

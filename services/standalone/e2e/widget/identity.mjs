// Scenarios of the chat widget: proved identities. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { eventually, unique } from '../page.mjs';
import { launcher, startSite, tagOf } from './shared.mjs';

/** The company's server proves the identity of visitors, and tokens are renewed before they expire. The Go test signs the proofs and tokens. */
export async function identity({ config, open, report, nextCommand }) {
  const request = async (line) => (report(line), nextCommand());
  const site = await startSite();
  const { verifiedAppId: appId } = config;
  const key = `parley.${appId}`;
  site.serve(`<!doctype html><html lang="en"><title>Site</title>${tagOf({ ...config, appId })}<body></body>`);
  const stored = (page) => page.evaluate((key) => JSON.parse(localStorage.getItem(key)) ?? {}, key);
  const claims = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));

  let page = await open({ url: site.url });
  await page.evaluate(() => { window.seen = []; for (const e of ['registered', 'error']) Parley.on(e, (detail) => seen.push([e, detail])); });
  const consoleErrors = [];
  page.on('console', (m) => m.type() === 'error' && m.text().startsWith('Parley') && consoleErrors.push(m.text()));
  const refusal = page.getByRole('alert').filter({ hasText: 'The chat could not be loaded.' });
  await page.evaluate(() => (Parley.identify({ userId: '1', userHash: '0'.repeat(64) }), Parley.open()));
  await refusal.waitFor();
  await page.evaluate(() => (Parley.close(), Parley.open())); // registers again
  await eventually('the second registration is refused', async () => assert.equal((await page.evaluate(() => seen)).length, 2));
  await refusal.waitFor();
  assert.equal(await page.getByText(/Identity|userHash/).count(), 0, 'the visitor is not told what only the developer can correct');
  assert.deepEqual(consoleErrors, [`Parley ${appId} on ${new URL(site.url).origin}: IDENTITY_NOT_VERIFIED Identity could not be verified: userHash does not prove the userId`]);
  const userId = `user-${unique()}`;
  const proof = await request(`prove ${userId}`);
  await page.evaluate((identityToken) => Parley.identify({ identityToken }), proof);
  await page.getByLabel('Your message').waitFor();
  const [[, error], , [, { chatUserId }]] = await page.evaluate(() => seen);
  assert.equal(error.status, 400);
  assert.match(chatUserId, /^[0-9a-f-]{36}$/);
  assert.ok(!JSON.stringify(await stored(page)).includes(proof), 'the proof is not stored');
  await page.context().close();
  page = await open({ url: site.url });
  const userHash = await request(`hash ${userId}`);
  await page.evaluate((identity) => (Parley.identify(identity), Parley.open()), { userId, userHash });
  await page.getByLabel('Your message').waitFor();
  assert.equal(claims((await stored(page)).token).sub, chatUserId, 'the hash and the token identify the same visitor');
  assert.ok(!JSON.stringify(await stored(page)).includes(userHash), 'the hash is not stored');
  await page.context().close();

  // A visitor who registered with the form is identified only by the token. The widget renews it on the server's notice and when it is old.
  page = await open({ url: site.url });
  await launcher(page).click();
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).click();
  await page.getByLabel('Your message').waitFor();
  const visitor = claims((await stored(page)).token).sub;
  for (const [what, issued, expires] of [['a token with an expiry notice from the server', 0, 63], ['a token close to its expiry', -2_000_000, 90_000]]) {
    const token = await request(`token ${visitor} ${issued} ${expires}`);
    await page.evaluate(([key, token]) => localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), token })), [key, token]);
    await page.reload(); // the page does not identify the visitor
    await page.waitForFunction(() => window.Parley?.open);
    await page.evaluate(() => Parley.open());
    await eventually(`${what} is renewed`, async () => assert.notEqual((await stored(page)).token, token));
    const renewed = claims((await stored(page)).token);
    assert.equal(renewed.sub, visitor, 'the renewed token is for the same visitor');
    assert.ok(renewed.exp > claims(token).exp);
    await page.locator('.p[data-connection=online]').waitFor();
  }
  assert.deepEqual(page.errors, []);
  site.close();
  report('widget identity: proved by token and by hash; two tokens renewed');
}

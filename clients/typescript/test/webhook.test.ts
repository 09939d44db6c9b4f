import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, WebhookVerificationError } from '../src/index.js';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const id = '3b1f6a52-0f5e-5b1f-8f0e-3c8f7a2d9e11';
const body = JSON.stringify({ type: 'chat.closed', timestamp: '2026-11-22T12:00:00.000Z', data: { chatId: 'c' } });

/** Returns the headers of a delivery, signed by the official library. */
function signed(key = secret, at = new Date(), text = body) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign(id, at, text),
  };
}

test('signatures of the official library are verified', async () => {
  const event = await verifyWebhook(secret, body, signed());
  assert.equal(event.type, 'chat.closed');
  if (event.type === 'chat.closed') assert.equal(event.data.chatId, 'c');
  await verifyWebhook(secret, new TextEncoder().encode(body), new Headers(signed()));
});

test('during a rotation one of two keys or signatures is enough', async () => {
  const next = `whsec_${randomBytes(32).toString('base64')}`;
  await verifyWebhook([next, secret], body, signed());
  await verifyWebhook(next, body, {
    ...signed(),
    'webhook-signature': `${signed()['webhook-signature']} ${signed(next)['webhook-signature']}`,
  });
});

test('ed25519 signatures are verified with the public key', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const key = `whpk_${publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')}`;
  const headers = signed();
  const signature = (text: string) => ({
    ...headers,
    'webhook-signature': `v1a,${sign(null, Buffer.from(`${id}.${headers['webhook-timestamp']}.${text}`), privateKey).toString('base64')}`,
  });
  await verifyWebhook(key, body, signature(body));
  await assert.rejects(verifyWebhook(key, body, signature(body + ' ')), WebhookVerificationError);
  await assert.rejects(verifyWebhook(secret, body, signature(body)), WebhookVerificationError);
});

test('forged, expired, incomplete or malformed deliveries are rejected', async () => {
  const headers = signed();
  await assert.rejects(verifyWebhook(secret, body + ' ', headers), WebhookVerificationError);
  await assert.rejects(verifyWebhook(secret, body, { ...headers, 'webhook-id': 'another' }), WebhookVerificationError);
  for (const off of [-301, 301])
    await assert.rejects(
      verifyWebhook(secret, body, signed(secret, new Date(Date.now() + off * 1000))),
      /too old or too new/,
    );
  for (const name of Object.keys(headers))
    await assert.rejects(verifyWebhook(secret, body, { ...headers, [name]: undefined }), /is missing/);
  for (const signature of ['v1', 'v1,', 'v1,%%', 'v2,AAAA'])
    await assert.rejects(
      verifyWebhook(secret, body, { ...headers, 'webhook-signature': signature }),
      WebhookVerificationError,
    );
  for (const key of ['', 'whsec_', 'secret', 'whsec_%%'])
    await assert.rejects(verifyWebhook(key, body, headers), TypeError);
});

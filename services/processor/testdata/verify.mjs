// Verifies webhook deliveries: v1 signatures with the official package standardwebhooks, v1a signatures with the public key. It reads one
// JSON object {verifier, headers, body} per line from stdin, and checks that each delivery with a modified body is rejected.
import { createPublicKey, verify } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';

// Converts a whpk_ key to the DER encoding that Node reads (RFC 8410).
function publicKey(verifier) {
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(verifier.slice('whpk_'.length), 'base64')]);
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

function check({ verifier, headers, body }) {
  if (verifier.startsWith('whsec_')) {
    new Webhook(verifier).verify(body, headers, { jsonParse: false });
    return;
  }
  const content = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`);
  const signatures = headers['webhook-signature'].split(' ').filter((s) => s.startsWith('v1a,')).map((s) => Buffer.from(s.slice('v1a,'.length), 'base64'));
  if (!signatures.some((s) => verify(null, content, publicKey(verifier), s))) throw new Error('no matching signature');
}

let accepted = 0;
let refused = 0;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const delivery = JSON.parse(line);
  check(delivery);
  accepted += 1;
  try {
    check({ ...delivery, body: `${delivery.body} ` });
  } catch {
    refused += 1;
  }
}
console.log(`${accepted} accepted, ${refused} forged ones refused`);

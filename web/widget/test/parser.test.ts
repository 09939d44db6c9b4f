import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Decoder as OfficialDecoder, Encoder as OfficialEncoder } from 'socket.io-parser';
import { Decoder, Encoder } from '../src/state/parser.js';

interface Decodes {
  on(event: string, f: (p: unknown) => void): unknown;
  add(text: string): void;
}

function decoded(d: Decodes, text: string): unknown {
  let packet: unknown;
  d.on('decoded', (p) => {
    packet = JSON.parse(JSON.stringify(p));
  });
  try {
    d.add(text);
  } catch {
    return 'refused';
  }
  return packet;
}

// The empty string is not covered: this parser rejects it, the official one reads CONNECT.
test('decodes packets like socket.io-parser', () => {
  const texts = [
    '0',
    '0{"sid":"a"}',
    '0/message,{"sid":"a","pid":"b"}',
    '0/message,',
    '0/message',
    '0[]',
    '0"a"',
    '0/message,null',
    '1',
    '1/message,',
    '1/message,{}',
    '2',
    '2["message",{"text":"2, [3] /4"},"17"]',
    '2/message,["typing",{"name":"\u2028\n"}]'.replace('\n', '\\n'),
    '2/message,12["read",{}]',
    '2["connect"]',
    '2["disconnect",1]',
    '2[7,1]',
    '2[{}]',
    '2[]',
    '2{}',
    '2"a"',
    '2["a"',
    '2/message,x',
    '3/message,4[]',
    '30[{"ok":true}]',
    '3/message,4{}',
    '4"no"',
    '4/message,{"message":"no","data":{"code":"UNAUTHORIZED"}}',
    '4[]',
    '47',
    '4null',
    '7',
    '9["a"]',
    'x',
    '-1',
    '2/message',
    '2/a,b,["x"]',
    '2["a\n"]',
  ];
  for (const text of texts) assert.deepEqual(decoded(new Decoder(), text), decoded(new OfficialDecoder(), text), text);
});

test('encodes packets like socket.io-parser', () => {
  const packets = [
    { type: 0, nsp: '/message', data: { token: 't', pid: 'p' } },
    { type: 1, nsp: '/message' },
    { type: 2, nsp: '/', data: ['a', { b: [1] }] },
    { type: 2, nsp: '/message', id: 0, data: ['read', { id: 'x' }] },
    { type: 3, nsp: '/message', id: 12, data: [] },
    { type: 2, nsp: '/message', data: ['é\u2028', null] },
  ];
  for (const p of packets) assert.deepEqual(new Encoder().encode(p), new OfficialEncoder().encode(p as never));
});

test('rejects binary packets', () => {
  for (const text of ['51-["a",{"_placeholder":true,"num":0}]', '61-/message,1[]'])
    assert.equal(decoded(new Decoder(), text), 'refused');
});

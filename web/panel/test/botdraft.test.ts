import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AllowedTool, Bot, BotSettings, BotVersion } from '../src/api/types.js';
import {
  connectionOf,
  draftDiffers,
  formOf,
  hasBounds,
  hasErrorIn,
  hasPrices,
  inForceLine,
  newTool,
  otherErrors,
  samePlaces,
  sameSettings,
  settingsOf,
  summaryOf,
  toolChoices,
  withTool,
} from '../src/applications/botdraft.js';
import { bytesOf } from '../src/lib/format.js';

const status: AllowedTool = { name: 'order.status', effect: 'reads' };
const cancel: AllowedTool = { name: 'cancel_order', effect: 'changes', question: 'Cancel the order {order}?' };

const model: BotSettings = {
  kind: 'model',
  model: {
    connectionId: 'c1',
    model: 'small',
    prompt: ' You are Polly.\n',
    history: 20,
    temperature: 0,
    maxTokens: 700,
    prices: { input: 0.4, output: 1.6, currency: 'EUR' },
    knowledge: { passages: 5, search: 'plain' },
    tools: { servers: [{ connectionId: 'c2', tools: [status, cancel] }], agree: 'Do it', decline: 'Leave it' },
  },
  failureText: 'Sorry.',
  handover: { onFailure: true, phrases: ['human', 'a person'] },
  bounds: {
    callsAtOnce: 10,
    application: { questions: 1000, tokens: 2_000_000 },
    visitor: { questions: 50, tokens: 90_000 },
    exhaustedText: 'Enough for today.',
  },
};
const server: BotSettings = { kind: 'webhook', webhook: { url: 'https://bot.example/a?key=1', deadlineSeconds: 30 } };

const version = (number: number, settings: BotSettings): BotVersion => ({
  number,
  settings,
  publishedAt: '2026-03-01T12:00:00.000Z',
  publishedBy: 'ada@example.com',
});
const bot = (draft: BotSettings, ...versions: BotVersion[]): Bot => ({
  appId: 'a',
  companyId: 'c',
  revision: 3,
  draft,
  versions,
  secrets: [],
});

test('the form of settings gives the same settings', () => {
  const settings: BotSettings[] = [{ kind: 'default' }, { kind: 'none' }, { kind: 'demo' }, server, model];
  for (const s of settings) assert.deepEqual(settingsOf(formOf(s)), s, s.kind);
});

test('settings to send have only what belongs to the kind, and no defaults', () => {
  const form = { ...formOf(model), url: ' https://bot.example ', phrases: '\n human \n\n', failureText: ' ' };
  assert.deepEqual(settingsOf({ ...form, kind: 'webhook', onFailure: false }), {
    kind: 'webhook',
    webhook: { url: 'https://bot.example' },
    handover: { phrases: ['human'] },
    bounds: model.bounds,
  });
  assert.equal(settingsOf({ ...form, kind: 'demo' }).bounds, undefined, 'the demo calls no server');
  assert.deepEqual(settingsOf({ ...form, kind: 'none' }), { kind: 'none' });
  const bare = formOf({ kind: 'model', model: { connectionId: 'c1', model: ' small ' } });
  const empty = { ...bare, currency: ' ', exhaustedText: ' ', questions: '0' };
  assert.deepEqual(settingsOf({ ...empty, onFailure: false }), {
    kind: 'model',
    model: { connectionId: 'c1', model: 'small' },
  });
});

test('one bound or price is enough for the parts of the form', () => {
  const form = formOf(server);
  assert.deepEqual([hasBounds(form), hasPrices(form)], [false, false]);
  const bounded = { ...form, visitorQuestions: '5' };
  assert.deepEqual(settingsOf(bounded).bounds, { visitor: { questions: 5 } });
  assert.equal(hasBounds(bounded), true);
  assert.equal(hasPrices({ ...form, outputPrice: '0.25' }), true);
});

test('tools are sent without what does not belong to them', () => {
  const form = { ...formOf(model), agree: ' ', decline: '' };
  const reads: AllowedTool = { ...cancel, effect: 'reads' };
  const unasked: AllowedTool = { ...cancel, question: ' ' };
  const servers = [{ connectionId: 'c2', tools: [reads, unasked] }];
  assert.deepEqual(settingsOf({ ...form, toolServers: servers }).model?.tools, {
    servers: [
      {
        connectionId: 'c2',
        tools: [
          { name: 'cancel_order', effect: 'reads' },
          { name: 'cancel_order', effect: 'changes' },
        ],
      },
    ],
  });
  assert.equal(settingsOf({ ...form, toolServers: [], agree: 'Do it' }).model?.tools, undefined);
});

test('the tools of a server are those that it lists, and those of the settings', () => {
  const listed = [{ name: 'order.status', description: 'Where an order is', readOnly: true }, { name: 'refund' }];
  const choices = toolChoices([cancel, status], listed);
  assert.deepEqual(
    choices.map((c) => [c.name, !!c.listed, !!c.allowed, c.index]),
    [
      ['order.status', true, true, 1],
      ['refund', true, false, -1],
      ['cancel_order', false, true, 0],
    ],
  );
  assert.deepEqual(newTool(choices[0]!), status, 'the server says that it only reads');
  assert.deepEqual(newTool(choices[1]!), { name: 'refund', effect: 'changes' });
  assert.deepEqual(
    toolChoices([cancel]).map((c) => c.name),
    ['cancel_order'],
    'nothing is listed yet',
  );
});

test('a tool is added at the end, and changed and removed at its place', () => {
  const refund: AllowedTool = { name: 'refund', effect: 'changes' };
  assert.deepEqual(withTool([status, cancel], -1, refund), [status, cancel, refund]);
  assert.deepEqual(withTool([status, cancel], 0, refund), [refund, cancel]);
  assert.deepEqual(withTool([status, cancel], 0), [cancel]);
});

test('the errors of tools keep their places while only what is in them changes', () => {
  const servers = [{ connectionId: 'c2', tools: [status, cancel] }];
  const asked = [{ connectionId: 'c2', tools: [status, { ...cancel, question: 'Sure?' }] }];
  assert.equal(samePlaces(servers, asked), true);
  assert.equal(samePlaces(servers, [{ connectionId: 'c2', tools: [cancel] }]), false);
  assert.equal(samePlaces(servers, []), false);
});

test('the failure text "none" is a checkbox in the form', () => {
  const form = formOf({ kind: 'demo', failureText: 'none' });
  assert.deepEqual([form.silent, form.failureText], [true, '']);
  assert.equal(settingsOf(form).failureText, 'none');
  assert.equal(settingsOf({ ...form, silent: false }).failureText, undefined);
});

test('settings are the same however they are written', () => {
  const zeros: BotSettings = {
    handover: { onFailure: false, phrases: [] },
    failureText: '',
    webhook: { deadlineSeconds: 0, url: 'https://bot.example' },
    bounds: { callsAtOnce: 0, application: { questions: 0 }, visitor: {}, exhaustedText: '' },
    kind: 'webhook',
  };
  assert.equal(sameSettings(zeros, { kind: 'webhook', webhook: { url: 'https://bot.example' } }), true);
  assert.equal(sameSettings(zeros, server), false);
});

test('the draft differs from the version in force', () => {
  assert.equal(draftDiffers(bot({ kind: 'default' })), false, 'the operator’s default is in force');
  assert.equal(draftDiffers(bot({ kind: 'demo' })), true);
  assert.equal(draftDiffers(bot(model, version(2, model), version(1, server))), false);
  assert.equal(draftDiffers(bot(server, version(2, model), version(1, server))), true);
});

test('the version in force is shown in one line', () => {
  const now = Date.parse('2026-03-01T14:10:00.000Z');
  assert.equal(inForceLine(bot(model), now), 'The operator’s default answers.');
  assert.equal(
    inForceLine(bot(model, version(3, model)), now),
    'Version 3 · language model · published 2 h ago by ada@example.com',
  );
});

test('a summary has the server without its query, or the model', () => {
  assert.equal(summaryOf(server), 'Your server · bot.example/a');
  assert.equal(summaryOf(model), 'Language model · small');
  assert.equal(summaryOf({ kind: 'none' }), 'Agents only');
  assert.equal(summaryOf({ kind: 'webhook', webhook: { url: 'x' } }), 'Your server');
});

test('errors of hidden fields are told apart', () => {
  const errors = { 'webhook.url': 'Must be a URL.', 'handover.phrases': 'Must be at most 50.' };
  assert.deepEqual(otherErrors(errors, 'webhook'), []);
  assert.deepEqual(otherErrors(errors, 'model'), ['webhook.url: Must be a URL.']);
  const folded = { 'bounds.visitor.tokens': 'Must be 1 to 10.', 'model.prices.input': 'Must be 0 to 10.' };
  assert.deepEqual(otherErrors(folded, 'model'), []);
  assert.deepEqual(otherErrors(folded, 'default'), ['model.prices.input: Must be 0 to 10.']);
  assert.deepEqual(otherErrors({ 'model.knowledge.passages': 'Must be 1 to 10.' }, 'model'), []);
  const tools = ['', '.servers', '.servers[0].tools', '.servers[1].tools[12].question', '.agree'];
  const ofTools = Object.fromEntries(tools.map((path) => [`model.tools${path}`, 'Is wrong.']));
  assert.deepEqual(otherErrors(ofTools, 'model'), ['model.tools: Is wrong.']);
  assert.equal(otherErrors(ofTools, 'webhook').length, tools.length);
});

test('a folded part with an error is known', () => {
  const errors = { 'bounds.visitor.tokens': 'Must be 1 to 10.', 'model.model': 'Is required.' };
  assert.equal(hasErrorIn('bounds', errors), true);
  assert.equal(hasErrorIn('model.prices', errors), false);
});

test('a prompt is measured in bytes', () => {
  assert.equal(bytesOf('Grüße 👋'), 12);
});

test('an empty key leaves the key of a connection unchanged', () => {
  const form = { name: ' Models ', baseUrl: ' https://models.example/v1 ', apiKey: ' ', removeKey: false };
  const body = { name: 'Models', baseUrl: 'https://models.example/v1' };
  assert.deepEqual(connectionOf(form), body);
  assert.deepEqual(connectionOf({ ...form, apiKey: 'sk-1' }), { ...body, apiKey: 'sk-1' });
  assert.deepEqual(connectionOf({ ...form, apiKey: 'sk-1', removeKey: true }), { ...body, apiKey: '' });
});

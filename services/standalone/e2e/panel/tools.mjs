// Scenarios of the panel: the tools of a language model. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { button, eventually, signIn } from '../page.mjs';
import { api, assertAccessible, assertClean, openVisitorPage, serve } from './shared.mjs';

const card = (page, name) => page.locator('.panel-card').filter({ has: page.getByRole('heading', { name, exact: true }) });

const input = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };

const listed = [
  { name: 'order.status', description: 'Where an order is', inputSchema: input, annotations: { readOnlyHint: true } },
  { name: 'cancel_order', description: 'Cancels an order', inputSchema: input },
];

/** A server of tools, which speaks as much of the Model Context Protocol as a client needs. It keeps the orders that it cancels. */
async function serveTools(cancelled) {
  const answers = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'shop', version: '1' } }),
    'tools/list': () => ({ tools: listed }),
    'tools/call': ({ name, arguments: { order } }) => {
      if (name === 'cancel_order') cancelled.push(order);
      return { content: [{ type: 'text', text: name === 'cancel_order' ? `${order} is cancelled` : `${order} is on its way` }] };
    },
  };
  return serve((request, body, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    const answer = answers[method];
    response.setHeader('Content-Type', 'application/json');
    const result = answer ? { result: answer(params) } : { error: { code: -32601, message: 'Method not found' } };
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...result }));
  });
}

/** A model that calls the tool that a question is about, and then says its result. */
function serveModel() {
  return serve((request, body, response) => {
    const { messages, tools } = JSON.parse(body);
    const last = messages.at(-1);
    const wanted = last.content.startsWith('Cancel') ? 'cancel_order' : 'order_status';
    const calls = [{ id: 'call1', type: 'function', function: { name: wanted, arguments: '{"order":"7"}' } }];
    const message = last.role === 'user' && tools ? { content: '', tool_calls: calls } : { content: `I hear: ${last.content}` };
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ choices: [{ message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }] }));
  });
}

/**
 * Two tools of a server are allowed: after a server that does not answer, without one that the server does not have, and with a question to the
 * visitor. The console shows their calls, a visitor agrees to one, and the log has it.
 */
export async function tools(env) {
  const { config } = env;
  const cancelled = [];
  const page = await signIn(env, { path: '/applications' });
  const models = await api(page, 'POST', 'connections', { name: 'Models', baseUrl: await serveModel() });
  const shop = await api(page, 'POST', 'connections', { name: 'Shop', baseUrl: `${await serveTools(cancelled)}/mcp` });
  await api(page, 'POST', 'connections', { name: 'Closed', baseUrl: 'http://127.0.0.1:9/mcp' });
  await api(page, 'PUT', `applications/${config.appId}/bot`, {
    kind: 'model',
    model: { connectionId: models.id, model: 'small', tools: { servers: [{ connectionId: shop.id, tools: [{ name: 'refund', effect: 'reads' }] }] } },
  });
  await page.goto(`${config.panel}/#/applications/${config.appId}/bot`);

  const part = card(page, 'Tools');
  await button(part, 'Add server').click();
  const second = part.locator('.tool-server').nth(1);
  const choice = second.getByLabel('Server of tools');
  assert.deepEqual(await choice.locator('option').allTextContents(), ['Choose a connection', 'Closed'], 'neither the model’s server nor a chosen one');
  await choice.selectOption({ label: 'Closed' });
  await button(second, 'List its tools').click();
  await second.getByRole('alert').getByText('No answer:').waitFor();
  await button(part, 'Remove Closed').click();
  await second.waitFor({ state: 'detached' });

  const server = part.getByRole('region', { name: 'Shop' });
  await button(page, 'Publish').click();
  await server.getByText('The server has no tool of this name.').waitFor();
  await button(server, 'List its tools').click();
  await server.getByText('Not at the server').waitFor();
  await server.getByText('2 tools at the server').waitFor();
  await assertAccessible(page, 'a tool that the server does not have');
  await part.screenshot({ path: join(config.shots, 'panel-tools-gone.png') });
  await server.getByRole('checkbox', { name: 'refund' }).click(); // and it is gone
  await server.getByText('refund').waitFor({ state: 'detached' });

  await server.getByRole('checkbox', { name: 'order.status' }).check();
  await server.getByRole('checkbox', { name: 'cancel_order' }).check();
  const status = server.getByRole('group', { name: 'order.status' });
  const cancel = server.getByRole('group', { name: 'cancel_order' });
  assert.equal(await status.getByLabel('What it does').inputValue(), 'reads', 'as the server says');
  assert.equal(await cancel.getByLabel('What it does').inputValue(), 'changes', 'the server does not say that it only reads');
  await button(page, 'Publish').click();
  await cancel.getByText('Is required for a tool that changes something.').waitFor();
  await page.waitForFunction(() => document.activeElement?.getAttribute('aria-invalid') === 'true');
  await assertAccessible(page, 'a question that is missing');
  await cancel.getByLabel('Question to the visitor').fill('Cancel the order {order}?');
  await part.getByLabel('Button that agrees').fill('Do it');
  await button(page, 'Publish').click();
  await page.getByText('Version 1 is in force').waitFor();

  const draft = card(page, 'Console');
  const ask = async (text) => {
    await draft.getByLabel('Your question').fill(text);
    await draft.getByLabel('Your question').press('Enter');
  };
  await ask('Where is my order?');
  await draft.getByText('I hear: 7 is on its way').waitFor();
  await draft.getByText('order.status').click();
  await draft.getByText('"order": "7"').waitFor();
  await ask('Cancel my order');
  await draft.getByText('Visitor is asked').waitFor();
  await draft.getByText('Cancel the order 7?').first().waitFor();
  await draft.getByText('cancel_order').click();
  assert.deepEqual(cancelled, [], 'a test changes nothing');

  for (const [suffix, colorScheme, width] of [['', 'light', 1440], ['-dark', 'dark', 1440], ['-phone', 'light', 390]]) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 900 });
    await assertAccessible(page, `tools${suffix}`);
    await part.screenshot({ path: join(config.shots, `panel-tools${suffix}.png`) });
    await draft.screenshot({ path: join(config.shots, `panel-tools-console${suffix}.png`) });
  }

  await page.reload(); // without the traces of axe
  assert.equal(await cancel.getByLabel('Question to the visitor').inputValue(), 'Cancel the order {order}?', 'the question is stored');
  await assertClean(page, config);

  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('Cancel my order');
  await button(ada, 'Do it').click();
  await ada.messageWith('7 is cancelled').waitFor();
  assert.deepEqual(cancelled, ['7']);
  const calls = card(page, 'Calls');
  const agreed = calls.locator('.calls > li').filter({ hasText: '7 is cancelled' });
  await eventually('the log has the call of the tool', async () => {
    await button(calls, 'Refresh the calls').click();
    await agreed.waitFor({ timeout: 1_000 });
  });
  await agreed.locator('summary').first().click();
  await agreed.getByRole('list', { name: 'Calls of tools' }).getByText('cancel_order').click();
  await agreed.locator('pre').getByText('7 is cancelled').waitFor();
  await assertAccessible(page, 'the call of a tool in the log');
  await calls.screenshot({ path: join(config.shots, 'panel-tools-calls.png') });
}

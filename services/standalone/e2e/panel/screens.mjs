// Scenarios of the panel: every screen, with axe and in pictures. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { button, chatRow, png, signIn, write } from '../page.mjs';
import { api, assertAccessible, dialog, messageWith, navigate, openVisitorPage, registerVisitor, reply } from './shared.mjs';

/** Checks each screen with axe and takes a screenshot: light and dark on a desktop, and light on a phone. */
export async function screens(env) {
  const { config, report } = env;
  const page = await signIn(env, { viewport: { width: 1440, height: 900 } });
  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('Hello, where is my parcel?');
  await registerVisitor(config, 'Katherine', 'Do you ship to Portugal?');
  await registerVisitor(config, 'Margaret', 'Can I change the address of order 1042?');
  await registerVisitor(config, 'Radia', 'Thank you, the evening is fine.');
  const token = await api(page, 'POST', 'tokens', { name: 'Order system' });
  assert.ok(token.secret);
  const template = await api(page, 'POST', 'templates', { name: 'Order sent', text: 'Hello {{username}}, order {{order}} is on its way.', parameters: [{ name: 'order', default: '' }] });
  await api(page, 'POST', `templates/${template.id}/submit`, {});
  const webhook = await api(page, 'POST', 'webhooks', { url: 'https://crm.example/parley', description: 'Order system', events: ['message.received', 'chat.closed'], headers: { 'X-Api-Key': 'let me in' } });
  await api(page, 'POST', 'users', { email: 'grace@example.com', name: 'Grace Hopper', role: 'agent' });
  await api(page, 'POST', 'users', { email: 'linus@example.com', name: 'Linus Bell', role: 'developer' });
  const returns = await api(page, 'POST', 'documents', { title: 'Returns', address: 'https://shop.example/returns', format: 'markdown', text: '# Deadline\n\nA parcel may be returned for thirty days.\n' });
  await chatRow(page, 'Ada').click();
  await messageWith(page, 'Hello, where is my parcel?').waitFor();
  await reply(page).fill('I look for it. One moment, please.');
  await reply(page).press('Enter');
  await ada.messageWith('I look for it.').waitFor();
  const { chats } = await api(page, 'GET', 'chats?q=Ada');
  const { messages } = await api(page, 'GET', `chats/${chats[0].id}/messages`);
  const shown = [
    ['inbox', `/inbox/${chats[0].id}`, () => messageWith(page, 'I look for it.').waitFor()],
    ['tokens', '/tokens', () => page.getByRole('row').filter({ hasText: 'Order system' }).waitFor()],
    ['applications', '/applications', () => page.locator('.app-tile').first().waitFor()],
    ['application', `/applications/${config.appId}`, () => page.frameLocator('iframe').locator('.header').waitFor()],
    ['install', `/applications/${config.appId}/install`, () => page.getByRole('region', { name: 'Embed snippet' }).waitFor()],
    ['identity', `/applications/${config.appId}/security`, () => page.getByText('Identity secrets').waitFor()],
    ['bot', `/applications/${config.appId}/bot`, () => page.getByRole('radiogroup', { name: 'What answers' }).waitFor()],
    ['documents', '/documents', () => page.getByRole('row').filter({ hasText: 'Returns' }).waitFor()],
    ['document', `/documents/${returns.id}`, () => page.getByLabel('Title').waitFor()],
    ['templates', '/templates', () => page.getByRole('row').filter({ hasText: 'Order sent' }).waitFor()],
    ['template', `/templates/${template.id}`, () => page.getByText('Submitted', { exact: true }).waitFor()],
    ['streams', '/streams', () => page.getByRole('heading', { name: 'INBOUND' }).waitFor()],
    ['trace', `/streams/trace/${messages.at(-1).id}`, () => page.getByText('What became of it').waitFor()],
    ['dead', '/streams/dead', () => page.getByText('No dead letters').waitFor()],
    ['webhooks', '/webhooks', () => page.getByRole('row').filter({ hasText: 'crm.example' }).waitFor()],
    ['deliveries', `/webhooks/${webhook.endpoint.id}`, () => page.getByText('No deliveries').waitFor()],
    ['people', '/people', () => page.getByRole('row').filter({ hasText: 'Grace Hopper' }).waitFor()],
    ['visitors', '/visitors', () => page.getByRole('row').filter({ hasText: 'Katherine' }).waitFor()],
    ['audit', '/audit', () => page.getByRole('row').filter({ hasText: 'token.create' }).waitFor()],
    ['account', '/account', () => page.getByText('This browser').waitFor()],
  ];
  let checked = 0;
  const checkScreen = async (name) => {
    checked++;
    await assertAccessible(page, name);
    await page.screenshot({ path: join(config.shots, `panel-${name}.png`) });
  };
  for (const [suffix, scheme, viewport] of [['', 'light', { width: 1440, height: 900 }], ['-dark', 'dark', { width: 1440, height: 900 }], ['-phone', 'light', { width: 390, height: 800 }]]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await page.setViewportSize(viewport);
    for (const [name, path, ready] of shown) {
      await navigate(page, path);
      await ready();
      await checkScreen(name + suffix);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await navigate(page, '/tokens');
  await button(page, 'New token').click();
  await checkScreen('dialog');
  await page.keyboard.press('Escape');
  await navigate(page, '/webhooks');
  await button(page, 'New endpoint').click();
  await button(page, 'Only some').click();
  await checkScreen('webhook-dialog');
  await page.keyboard.press('Escape');
  await navigate(page, `/inbox/${chats[0].id}`);
  await button(page, 'Filters').click();
  await button(page, 'Details').click();
  await checkScreen('filters');
  for (const opens of ['Offer choices', 'Send a template', 'Keyboard shortcuts', 'Notifications']) {
    await button(page, opens).click();
    await dialog(page, opens).waitFor();
    await checkScreen(opens.toLowerCase().replaceAll(' ', '-'));
    await page.keyboard.press('Escape');
  }
  await page.getByRole('button', { name: 'your account, theme and sign-out' }).click();
  await checkScreen('menu');
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor();
  await checkScreen('sign-in');
  report(`axe: 0 findings on ${checked} screens`);
}

// Scenarios of the panel: the settings of applications, and templates. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { button, chatRow, eventually, signIn } from '../page.mjs';
import { assertClean, dialog, messageWith, navigate, registerVisitor } from './shared.mjs';

/** The preview shows the widget with the unsaved settings. */
export async function applications(env) {
  const { config } = env;
  const page = await signIn(env, { path: `/applications/${config.appId}` });
  const frame = page.frameLocator('iframe');
  await frame.locator('.header').waitFor();
  await page.getByLabel('Primary', { exact: true }).fill('#7c2d12');
  await eventually('the preview has the new primary colour', async () => assert.equal(await frame.locator('.sendbutton, .header').first().evaluate((e) => getComputedStyle(e.closest('.p')).getPropertyValue('--primary').trim()), '#7c2d12'));
  await page.getByLabel('Title').fill('Preview');
  await frame.getByRole('heading', { name: 'Preview', exact: true }).waitFor();
  await page.keyboard.type(' only', { delay: 100 }); // the preview, which has changed in between, has not taken the focus
  assert.equal(await page.getByLabel('Title').inputValue(), 'Preview only');
  await frame.getByText('Preview only').waitFor();
  await frame.getByLabel('Your message').fill('hello');
  await frame.getByLabel('Your message').press('Enter');
  await frame.getByText('This is a preview: nothing is sent.', { exact: true }).waitFor();
  await button(page, 'Form').click();
  await frame.getByRole('button', { name: 'Start the chat' }).waitFor();
  await button(page, 'Phone').click();
  await eventually('the preview has the width of a phone', async () => assert.equal(await page.locator('iframe').evaluate((e) => e.clientWidth), 375));
  await button(page, 'Dark').click();
  await eventually('the preview has the dark theme', async () => assert.equal(await frame.locator('.p').getAttribute('data-theme'), 'dark'));
  const settings = async () => (await fetch(`${config.base}/settings/${config.appId}`)).json();
  assert.notEqual((await settings()).name, 'Preview only', 'the draft is not saved yet');
  await page.getByLabel('Title').fill('Shop chat');
  await button(page, 'Save').click();
  await page.getByText('Application saved').waitFor();
  await eventually('the Widget API returns the new settings', async () => {
    const s = await settings();
    assert.deepEqual([s.name, s.widgetConfigs.primaryBackgroundColor], ['Shop chat', '#7c2d12']);
  });

  await page.getByRole('link', { name: 'Form and greetings' }).click();
  await button(page, 'Add greeting').click();
  await page.getByRole('textbox', { name: /^Greeting/ }).last().fill('And one more thing.');
  await button(page, 'Chat').click();
  await frame.getByText('And one more thing.').first().waitFor();
  await page.getByRole('link', { name: 'Install' }).click(); // the other tab keeps the unsaved changes
  assert.match(await page.getByRole('region', { name: 'Embed snippet' }).textContent(), new RegExp(`widget\\.js.*${config.appId}`));
  await button(page, 'Add origin').click();
  await page.getByRole('textbox', { name: /^Origin/ }).last().fill('https://www.example.com/shop');
  await page.getByText('An origin has no path.').waitFor();
  await page.keyboard.press('Tab');
  await page.getByText('You have unsaved changes.').waitFor();
  await button(page, 'Discard').click();
  await page.getByRole('link', { name: 'Identity and files' }).click();
  await page.getByLabel('Required', { exact: true }).click();
  await page.getByText('Create an identity secret first.').waitFor();
  await button(page, 'Create secret').click();
  await button(dialog(page, 'Create secret'), 'Create').click();
  await dialog(page, 'Identity secret').getByRole('region', { name: 'Secret' }).waitFor();
  await button(dialog(page, 'Identity secret'), 'I have copied it').click();
  await page.getByLabel('For sessions', { exact: true }).click();
  await page.getByText('Identity verification: for sessions').waitFor();
  await assertClean(page, config);
}

export async function templates(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/templates/new' });
  await page.getByLabel('Name', { exact: true }).fill('Order sent');
  await page.getByLabel('Text', { exact: true }).fill('Hello {{username}}, order {{order}} leaves on {{day}}.');
  await page.getByRole('group', { name: 'Defaults of the placeholders' }).getByLabel('day').fill('Monday');
  await page.getByText('Hello Ada Lovelace, order  leaves on Monday.').waitFor();
  await page.getByText('Without a value: order').waitFor();
  await button(page, 'Save').click();
  await page.getByText('Draft', { exact: true }).waitFor();
  await button(page, 'Submit for approval').click();
  await page.getByText('Waiting for approval').waitFor();
  await button(page, 'Reject').click();
  await dialog(page, 'Reject this template?').getByLabel('Reason').fill('Say which order.');
  await button(dialog(page, 'Reject this template?'), 'Reject').click();
  await page.getByText('Say which order.').first().waitFor();
  await button(page, 'Submit for approval').click();
  await button(page, 'Approve').click();
  await page.getByText('It can be sent.').waitFor();
  await page.getByText('Approved', { exact: true }).last().waitFor();
  await button(page, 'Test push').click();
  const test = dialog(page, 'Test push');
  await test.getByLabel('Phone number').fill('351912345678');
  await button(test, 'Run the test').click();
  await test.getByText('This would be refused:').waitFor();
  await test.getByLabel('order').fill('1042');
  await button(test, 'Run the test').click();
  await test.getByText('This would be sent to 351912345678.').waitFor();
  await button(test, 'Close').first().click();

  await navigate(page, '/inbox');
  await registerVisitor(config, 'Ada', 'Hello');
  await chatRow(page, 'Ada').click();
  await button(page, 'Send a template').click();
  const picker = dialog(page, 'Send a template');
  await picker.getByLabel('Template').selectOption({ label: 'Order sent' });
  await picker.getByLabel('order').fill('1042');
  await button(picker, 'Send').click();
  await messageWith(page, 'Hello Ada, order 1042 leaves on Monday.').waitFor();
  await assertClean(page, config);
}

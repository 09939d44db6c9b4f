// Scenarios of the chat widget: the keyboard, sound and phones. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { eventually, holdPosts, png, unique, write } from '../page.mjs';
import { composer, launcher, messageWith, picture, register, rows, sendFromCompany } from './shared.mjs';

/** A chat with the keyboard only, zoomed, and with forced colours. */
export async function keyboard({ open, report }) {
  const page = await open({ viewport: { width: 640, height: 480 }, forcedColors: 'active', reducedMotion: 'reduce' }); // 1280 x 960 at 200%
  const focused = () => page.evaluate(() => {
    const e = document.activeElement?.shadowRoot?.activeElement ?? document.activeElement;
    return e?.getAttribute('aria-label') || e?.name || e?.textContent?.trim().slice(0, 40) || e?.tagName;
  });
  const tabTo = async (wanted) => {
    for (let i = 0; i < 40; i++) {
      if (wanted.test(await focused())) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`Tab does not reach ${wanted}, but ${await focused()}`);
  };
  await tabTo(/^Open chat/);
  await page.keyboard.press('Enter');
  await page.getByLabel('First name').waitFor();
  await eventually('the first field has the focus', async () => assert.equal(await focused(), 'firstName'));
  await page.keyboard.type('Ada');
  await tabTo(/^email/);
  await page.keyboard.type(`ada${unique()}@example.com`);
  await page.keyboard.press('Enter');
  await eventually('the composer has the focus', async () => assert.equal(await focused(), 'Your message'));
  await page.keyboard.type('menu');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'What time is it?' }).waitFor();
  await eventually('the answer is announced', async () => assert.match(await page.locator('[aria-live=polite]').textContent(), /^Polly: Here is what I can show you/));
  assert.equal(await page.locator('[aria-live=polite], [aria-live=assertive], [role=alert]').count(), 1, 'there is one live region');
  for (let i = 0; i < 40 && (await focused()) !== 'Messages'; i++) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('ArrowUp'); // the newest message
  await page.keyboard.press('Enter'); // moves the focus into the message
  await eventually('Enter moves the focus into the message', async () => assert.match(await focused(), /Show me a picture/));
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  assert.match(await focused(), /What time is it/);
  await page.keyboard.press('Enter');
  await messageWith(page, /^Your message came at/).waitFor();
  await page.keyboard.press('Escape'); // moves the focus out of the message
  await tabTo(/^Your message$/);
  const releasePost = await holdPosts(page, /\/message$/);
  await page.keyboard.type('help');
  await page.keyboard.press('Enter');
  await page.locator('.pending').waitFor();
  for (let i = 0; i < 40 && (await focused()) !== 'Messages'; i++) await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('End');
  await eventually('the message that is sent has the focus', async () => assert.match(await focused(), /Sending/));
  releasePost();
  await page.locator('.pending').waitFor({ state: 'detached' });
  assert.match(await focused(), /^You, /, `the sent message has the focus of the pending one, but ${await focused()} has it`);
  await tabTo(/^More options/);
  await page.keyboard.press('Enter');
  await tabTo(/^Delete this chat/);
  await page.keyboard.press('Enter');
  await eventually('Cancel has the focus in the confirmation', async () => assert.equal(await focused(), 'Cancel'));
  await page.keyboard.press('Escape');
  await eventually('the focus is restored after the confirmation', async () => assert.equal(await focused(), 'More options'));
  await page.keyboard.press('Enter');
  await page.locator('.menu').waitFor();
  await tabTo(/^Messages$/);
  assert.equal(await page.locator('.menu').count(), 0, 'the menu closes when the focus leaves it');
  await page.keyboard.press('Escape');
  await eventually('Escape closes the chat and restores the focus', async () => assert.match(await focused(), /^Open chat/));
  await page.keyboard.press('Enter');
  await tabTo(/^Close chat/);
  await page.getByRole('button', { name: 'Close chat' }).first().focus(); // the launcher;
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  assert.match(await focused(), /^Open chat/, 'Escape on the launcher closes the chat');
  assert.deepEqual(page.errors, []);
  report('widget keyboard: a complete chat');
}

/** A message plays one sound regardless of the number of tabs, and none after sound is turned off in one tab. */
export async function sound({ open, report }) {
  const countTones = (p) => p.addInitScript(() => {
    window.tones = 0;
    const { createOscillator } = AudioContext.prototype;
    AudioContext.prototype.createOscillator = function () {
      window.tones++;
      return createOscillator.call(this);
    };
  });
  const one = await open({ before: countTones });
  await register(one);
  const two = await open({ context: one.context(), before: countTones });
  await launcher(two).click();
  await rows(two).first().waitFor();
  const soundsPlayed = async () => (await Promise.all([one, two].map((p) => p.evaluate(() => window.tones / 2)))).reduce((a, b) => a + b);
  const unread = async (n) => {
    for (const page of [one, two]) await page.getByRole('button', { name: `Open chat: ${n}` }).waitFor();
  };
  await write(two, 'in sight');
  for (const page of [one, two]) await messageWith(page, 'You wrote “in sight”').waitFor();
  assert.equal(await soundsPlayed(), 0, 'a visible message plays no sound');
  for (const page of [one, two]) await page.evaluate(() => Parley.close());
  await sendFromCompany(two);
  await unread(1);
  await eventually('one sound is played', async () => assert.equal(await soundsPlayed(), 1));

  await two.evaluate(() => Parley.open());
  await two.getByRole('button', { name: 'More options' }).click();
  await two.getByRole('button', { name: 'Turn sound off' }).click();
  await two.getByRole('button', { name: 'Turn sound on' }).waitFor();
  await two.evaluate(() => Parley.close());
  await one.evaluate(() => Parley.open());
  await one.getByRole('button', { name: 'More options' }).click();
  await one.getByRole('button', { name: 'Turn sound on' }).waitFor(); // off in this tab too
  await one.evaluate(() => Parley.close());
  await launcher(one).waitFor();
  await sendFromCompany(two);
  await unread(1);
  assert.equal(await soundsPlayed(), 1, 'no sound is played when sound is off');
  await two.reload();
  await two.getByRole('button', { name: 'Open chat: 1' }).click();
  await two.getByRole('button', { name: 'More options' }).click();
  await two.getByRole('button', { name: 'Turn sound on' }).waitFor(); // the setting is stored
  assert.deepEqual([...one.errors, ...two.errors], []);
  report('widget sound: one for two tabs, none when off');
}

/** On a phone the keyboard covers half of the screen, and does not cover the chat. */
export async function phone({ config, open, report }) {
  const page = await open({
    url: `${config.base}/demo`, viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true,
    before: (p) => p.addInitScript(() => {
      // Headless Chromium has no on-screen keyboard, so the visual viewport is faked.
      const shown = {};
      for (const key of ['height', 'offsetTop']) {
        const { get } = Object.getOwnPropertyDescriptor(VisualViewport.prototype, key);
        Object.defineProperty(VisualViewport.prototype, key, { get() { return shown[key] ?? get.call(this); } });
      }
      window.keyboard = (height, offsetTop) => {
        Object.assign(shown, { height, offsetTop });
        visualViewport.dispatchEvent(new Event('resize'));
      };
    }),
  });
  await launcher(page).tap();
  await page.getByLabel('First name').waitFor();
  assert.notEqual(await page.evaluate(() => document.querySelector('body > div:last-of-type').shadowRoot.activeElement?.tagName), 'INPUT', 'opening the chat does not focus an input, which would show the keyboard');
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Email').fill(`ada${unique()}@example.com`);
  await page.getByRole('button', { name: 'Start the chat' }).tap();
  await rows(page).first().waitFor();
  await composer(page).tap();
  const [camera] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Take a photo' }).tap()]);
  assert.equal(await camera.element().getAttribute('capture'), 'environment');
  await camera.setFiles([{ name: 'photo.png', mimeType: 'image/png', buffer: png }]);
  await page.getByRole('button', { name: 'Remove photo.png' }).tap();
  for (let i = 0; i < 6; i++) await write(page, `line ${i}`);
  await messageWith(page, 'You wrote “line 5”').waitFor();
  await page.evaluate(() => keyboard(420, 60));
  const panel = async () => {
    const { x, y, width, height } = await page.locator('.p').boundingBox();
    return [x, y, width, height];
  };
  await eventually('the chat fills the screen above the keyboard', async () => assert.deepEqual(await panel(), [0, 60, 390, 420]));
  const area = await composer(page).boundingBox();
  assert.ok(area.y >= 60 && area.y + area.height <= 480, `the composer is above the keyboard: ${JSON.stringify(area)}`);
  await eventually('the newest message is visible', async () => {
    const { y, height } = await rows(page).last().boundingBox();
    assert.ok(y > 60 && y + height <= area.y + 1, `${y} ${height}`);
  });
  await page.evaluate(() => keyboard(undefined, undefined));
  await eventually('the chat fills the screen again', async () => assert.deepEqual(await panel(), [0, 0, 390, 780]));
  await page.evaluate(() => Object.defineProperty(visualViewport, 'scale', { value: 2, configurable: true }));
  await page.evaluate(() => keyboard(390, 100)); // zoomed with two fingers
  await eventually('zooming does not resize the chat', async () => assert.deepEqual(await panel(), [0, 0, 390, 780]));
  await page.locator('.header').getByRole('button', { name: 'Close chat' }).tap();
  await launcher(page).waitFor();
  assert.deepEqual(page.errors, []);
  report('widget phone: the composer stays above the keyboard');
}

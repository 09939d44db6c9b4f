// Scenarios of the chat widget: every screen, with axe and in pictures. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { axePath, axeRules, eventually, png, unique } from '../page.mjs';
import { cors, launcher, picture, withHistory } from './shared.mjs';

/** A history with messages of every type, including an unknown type and pictures on other hosts. */
function sampleHistory(base) {
  const now = Date.now();
  let n = 0;
  const m = (type, data, isFromSupport = true, ago = 60) => ({
    id: `00000000-0000-7000-8000-${String(++n).padStart(12, '0')}`, createdAt: new Date(now - ago * 60_000 + n * 1000).toISOString(), type, data,
    nameOfSender: isFromSupport ? 'Polly' : 'Ada', isFromSupport,
  });
  const file = (name, mime) => ({ url: `${base}/demo/assets/parley.png`, mime, fileName: name, size: 48213, extension: name.split('.').pop() });
  return [
    m('TEXT', { text: 'Hello, I am Polly. How can I help you today?' }, true, 3000),
    m('TEXT', { text: 'My parcel has not arrived yet.' }, false, 2990),
    m('TEMPLATE', { templateId: 'x', name: 'order', text: 'Hello Ada, your order 1042 is on its way: https://shop.example.com/orders/1042' }),
    m('TEXT', { format: 'markdown', text: '**Order 1042** is on its *way*:\n\n- depot `B7`\n- [track it](https://shop.example.com/t)\n\n> Signed on delivery' }),
    m('INTERACTIVE', { header: 'Order 1042', body: 'It leaves the depot today.', footer: 'Open until 18:00', buttons: [{ type: 'reply', title: 'Change the address', payload: 'a' }, { type: 'url', title: 'Track it', url: 'https://shop.example.com/t' }, { type: 'phone', title: 'Call us', phone: '+982112345678' }] }),
    m('CAROUSEL', { cards: [{ title: 'Blue mug', subtitle: '0.3 l, stoneware', imageUrl: `${base}/demo/assets/parley.png`, buttons: [{ type: 'reply', title: 'Choose', payload: 'b' }] }, { title: 'Red mug', subtitle: 'Picture on another host', imageUrl: 'https://cdn.third.example/red.png', buttons: [{ type: 'reply', title: 'Choose', payload: 'r' }] }, { title: 'Green mug' }] }),
    m('IMAGE', { ...file('parcel.png', 'image/png'), caption: 'Your parcel at the depot' }),
    m('VIDEO', file('how-to-unbox.mp4', 'video/mp4')),
    m('AUDIO', file('voice-note.ogg', 'audio/ogg')),
    m('FILE', { ...file('invoice-2026-1042-final-version.pdf', 'application/pdf'), caption: 'The invoice' }),
    m('IMAGE', { url: 'https://cdn.third.example/x.png', fileName: 'elsewhere.png' }),
    m('TEXT', { text: 'Thank you, the evening is fine.' }, false, 4),
    m('MULTIPLE_CHOICE', { text: 'When shall we deliver?', choices: [{ title: 'Morning', payload: 'AM' }, { title: 'Evening', payload: 'PM' }] }, true, 3),
    m('FUTURE_TYPE', { what: 'ever' }, true, 3),
  ];
}

/** Checks every screen with axe and takes a screenshot: in both text directions, light and dark, on a desktop and on a phone. */
export async function screens({ config, open, report }) {
  const url = `${config.base}/demo`;
  let findings = 0;
  let audited = 0;
  for (const [language, rtl] of [['en', false], ['fa', true]]) {
    for (const phone of [false, true]) {
      await Promise.all(['light', 'dark'].map(async (scheme) => {
        const page = await open({
          url, colorScheme: scheme, bypassCSP: true, reducedMotion: 'reduce',
          ...(phone && { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true }),
          before: async (p) => {
            await withHistory(p, sampleHistory(config.base));
            await p.addInitScript((code) => {
              window.Parley = [['setLanguage', code]];
            }, language);
          },
        });
        await page.addScriptTag({ path: axePath });
        const checkScreen = async (name) => {
          await page.evaluate(() => document.fonts.ready);
          const result = await page.evaluate((runOnly) => axe.run(document.querySelector('body > div:last-of-type'), { runOnly }), axeRules);
          audited++;
          for (const v of result.violations) {
            findings += v.nodes.length;
            for (const n of v.nodes) report(`axe ${name} ${language} ${scheme}: ${v.id}: ${n.target.flat().join(' ')}: ${n.any.concat(n.all, n.none).map((c) => c.message).join('; ')}`);
          }
          const file = ['widget', name, rtl ? 'rtl' : '', scheme === 'dark' ? 'dark' : '', phone ? 'phone' : ''].filter(Boolean).join('-');
          const clip = { x: rtl ? 0 : 620, y: 0, width: 480, height: 850 };
          await page.screenshot({ path: join(config.shots, `${file}.png`), ...(!phone && !/launcher|chat/.test(name) && { clip }) });
        };
        await checkScreen('launcher');
        await page.evaluate(() => Parley.open());
        await page.locator('form.card input').first().waitFor();
        await checkScreen('form');
        await page.locator('form.card .primary').click();
        await page.locator('form.card .error').first().waitFor();
        await checkScreen('form-errors');
        await page.locator('input[name=firstName]').fill('Ada');
        await page.locator('input[name=email]').fill(`ada${unique()}@example.com`);
        await page.locator('form.card .primary').click();
        await page.locator('.t-future_type').waitFor();
        await checkScreen('chat');
        const log = page.locator('[role=log]');
        await log.evaluate((e) => { e.scrollTop = 0; });
        await page.locator('.t-interactive').waitFor();
        await checkScreen('types');
        await page.locator('.t-carousel').scrollIntoViewIfNeeded();
        await page.locator('.t-carousel img').first().waitFor();
        await checkScreen('cards');
        await page.locator('.t-audio').scrollIntoViewIfNeeded();
        await page.locator('.t-image img').first().waitFor();
        await checkScreen('files');
        await page.locator('.thumb').first().click();
        await page.locator('.preview img').waitFor();
        await checkScreen('preview');
        await page.keyboard.press('Escape');
        await page.locator('.header .round').first().click();
        await page.locator('.menu').waitFor();
        await checkScreen('menu');
        await page.locator('.menu .item').last().click();
        await page.locator('.danger').waitFor();
        await checkScreen('forget');
        await page.keyboard.press('Escape');
        assert.equal(await page.locator('.menu').count(), 0, 'Escape also closes the menu while it asks for confirmation');
        await page.locator('input[type=file]').first().setInputFiles([{ name: 'parcel.png', mimeType: 'image/png', buffer: picture }, { name: 'receipt.pdf', mimeType: 'application/pdf', buffer: Buffer.alloc(70_000, 120) }]);
        await page.locator('.staged li').last().waitFor();
        await page.locator('textarea').fill('The parcel and the receipt');
        await checkScreen('staged');
        const refuse = (route) => route.fulfill({ status: 413, headers: cors, json: { statusCode: 413, code: 'FILE_QUOTA', message: 'no' } });
        await page.route(/\/message$/, refuse);
        await page.locator('.sendbutton').click();
        await page.locator('.pending.bad').last().waitFor();
        await eventually('both files are rejected', async () => assert.equal(await page.locator('.pending.bad').count(), 2));
        await checkScreen('refused');
        for (let left = 2; left > 0; left--) {
          await page.locator('.pending.bad .textbutton').last().click();
          await eventually(`${left - 1} rejected files are left`, async () => assert.equal(await page.locator('.pending.bad').count(), left - 1));
        }
        await page.unroute(/\/message$/, refuse);
        await page.context().setOffline(true);
        await page.locator('.banner').waitFor();
        await page.locator('#parley-text').fill('Written without a connection');
        await page.locator('.sendbutton').click();
        await page.locator('.pending').waitFor();
        await checkScreen('offline');
        assert.ok(page.requestedUrls.every((u) => !u.includes('third.example')), 'no picture is requested from other hosts');
        if (phone) {
          const box = await page.locator('.p').boundingBox();
          assert.deepEqual([box.x, box.y, box.width], [0, 0, 390], 'the chat fills the screen of a phone');
          assert.ok((await page.locator('.p button:visible, .p input:visible, .p textarea').evaluateAll((all) => all.filter((e) => !e.disabled && e.getBoundingClientRect().width > 0 && (e.offsetWidth < 24 || e.offsetHeight < 24)).map((e) => e.outerHTML))).length === 0, 'touch targets have at least 24 px');
          assert.equal(await page.locator('textarea').evaluate((e) => parseFloat(getComputedStyle(e).fontSize)), 16);
        }
        assert.equal(await page.locator('.p').getAttribute('dir'), rtl ? 'rtl' : 'ltr');

        // The next page load counts all messages as unread. Its stored stream position is removed, because the stream contains another greeting.
        await page.evaluate((key) => {
          Parley.destroy();
          const { read, recovery, ...rest } = JSON.parse(localStorage.getItem(key));
          localStorage.setItem(key, JSON.stringify({ ...rest, unreadCount: 1 }));
        }, `parley.${config.appId}`);
        await page.route(/\/message$/, refuse); // otherwise the bot answers the message written offline, and the answer is unread too
        await page.context().setOffline(false);
        await page.reload();
        await page.addScriptTag({ path: axePath });
        await page.getByRole('button', { name: /: 12$/ }).waitFor();
        await checkScreen('launcher-unread');
        assert.deepEqual(page.errors, []);
        await page.context().close();
      }));
    }
  }
  report(`widget axe: ${findings} findings on ${audited} screens`);
  assert.equal(findings, 0);
}

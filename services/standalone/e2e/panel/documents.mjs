// Scenarios of the panel: the documents that bots answer from. widget.mjs runs one exported function.

import assert from 'node:assert/strict';
import { button, eventually, signIn } from '../page.mjs';
import { api, assertAccessible, assertClean, dialog, navigate, openVisitorPage, serve, waitForHeading } from './shared.mjs';

const row = (page, title) => page.getByRole('row').filter({ hasText: title });

/** Chooses a file in the form of a document. */
async function chooseFile(page, name, contents) {
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), button(page, 'Choose a file').click()]);
  await chooser.setFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(contents) });
}

/** Asks in the card "Try a question", and returns the passages. */
async function search(page, question) {
  await page.getByLabel('Question', { exact: true }).fill(question);
  await button(page, 'Search').click();
  return page.getByRole('list', { name: 'Passages found' });
}

/** A PDF file of one page. PDFium finds its objects without a table of them. */
const PDF = `%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>> endobj
4 0 obj <</Length 51>> stream
BT /F 12 Tf 50 700 Td (Parcels leave at noon.) Tj ET
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
trailer <</Root 1 0 R>>
`;

/**
 * A document is added from a file, found by a question, edited, changed by somebody else meanwhile, and deleted. Then a bot answers from
 * another one, and the answer that it has not found is written.
 */
export async function documents(env) {
  const { config } = env;
  const page = await signIn(env, { path: '/documents' });
  await page.getByText('No documents yet').waitFor();
  await assertAccessible(page, 'no documents');
  await page.getByRole('link', { name: 'Add document' }).first().click();
  await waitForHeading(page, 'Add document');
  await button(page, 'Save').click();
  await page.getByText('Fill in this field.').first().waitFor();
  await chooseFile(page, 'returns.docx', 'x');
  await page.getByText('Choose a file that ends in .md').waitFor();
  await chooseFile(page, 'returns.pdf', 'x');
  await page.getByText('The file is not a PDF, or it is damaged.').waitFor();
  await chooseFile(page, 'Parcels.pdf', PDF);
  await eventually('the PDF fills the form', async () => assert.match(await page.getByLabel('Text', { exact: true }).inputValue(), /^# Page 1\n\nParcels leave at noon/));
  assert.equal(await page.getByLabel('Title').inputValue(), 'Parcels');
  await page.getByLabel('Title').fill('');
  await chooseFile(page, 'returns.txt', [0x47, 0xfc]);
  await page.getByText('The file is not UTF-8 text.').waitFor();
  await chooseFile(page, 'Returns.md', '# Costs\n\nReturning a parcel costs nothing.\n\n# Deadline\n\nA parcel may be returned for thirty days.\n');
  await eventually('the file fills the form', async () => assert.equal(await page.getByLabel('Title').inputValue(), 'Returns'));
  assert.equal(await page.getByLabel('Format').inputValue(), 'markdown');
  await page.getByLabel('Address').fill('ftp://shop.example');
  await button(page, 'Save').click();
  await page.getByText('Must be an http or https URL.').waitFor();
  await assertAccessible(page, 'the form of a document');
  await page.getByLabel('Address').fill('https://shop.example/returns');
  await button(page, 'Save').click();
  await page.getByText('Document added').waitFor();
  await row(page, 'Returns').getByText('Markdown').waitFor();
  await row(page, 'Returns').getByRole('link', { name: 'https://shop.example/returns' }).waitFor();

  const found = await search(page, 'How many days may I return a parcel?');
  await found.getByText('Returns › Deadline').first().waitFor();
  await found.getByText('for thirty days').waitFor();
  await assertAccessible(page, 'passages');

  await row(page, 'Returns').getByRole('link', { name: 'Returns', exact: true }).click();
  await waitForHeading(page, 'Returns');
  const text = page.getByLabel('Text', { exact: true });
  await text.fill('# Deadline\n\nA parcel may be returned for sixty days.\n');
  const { documents: [stored] } = await api(page, 'GET', 'documents');
  await api(page, 'PUT', `documents/${stored.id}`, { title: 'Returns', address: stored.address, format: 'markdown', text: '# Deadline\n\nForty days.\n' });
  await button(page, 'Save').click();
  await page.getByText('Somebody else has saved this document meanwhile.').waitFor();
  await button(page, 'Load').click();
  await eventually('the new version is shown', async () => assert.match(await text.inputValue(), /Forty/));
  await text.fill('# Deadline\n\nA parcel may be returned for sixty days.\n');
  await button(page, 'Save').click();
  await page.getByText('Document saved').waitFor();
  await (await search(page, 'How many days may I return a parcel?')).getByText('for sixty days').waitFor();

  await fromAddress(page);
  await ranking(page);
  await citations(env, page);

  await navigate(page, '/documents');
  for (const title of ['Returns', 'Do you sell boats?']) {
    await button(page, `Delete ${title}`).click();
    await button(dialog(page, 'Delete this document?'), 'Delete').click();
    await dialog(page, 'Delete this document?').waitFor({ state: 'detached' });
  }
  await page.getByText('No documents yet').waitFor();
  await assertClean(page, config);
}

/** A document is fetched from its address, changed there, fetched again, and gone. */
async function fromAddress(page) {
  let answer = { status: 200, text: '<title>Opening hours</title><p>We open at nine.' };
  const site = await serve((request, _, response) => {
    const { status, text } = request.url === '/hours' ? answer : { status: 404, text: '' };
    response.writeHead(status, { 'Content-Type': 'text/html' }).end(text);
  });
  await navigate(page, '/documents');
  await page.getByRole('link', { name: 'Add document' }).first().click();
  await waitForHeading(page, 'Add document');
  await page.getByLabel('A web page').check();
  await button(page, 'Save').click();
  await page.getByText('Fill in this field.').first().waitFor();
  await assertAccessible(page, 'the form of a document from an address');
  await page.getByLabel('Address').fill(`${site}/hours`);
  await button(page, 'Save').click();
  await page.getByText('Document added').last().waitFor();
  await row(page, site).getByRole('link').first().click();
  await waitForHeading(page, 'Opening hours');
  await page.getByText(/^Fetched just now\. Next fetch: /).waitFor();
  await eventually('the text is shown', async () => assert.match(await page.getByLabel('Text that was fetched').inputValue(), /at nine/));
  answer = { status: 200, text: '<p>We open at ten.' };
  await button(page, 'Fetch now').click();
  await eventually('the new text is shown', async () => assert.match(await page.getByLabel('Text that was fetched').inputValue(), /at ten/));
  answer = { status: 404, text: '' };
  await button(page, 'Fetch now').click();
  await page.getByText('The server answered 404 Not Found').waitFor();
  await assertAccessible(page, 'a fetch that failed');
  await navigate(page, '/documents');
  await row(page, 'Opening hours').getByText('The server answered 404 Not Found').waitFor();
  await button(page, 'Delete Opening hours').click();
  await button(dialog(page, 'Delete this document?'), 'Delete').click();
  await row(page, 'Opening hours').waitFor({ state: 'detached' });
}

/** A model of the company ranks by meaning: one that it does not know is an error at its field. */
async function ranking(page) {
  const models = await serve((request, body, response) => {
    const { model, input } = JSON.parse(body);
    response.statusCode = model === 'small' ? 200 : 404;
    response.end(JSON.stringify({ data: input.map((_, index) => ({ index, embedding: [1, index] })) }));
  });
  await api(page, 'POST', 'connections', { name: 'Meanings', baseUrl: models });
  await navigate(page, '/applications');
  await navigate(page, '/documents');
  await page.getByLabel('Connection').selectOption({ label: 'Meanings' });
  const model = page.getByLabel('Model for embeddings');
  await model.fill('large');
  await button(page, 'Save ranking').click();
  await page.getByText('The server answered 404').waitFor();
  await assertAccessible(page, 'the ranking with an error');
  await model.fill('small');
  await button(page, 'Save ranking').click();
  await page.getByText('Ranking saved').waitFor();
  await page.getByText('1 of 1 passages are ranked by meaning.').waitFor();
  await page.getByLabel('Connection').selectOption({ label: 'None: words alone' });
  await button(page, 'Save ranking').click();
  await page.getByText('are ranked by meaning.').waitFor({ state: 'detached' });
}

/** The log of calls has what an answer cites; what has no answer in the documents gets one. */
async function citations(env, page) {
  const { config } = env;
  const models = await serve((request, body, response) => {
    response.setHeader('Content-Type', 'application/json');
    if (request.method === 'GET') return response.end('{"data":[{"id":"small"}]}');
    const { messages } = JSON.parse(body);
    const content = messages[0].content.startsWith('You help to search')
      ? 'returned parcel period'
      : messages.at(-1).content.includes('return') && messages[0].content.includes('sixty days')
        ? 'For sixty days [1].'
        : 'I have not found it.';
    response.end(JSON.stringify({ choices: [{ message: { content }, finish_reason: 'stop' }] }));
  });
  const connection = await api(page, 'POST', 'connections', { name: 'Models', baseUrl: `${models}/v1` });
  const model = { connectionId: connection.id, model: 'small' };
  await api(page, 'PUT', `applications/${config.appId}/bot`, { kind: 'model', model });
  await navigate(page, `/applications/${config.appId}/bot`);
  const passages = page.getByLabel('Passages from the documents');
  await passages.fill('11');
  await button(page, 'Save draft').click();
  await page.locator('.field').filter({ has: passages }).locator('.error').waitFor();
  await passages.fill('3');
  assert.ok(await page.getByLabel('The model writes words to search with').isChecked());
  await button(page, 'Publish').click();
  await page.getByText('Version 1 is in force').waitFor();

  const ada = await openVisitorPage(env, 'Ada');
  await ada.write('How long may I return a parcel?');
  await ada.messageWith('For sixty days').waitFor();
  await ada.write('Do you sell boats?');
  await ada.messageWith('I have not found it.').waitFor();

  const calls = page.locator('.panel-card').filter({ has: page.getByRole('heading', { name: 'Calls', exact: true }) });
  const answered = calls.locator('.calls > li').filter({ hasText: 'How long may I return a parcel?' });
  const boats = calls.locator('.calls > li').filter({ hasText: 'Do you sell boats?' });
  await eventually('the log has both questions', async () => {
    await button(calls, 'Refresh the calls').click();
    await boats.getByText('I have not found it.').waitFor({ timeout: 1_000 });
    await answered.waitFor({ timeout: 1_000 });
  });
  await answered.getByText('How long may I return a parcel?').click();
  await answered.getByRole('list', { name: 'Cited passages' }).getByRole('link', { name: 'Returns › Deadline' }).waitFor();
  await answered.getByText('Searched with: returned parcel period').waitFor();
  await calls.getByLabel('Without an answer').check();
  await answered.waitFor({ state: 'detached' });
  await boats.getByText('Do you sell boats?').click();
  await assertAccessible(page, 'calls without an answer');
  await boats.getByRole('link', { name: 'Write the answer' }).click();
  await waitForHeading(page, 'Add document');
  assert.equal(await page.getByLabel('Title').inputValue(), 'Do you sell boats?');
  assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), '## Do you sell boats?\n\n');
  await page.getByLabel('Text', { exact: true }).fill('## Do you sell boats?\n\nNo, only parcels.\n');
  await button(page, 'Save').click();
  await row(page, 'Do you sell boats?').waitFor();
}

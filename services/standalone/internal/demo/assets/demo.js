// The session flow: settings, register, socket, history, send. The socket only brings messages; what the visitor writes goes
// over HTTP. History and socket are merged by id, and the history is read again after every (re)connect, so that nothing is
// shown twice and nothing that passed by while the connection was away is missing.

import { element, message } from './render.js';

const $ = (id) => document.getElementById(id);
const config = await (await fetch('/demo/config.json')).json();
const remembered = `parley-demo-${config.appId}`;

let token = localStorage.getItem(remembered);
let socket;
const shown = new Map(); // id -> record, in no order: the list is the order

async function start() {
  try {
    const s = await call('GET', `/settings/${config.appId}`);
    dress(s);
    buildForm(s.widgetConfigs);
    token ? converse() : show('register');

  } catch (err) {
    problem(err);
  }
}

// call does one request and returns the answer's JSON; an answer that is not 2xx becomes an error with its body.
async function call(method, path, body) {
  const headers = {};
  if (token && path === '/message') headers.Authorization = `Bearer ${token}`;
  const form = body instanceof FormData; // whose Content-Type the browser makes
  if (body && !form) headers['Content-Type'] = 'application/json';
  const answer = await fetch(path, { method, headers, body: body && !form ? JSON.stringify(body) : body });
  const json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(json.message ?? `${answer.status}`), { status: answer.status, body: json });
  return json;
}

// dress gives the page the application's colours, title and icon.
function dress(s) {
  document.title = s.name;
  $('title').textContent = s.name;
  $('bot').textContent = `You are talking to ${s.botName}`;
  const colours = {
    primaryBackgroundColor: '--primary-bg',
    primaryTextColor: '--primary-text',
    inputTextColor: '--input-text',
    inputBackgroundColor: '--input-bg',
    footerBackgroundColor: '--footer-bg',
    contentBackgroundColor: '--content-bg',
    sentMessageBubbleBgColor: '--sent-bg',
    sentMessageBubbleTextColor: '--sent-text',
    receivedMessageBubbleBgColor: '--received-bg',
    receivedMessageBubbleTextColor: '--received-text',
    formBackgroundColor: '--form-bg',
  };
  for (const [key, property] of Object.entries(colours)) {
    const colour = s.widgetConfigs[key];
    if (CSS.supports('color', colour)) document.documentElement.style.setProperty(property, colour);
  }
  if (s.widgetConfigs.aiIconUrl) {
    $('icon').src = s.widgetConfigs.aiIconUrl;
    $('icon').hidden = false;
  }
}

const inputs = {
  firstName: { label: 'First name', autocomplete: 'given-name' },
  lastName: { label: 'Last name', autocomplete: 'family-name' },
  email: { label: 'E-mail', type: 'email', autocomplete: 'email' },
  phone: { label: 'Phone (digits only)', type: 'tel', autocomplete: 'tel' },
  userId: { label: 'Customer number', autocomplete: 'off' },
};

function buildForm({ formInputs = [], requiredFields = [] }) {
  const names = [...new Set([...formInputs, ...requiredFields])];
  for (const name of names) {
    const { label = name, type = 'text', autocomplete = 'off' } = inputs[name] ?? {};
    const needed = requiredFields.includes(name);
    const input = element('input', { name, type, autocomplete });
    input.required = needed;
    $('fields').append(element('label', {}, label, needed ? '' : element('span', { class: 'need' }, ' (optional)'), input));
  }
}

$('register').addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  clearFaults(form);
  const body = { appId: config.appId };
  for (const [name, value] of new FormData(form)) if (value.trim()) body[name] = value.trim();
  await busy(form, async () => {
    token = (await call('POST', '/register', body)).accessToken;
    localStorage.setItem(remembered, token);
    converse();
    $('text').focus();
  }).catch((err) => markFaults(form, err));
});

function clearFaults(form) {
  problem();
  form.querySelectorAll('.wrong').forEach((e) => e.remove());
  form.querySelectorAll('[aria-invalid]').forEach((e) => e.removeAttribute('aria-invalid'));
}

// markFaults puts the server's field errors beside their fields; the server's rules are the only ones.
function markFaults(form, err) {
  problem(err);
  for (const { field, message: text } of err.body?.details ?? []) {
    const input = form.elements[field];
    if (!input) continue;
    input.setAttribute('aria-invalid', 'true');
    input.after(element('span', { class: 'wrong' }, text));
  }
  form.querySelector('[aria-invalid]')?.focus();
}

function converse() {
  show('conversation');
  state('wait', 'Connecting …');
  socket = io('/message', { auth: { token } });
  socket.on('connect', () => {
    state('on', 'Connected');
    loadHistory();
  });
  socket.on('message', (record) => {
    know(record.chatId);
    add(record);
  });
  socket.on('disconnect', () => state('wait', 'Reconnecting …'));
  socket.on('connect_error', (err) => {
    if (err.data?.code === 'UNAUTHORIZED') return leave('Your session has ended. Please register again.');
    state('wait', 'Reconnecting …');
  });
}

async function loadHistory() {
  try {
    (await call('GET', '/message')).forEach(add);
    problem();
  } catch (err) {
    if (err.status === 401) leave('Your session has ended. Please register again.');
    else if (err.status !== 404) problem(err); // 404: no open chat; the next message opens one
  }
}

// add shows a record at its place, once.
function add(record) {
  if (shown.has(record.id)) return;
  shown.set(record.id, record);
  const list = $('messages');
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const after = [...list.children].find((e) => later(shown.get(e.dataset.id), record));
  list.insertBefore(message(record, choose), after ?? null);
  if (atEnd || !record.isFromSupport) list.scrollTop = list.scrollHeight;
  list.querySelectorAll('img').forEach((img) => img.addEventListener('load', () => {
    if (atEnd) list.scrollTop = list.scrollHeight;
  }, { once: true }));
}

function later(a, b) {
  return a.createdAt > b.createdAt || (a.createdAt === b.createdAt && a.id > b.id);
}

$('send').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text) return;
  if (await send({ type: 'TEXT', data: { text } })) $('text').value = '';
  $('text').focus();
});

$('attach').addEventListener('click', () => $('file').click());

// A file goes with what stands in the input as its caption.
$('file').addEventListener('change', async () => {
  const [file] = $('file').files;
  if (!file) return;
  const form = new FormData();
  const text = $('text').value.trim();
  if (text) form.append('caption', text);
  form.append('file', file);
  if (await send(form)) $('text').value = '';
  $('file').value = ''; // so that the same file can be chosen again
});

function choose(data) {
  send({ type: 'MULTIPLE_CHOICE_REPLY', data });
}

// send reports whether the message was accepted; one that was not stays in the input.
async function send(body) {
  try {
    await busy($('send'), async () => add(await call('POST', '/message', body)));
    problem();
    return true;
  } catch (err) {
    err.status === 401 ? leave('Your session has ended. Please register again.') : problem(err);
    return false;
  }
}

// busy keeps a form's buttons off while work runs, so that a double click is one message.
async function busy(form, work) {
  const buttons = form.querySelectorAll('button');
  buttons.forEach((b) => { b.disabled = true; });
  try {
    return await work();
  } finally {
    buttons.forEach((b) => { b.disabled = false; });
  }
}

// know shows how a company writes into this chat. Only realtime events carry the chat's id.
function know(chatId) {
  const body = JSON.stringify({ type: 'TEXT', chatId, data: { text: 'Hello from the company' } });
  $('curl').textContent = [
    config.tokenCommand,
    `curl -sS ${config.clientBaseUrl}/message/send -H "x-access-token: $TOKEN" \\`,
    `  -H 'Content-Type: application/json' -d '${body}'`,
  ].join('\n');
  $('company').hidden = false;
  $('no-chat').hidden = true;
}

$('copy').addEventListener('click', async () => {
  await navigator.clipboard.writeText($('curl').textContent);
  $('copy').textContent = 'Copied';
  setTimeout(() => { $('copy').textContent = 'Copy'; }, 1500);
});

$('leave').addEventListener('click', () => leave());

// leave forgets the session and shows the form.
function leave(why) {
  socket?.disconnect();
  localStorage.removeItem(remembered);
  token = null;
  shown.clear();
  $('messages').replaceChildren();
  $('company').hidden = true;
  $('no-chat').hidden = false;
  state('off', 'Not connected');
  show('register');
  problem(why && new Error(why));
}

function show(id) {
  for (const part of ['register', 'conversation']) $(part).hidden = part !== id;
  $('behind').hidden = id !== 'conversation';
}

function state(kind, text) {
  $('state').dataset.state = kind;
  $('state').textContent = text;
}

function problem(err) {
  $('problem').hidden = !err;
  $('problem').textContent = err?.message ?? '';
}

await start();

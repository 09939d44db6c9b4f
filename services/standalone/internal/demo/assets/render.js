// How each type of message looks. Everything that comes from outside is set as text or as a checked URL, never as HTML.

// element makes an element; strings among the children become text.
export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== '') e.setAttribute(key, value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ''));
  return e;
}

// link returns url when following it can do no harm, else undefined.
export function link(url, ...more) {
  if (typeof url !== 'string' || url === '') return undefined;
  try {
    const parsed = new URL(url, document.baseURI);
    return ['http:', 'https:', ...more].includes(parsed.protocol) ? parsed.href : undefined;
  } catch {
    return undefined;
  }
}

// message returns the list item for a record; reply is called with what the visitor chose.
export function message(record, reply) {
  const draw = drawings[record.type] ?? fallback;
  const wide = record.type === 'CAROUSEL';
  const bubble = element('div', { class: wide ? 'bubble plain' : 'bubble' });
  bubble.append(...[draw(record.data ?? {}, record, reply)].flat().filter(Boolean));
  const who = `${record.nameOfSender} · ${time(record.createdAt)}`;
  return element('li', {
    class: ['message', record.isFromSupport ? '' : 'mine', wide ? 'wide' : ''].join(' ').trim(),
    'data-id': record.id,
    'data-type': record.type,
  }, element('div', { class: 'who' }, who), bubble);
}

function time(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? '' : at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
}

const text = (data) => element('div', {}, String(data.text ?? ''));

const drawings = {
  TEXT: text,
  MULTIPLE_CHOICE_REPLY: text,
  TEMPLATE: text,

  MULTIPLE_CHOICE: (data, record, reply) => [
    text(data),
    choices((data.choices ?? []).map((c) => choice(c.title, c.payload, record, reply))),
  ],

  INTERACTIVE: (data, record, reply) => [
    data.header && element('div', { class: 'title' }, part(data.header)),
    element('div', {}, part(data.body)),
    data.footer && element('div', { class: 'who' }, part(data.footer)),
    choices((data.buttons ?? []).map((b) => button(b, record, reply))),
  ],

  CAROUSEL: (data, record, reply) => element('ul', { class: 'carousel', 'aria-label': 'Cards' },
    ...(data.cards ?? []).map((card) => element('li', { class: 'card' },
      picture(card.imageUrl, ''),
      element('div', { class: 'title' }, String(card.title ?? '')),
      card.subtitle && element('div', { class: 'subtitle' }, String(card.subtitle)),
      choices((card.buttons ?? []).map((b) => button(b, record, reply)))))),

  IMAGE: (data) => [picture(data.url, data.caption || data.fileName || 'Image') ?? file(data), caption(data)],
  VIDEO: (data) => [player('video', data.url), file(data), caption(data)],
  AUDIO: (data) => [player('audio', data.url), file(data), caption(data)],
  FILE: (data) => [file(data), caption(data)],
};

function fallback(data, record) {
  return [
    element('div', { class: 'title' }, String(record.type)),
    element('code', {}, JSON.stringify(data, null, 2)),
  ];
}

// part reads a part of an interactive message, which is a text or an object with one.
function part(value) {
  return typeof value === 'string' ? value : String(value?.text ?? '');
}

function caption(data) {
  return data.caption && element('div', { class: 'caption' }, String(data.caption));
}

function picture(url, alt) {
  const src = link(url, 'data:');
  return src && element('img', { src, alt: alt || ' ', loading: 'lazy' });
}

function player(kind, url) {
  const src = link(url);
  return src && element(kind, { src, controls: 'controls', preload: 'metadata' });
}

function file(data) {
  const name = String(data.fileName || data.path || data.url || 'File');
  const href = link(data.url);
  const size = data.size ? ` (${Math.ceil(data.size / 1024)} KB)` : '';
  return href ? element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, name + size) : element('div', {}, name + size);
}

function choices(buttons) {
  return buttons.length ? element('div', { class: 'choices' }, ...buttons) : undefined;
}

function button(b, record, reply) {
  if (b.type === 'url' || b.type === 'phone') {
    const href = b.type === 'url' ? link(b.url) : link(`tel:${b.phone}`, 'tel:');
    return element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, String(b.title ?? href ?? ''));
  }
  return choice(b.title, b.payload, record, reply);
}

function choice(title, payload, record, reply) {
  const b = element('button', { type: 'button' }, String(title ?? payload ?? ''));
  b.addEventListener('click', () => reply({ text: String(title ?? payload), payload: String(payload ?? title), replyTo: record.id }));
  return b;
}

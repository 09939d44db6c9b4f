import type { ComponentChildren } from 'preact';
import { useRef, useState } from './hooks.js';
import { buttonsOf, cardsOf, choicesOf, part, text, type Button, type Data, type Message } from '../message.js';
import { hostOf, isOn, pieces, safeLink, telLink } from '../url.js';
import { Icon, type IconName } from './icon.js';
import { Picture } from './picture.js';

export type RenderKey =
  | 'choose' | 'chosen' | 'cardOf' | 'previousCard' | 'nextCard' | 'picture' | 'video' | 'audio' | 'file' | 'openPicture' | 'play' | 'download'
  | 'newTab' | 'fromHost' | 'call' | 'unsupported';

/** What the renderers need of the page that they stand in: the widget's, or the panel's. */
export interface Render {
  t(key: RenderKey, values?: Record<string, string | number>): string;
  n(key: 'cards', n: number): string;
  bytes(n: number): string;
  /** Relative addresses count from here. */
  base: string;
  /** Origins that may be asked for pictures, sound and video. */
  origins: string[];
  /** Answers with a choice; absent where nobody can choose. */
  choose?: ((choice: { text: string; payload: string; replyTo: string }) => void) | undefined;
  preview(picture: { url: string; name: string }): void;
}

export interface ContentProps {
  message: Message;
  render: Render;
  /** Whether Tab stops at what can be pressed here. */
  reachable: boolean;
  /** The payload that was chosen already. */
  chosen?: string | undefined;
}

/** The inside of a bubble. Everything that comes from outside is text, or a checked address. */
export function Content(p: ContentProps) {
  const d = p.message.data;
  switch (p.message.type) {
    case 'TEXT':
    case 'TEMPLATE':
    case 'MULTIPLE_CHOICE_REPLY':
      return <Words text={text(d.text)} {...p} />;
    case 'MULTIPLE_CHOICE':
      return (
        <>
          <Words text={text(d.text)} {...p} />
          <Buttons buttons={choicesOf(d)} label={p.render.t('choose')} {...p} />
        </>
      );
    case 'INTERACTIVE':
      return (
        <>
          {part(d.header) && <p class="head" dir="auto">{part(d.header)}</p>}
          <Words text={part(d.body)} {...p} />
          {part(d.footer) && <p class="foot" dir="auto">{part(d.footer)}</p>}
          <Buttons buttons={buttonsOf(d)} label={p.render.t('choose')} {...p} />
        </>
      );
    case 'CAROUSEL':
      return <Carousel {...p} />;
    case 'IMAGE':
      return <WithCaption {...p}><ImageFile {...p} /></WithCaption>;
    case 'VIDEO':
      return <WithCaption {...p}><Player kind="video" {...p} /></WithCaption>;
    case 'AUDIO':
      return <WithCaption {...p}><Player kind="audio" {...p} /></WithCaption>;
    case 'FILE':
      return <WithCaption {...p}><FileLink data={d} icon="file" {...p} /></WithCaption>;
    default:
      return text(d.text) ? <Words text={text(d.text)} {...p} /> : <p class="foot">{p.render.t('unsupported')}</p>;
  }
}

const tab = (reachable: boolean) => (reachable ? undefined : -1);

/** A text with its links. */
export function Words({ text: value, render, reachable }: { text: string; render: Render; reachable: boolean }) {
  return (
    <p class="words" dir="auto">
      {pieces(value).map((piece) => (piece.href ? <Link href={piece.href} render={render} reachable={reachable}>{piece.text}</Link> : piece.text))}
    </p>
  );
}

function Link(p: { href: string; render: Render; reachable: boolean; class?: string; download?: boolean; children: ComponentChildren }) {
  const here = !/^https?:/.test(p.href);
  return (
    <a class={p.class} href={p.href} rel="noopener noreferrer nofollow" tabIndex={tab(p.reachable)} {...(!here && { target: '_blank' })}>
      {p.children}
      {!here && <span class="sr"> {p.render.t('newTab')}</span>}
    </a>
  );
}

function Buttons({ buttons, label, message, render, reachable, chosen }: ContentProps & { buttons: Button[]; label?: string }) {
  if (!buttons.length) return null;
  const done = chosen !== undefined;
  return (
    <div class="choices" role="group" aria-label={label}>
      {buttons.map((b) => {
        if (b.kind === 'reply') {
          const taken = done && b.value === chosen;
          return (
            <button
              type="button"
              class={taken ? 'choice taken' : 'choice'}
              tabIndex={tab(reachable)}
              disabled={!render.choose || (done && !taken)}
              aria-pressed={taken || undefined}
              onClick={() => !done && render.choose?.({ text: b.title, payload: b.value, replyTo: message.id })}
            >
              {taken && <Icon name="check" />}
              <span dir="auto">{b.title}</span>
              {taken && <span class="sr"> ({render.t('chosen')})</span>}
            </button>
          );
        }
        const href = b.kind === 'phone' ? telLink(b.value) : safeLink(b.value);
        const inside = (
          <>
            <span dir="auto">{b.title}</span>
            <Icon name={b.kind === 'phone' ? 'phone' : 'link'} />
          </>
        );
        if (!href) return <span class="choice off" dir="auto">{b.title}</span>;
        return <Link class="choice" href={href} render={render} reachable={reachable}>{inside}</Link>;
      })}
    </div>
  );
}

function Carousel(p: ContentProps) {
  const row = useRef<HTMLUListElement>();
  const cards = cardsOf(p.message.data);
  const move = (by: number) => {
    const r = row.current!;
    const rtl = getComputedStyle(r).direction === 'rtl' ? -1 : 1;
    const smooth = !matchMedia('(prefers-reduced-motion: reduce)').matches;
    r.scrollBy({ left: by * rtl * ((r.firstElementChild as HTMLElement)?.offsetWidth + 10), behavior: smooth ? 'smooth' : 'auto' });
  };
  const arrow = (e: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step || e.target !== row.current) return;
    e.preventDefault();
    move(getComputedStyle(row.current!).direction === 'rtl' ? -step : step);
  };
  return (
    <div class="carousel" role="group" aria-roledescription="carousel" aria-label={p.render.n('cards', cards.length)}>
      <ul ref={row} class="cards" tabIndex={p.reachable ? 0 : -1} aria-label={p.render.n('cards', cards.length)} onKeyDown={arrow}>
        {cards.map((c, i) => (
          <li class="card" aria-label={p.render.t('cardOf', { n: i + 1, total: cards.length })}>
            {c.imageUrl && <Picture class="cover" url={c.imageUrl} base={p.render.base} origins={p.render.origins} alt="" instead={<Elsewhere url={c.imageUrl} {...p} />} />}
            <div class="cardtext">
              <p class="head" dir="auto">{c.title}</p>
              {c.subtitle && <p class="foot" dir="auto">{c.subtitle}</p>}
            </div>
            <Buttons buttons={c.buttons} label={c.title} {...p} />
          </li>
        ))}
      </ul>
      {cards.length > 1 && (
        <div class="arrows">
          <button type="button" class="round" tabIndex={tab(p.reachable)} aria-label={p.render.t('previousCard')} onClick={() => move(-1)}><Icon name="left" flip /></button>
          <button type="button" class="round" tabIndex={tab(p.reachable)} aria-label={p.render.t('nextCard')} onClick={() => move(1)}><Icon name="right" flip /></button>
        </div>
      )}
    </div>
  );
}

function WithCaption({ message, render, reachable, children }: ContentProps & { children: ComponentChildren }) {
  const caption = text(message.data.caption);
  return (
    <>
      {children}
      {caption && <Words text={caption} render={render} reachable={reachable} />}
    </>
  );
}

export const nameOf = (d: Data, kind: string): string => text(d.fileName) || text(d.path).split('/').pop() || kind;

function ImageFile(p: ContentProps) {
  const d = p.message.data;
  const url = safeLink(text(d.url), p.render.base);
  const name = text(d.caption) || nameOf(d, p.render.t('picture'));
  const link = <FileLink data={d} icon="picture" {...p} />;
  if (!url || !isOn(url, p.render.origins)) return link;
  return (
    <button type="button" class="thumb" tabIndex={tab(p.reachable)} aria-label={p.render.t('openPicture', { name })} onClick={() => p.render.preview({ url, name })}>
      <Picture url={url} base={p.render.base} origins={p.render.origins} alt="" class="shot" instead={<span class="lost"><Icon name="picture" /></span>} />
    </button>
  );
}

/** Sound and video load nothing until somebody wants to play them. Where the site's policy forbids it, the file opens in a tab. */
function Player(p: ContentProps & { kind: 'video' | 'audio' }) {
  const [playing, setPlaying] = useState(false);
  const [failed, setFailed] = useState(false);
  const d = p.message.data;
  const url = safeLink(text(d.url), p.render.base);
  const name = nameOf(d, p.render.t(p.kind));
  const link = <FileLink data={d} icon={p.kind === 'video' ? 'play' : 'file'} {...p} />;
  if (!url || !isOn(url, p.render.origins) || failed) return link;
  if (!playing) {
    return (
      <button type="button" class={`player ${p.kind}`} tabIndex={tab(p.reachable)} onClick={() => setPlaying(true)}>
        <span class="sr">{p.render.t('play', { name: '' }).trim()}</span>
        <span class="disc"><Icon name="play" /></span>
        <span class="filetext"><span class="filename" dir="auto">{name}</span>{Number(d.size) > 0 && <span class="foot">{p.render.bytes(Number(d.size))}</span>}</span>
      </button>
    );
  }
  const more = { src: url, controls: true, autoPlay: true, class: p.kind, 'aria-label': name, onError: () => setFailed(true) };
  return p.kind === 'video' ? <video playsInline {...more} /> : <audio {...more} />;
}

function FileLink({ data: d, icon, render, reachable }: ContentProps & { data: Data; icon: IconName }) {
  const url = safeLink(text(d.url), render.base);
  const name = nameOf(d, render.t('file'));
  const about = [Number(d.size) > 0 && render.bytes(Number(d.size)), url && !isOn(url, render.origins) && render.t('fromHost', { host: hostOf(url) })].filter(Boolean);
  const inside = (
    <>
      <span class="disc"><Icon name={icon} /></span>
      <span class="filetext"><span class="filename" dir="auto">{name}</span>{about.length > 0 && <span class="foot">{about.join(' · ')}</span>}</span>
    </>
  );
  return url ? <Link class="filelink" href={url} render={render} reachable={reachable}>{inside}</Link> : <span class="filelink">{inside}</span>;
}

/** A card's picture that no allowed origin has. */
function Elsewhere({ url, render, reachable }: ContentProps & { url: string }) {
  const href = safeLink(url, render.base);
  return href ? <Link class="cover elsewhere" href={href} render={render} reachable={reachable}><Icon name="picture" /><span>{render.t('fromHost', { host: hostOf(href) })}</span></Link> : null;
}

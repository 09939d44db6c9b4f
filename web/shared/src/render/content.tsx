import type { ComponentChildren, ComponentType } from 'preact';
import { useRef, useState } from './hooks.js';
import {
  buttonsOf,
  cardsOf,
  choicesOf,
  isMarkdown,
  sectionText,
  text,
  type Button,
  type Data,
  type Message,
} from '../message.js';
import { hostOf, isFromOrigins, linkify, safeLink, telLink } from '../url.js';
import { Icon, type IconName } from './icon.js';
import { Picture } from './picture.js';

export type RenderKey =
  | 'choose'
  | 'chosen'
  | 'cardOf'
  | 'previousCard'
  | 'nextCard'
  | 'picture'
  | 'video'
  | 'audio'
  | 'file'
  | 'openPicture'
  | 'play'
  | 'download'
  | 'newTab'
  | 'fromHost'
  | 'call'
  | 'unsupported'
  | 'cut';

/** Dependencies of the renderers, provided by the surrounding app: the widget or the panel. */
export interface Render {
  t(key: RenderKey, values?: Record<string, string | number>): string;
  n(key: 'cards', n: number): string;
  bytes(n: number): string;
  /** Base for relative URLs. */
  base: string;
  /** Origins from which pictures, audio and video may be loaded. */
  origins: string[];
  /** Sends the selection; undefined if the message is read-only. */
  choose?: ((choice: { text: string; payload: string; replyTo: string }) => void) | undefined;
  preview(picture: { url: string; name: string }): void;
  /** The component for Markdown (./markdown.tsx); undefined until it is loaded: then its text is shown as it is. */
  markdown(): ComponentType<TextProps> | undefined;
}

export interface TextProps {
  text: string;
  render: Render;
  reachable: boolean;
  /** More of the text follows. */
  unfinished?: boolean | undefined;
}

export interface ContentProps {
  message: Message;
  render: Render;
  /** Whether the controls are in the tab order. */
  reachable: boolean;
  /** Payload of the option that was chosen last. */
  chosen?: string | undefined;
  /** A choice is being sent. */
  choosing?: boolean | undefined;
}

/** The content of a message bubble. Untrusted values are rendered as text or as validated URLs only. */
export function Content(p: ContentProps) {
  const d = p.message.data;
  switch (p.message.type) {
    case 'TEXT':
    case 'TEMPLATE':
    case 'MULTIPLE_CHOICE_REPLY':
      return (
        <>
          <Words text={text(d.text)} markdown={isMarkdown(p.message)} unfinished={!!d.finishReason} {...p} />
          {d.finishReason && <p class="foot">{p.render.t('cut')}</p>}
        </>
      );
    case 'MULTIPLE_CHOICE':
      return (
        <>
          <LinkedText text={text(d.text)} {...p} />
          <Buttons buttons={choicesOf(d)} label={p.render.t('choose')} {...p} />
        </>
      );
    case 'INTERACTIVE':
      return (
        <>
          {sectionText(d.header) && (
            <p class="head" dir="auto">
              {sectionText(d.header)}
            </p>
          )}
          <LinkedText text={sectionText(d.body)} {...p} />
          {sectionText(d.footer) && (
            <p class="foot" dir="auto">
              {sectionText(d.footer)}
            </p>
          )}
          <Buttons buttons={buttonsOf(d)} label={p.render.t('choose')} {...p} />
        </>
      );
    case 'CAROUSEL':
      return <Carousel {...p} />;
    case 'IMAGE':
      return (
        <WithCaption {...p}>
          <ImageFile {...p} />
        </WithCaption>
      );
    case 'VIDEO':
      return (
        <WithCaption {...p}>
          <Player kind="video" {...p} />
        </WithCaption>
      );
    case 'AUDIO':
      return (
        <WithCaption {...p}>
          <Player kind="audio" {...p} />
        </WithCaption>
      );
    case 'FILE':
      return (
        <WithCaption {...p}>
          <FileLink data={d} icon="file" {...p} />
        </WithCaption>
      );
    default:
      return text(d.text) ? <LinkedText text={text(d.text)} {...p} /> : <p class="foot">{p.render.t('unsupported')}</p>;
  }
}

const tabIndexOf = (reachable: boolean) => (reachable ? undefined : -1);

/** A text, which may be Markdown. */
export function Words({ markdown, ...p }: TextProps & { markdown: boolean }) {
  const Markdown = markdown && p.render.markdown();
  return Markdown ? <Markdown {...p} /> : <LinkedText {...p} />;
}

/** A plain text with clickable links. */
function LinkedText(p: TextProps) {
  return (
    <p class="words" dir="auto">
      <Linked {...p} />
    </p>
  );
}

/** A text in which addresses are links. */
export function Linked({ text: value, render, reachable }: TextProps) {
  return (
    <>
      {linkify(value).map((segment) =>
        segment.href ? (
          <Link href={segment.href} render={render} reachable={reachable}>
            {segment.text}
          </Link>
        ) : (
          segment.text
        ),
      )}
    </>
  );
}

export function Link(p: {
  href: string;
  render: Render;
  reachable: boolean;
  class?: string;
  download?: boolean;
  children: ComponentChildren;
}) {
  const sameTab = !/^https?:/.test(p.href);
  return (
    <a
      class={p.class}
      href={p.href}
      rel="noopener noreferrer nofollow"
      tabIndex={tabIndexOf(p.reachable)}
      {...(!sameTab && { target: '_blank' })}
    >
      {p.children}
      {!sameTab && <span class="sr"> {p.render.t('newTab')}</span>}
    </a>
  );
}

/** The choices stay usable after one was chosen: the visitor may want another one, or the same again. */
function Buttons({
  buttons,
  label,
  message,
  render,
  reachable,
  chosen,
  choosing,
}: ContentProps & { buttons: Button[]; label?: string }) {
  if (!buttons.length) return null;
  return (
    <div class="choices" role="group" aria-label={label}>
      {buttons.map((b) => {
        if (b.kind === 'reply') {
          const taken = b.value === chosen;
          return (
            <button
              type="button"
              class={taken ? 'choice taken' : 'choice'}
              tabIndex={tabIndexOf(reachable)}
              disabled={!render.choose}
              aria-disabled={choosing}
              aria-pressed={taken || undefined}
              onClick={() => !choosing && render.choose?.({ text: b.title, payload: b.value, replyTo: message.id })}
            >
              {taken && <Icon name="check" />}
              <span dir="auto">{b.title}</span>
              {taken && <span class="sr"> ({render.t('chosen')})</span>}
            </button>
          );
        }
        const href = b.kind === 'phone' ? telLink(b.value) : safeLink(b.value);
        const content = (
          <>
            <span dir="auto">{b.title}</span>
            <Icon name={b.kind === 'phone' ? 'phone' : 'link'} />
          </>
        );
        if (!href)
          return (
            <span class="choice off" dir="auto">
              {b.title}
            </span>
          );
        return (
          <Link class="choice" href={href} render={render} reachable={reachable}>
            {content}
          </Link>
        );
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
    r.scrollBy({
      left: by * rtl * ((r.firstElementChild as HTMLElement)?.offsetWidth + 10),
      behavior: smooth ? 'smooth' : 'auto',
    });
  };
  const arrow = (e: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step || e.target !== row.current) return;
    e.preventDefault();
    move(getComputedStyle(row.current!).direction === 'rtl' ? -step : step);
  };
  return (
    <div class="carousel" role="group" aria-roledescription="carousel" aria-label={p.render.n('cards', cards.length)}>
      <ul
        ref={row}
        class="cards"
        tabIndex={p.reachable ? 0 : -1}
        aria-label={p.render.n('cards', cards.length)}
        onKeyDown={arrow}
      >
        {cards.map((c, i) => (
          <li class="card" aria-label={p.render.t('cardOf', { n: i + 1, total: cards.length })}>
            {c.imageUrl && (
              <Picture
                class="cover"
                url={c.imageUrl}
                base={p.render.base}
                origins={p.render.origins}
                alt=""
                fallback={<ExternalPicture url={c.imageUrl} {...p} />}
              />
            )}
            <div class="cardtext">
              <p class="head" dir="auto">
                {c.title}
              </p>
              {c.subtitle && (
                <p class="foot" dir="auto">
                  {c.subtitle}
                </p>
              )}
            </div>
            <Buttons buttons={c.buttons} label={c.title} {...p} />
          </li>
        ))}
      </ul>
      {cards.length > 1 && (
        <div class="arrows">
          <button
            type="button"
            class="round"
            tabIndex={tabIndexOf(p.reachable)}
            aria-label={p.render.t('previousCard')}
            onClick={() => move(-1)}
          >
            <Icon name="left" flip />
          </button>
          <button
            type="button"
            class="round"
            tabIndex={tabIndexOf(p.reachable)}
            aria-label={p.render.t('nextCard')}
            onClick={() => move(1)}
          >
            <Icon name="right" flip />
          </button>
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
      {caption && <LinkedText text={caption} render={render} reachable={reachable} />}
    </>
  );
}

export const nameOf = (d: Data, kind: string): string => text(d.fileName) || text(d.path).split('/').pop() || kind;

function ImageFile(p: ContentProps) {
  const d = p.message.data;
  const url = safeLink(text(d.url), p.render.base);
  const name = text(d.caption) || nameOf(d, p.render.t('picture'));
  const link = <FileLink data={d} icon="picture" {...p} />;
  if (!url || !isFromOrigins(url, p.render.origins)) return link;
  return (
    <button
      type="button"
      class="thumb"
      tabIndex={tabIndexOf(p.reachable)}
      aria-label={p.render.t('openPicture', { name })}
      onClick={() => p.render.preview({ url, name })}
    >
      <Picture
        url={url}
        base={p.render.base}
        origins={p.render.origins}
        alt=""
        class="shot"
        fallback={
          <span class="lost">
            <Icon name="picture" />
          </span>
        }
      />
    </button>
  );
}

/** Audio and video load only when the visitor presses play. If playback fails, for example because of the site's CSP, a link is shown instead. */
function Player(p: ContentProps & { kind: 'video' | 'audio' }) {
  const [playing, setPlaying] = useState(false);
  const [failed, setFailed] = useState(false);
  const d = p.message.data;
  const url = safeLink(text(d.url), p.render.base);
  const name = nameOf(d, p.render.t(p.kind));
  const link = <FileLink data={d} icon={p.kind === 'video' ? 'play' : 'file'} {...p} />;
  if (!url || !isFromOrigins(url, p.render.origins) || failed) return link;
  if (!playing) {
    return (
      <button
        type="button"
        class={`player ${p.kind}`}
        tabIndex={tabIndexOf(p.reachable)}
        onClick={() => setPlaying(true)}
      >
        <span class="sr">{p.render.t('play', { name: '' }).trim()}</span>
        <span class="disc">
          <Icon name="play" />
        </span>
        <span class="filetext">
          <span class="filename" dir="auto">
            {name}
          </span>
          {Number(d.size) > 0 && <span class="foot">{p.render.bytes(Number(d.size))}</span>}
        </span>
      </button>
    );
  }
  const mediaProps = {
    src: url,
    controls: true,
    autoPlay: true,
    class: p.kind,
    'aria-label': name,
    onError: () => setFailed(true),
  };
  return p.kind === 'video' ? <video playsInline {...mediaProps} /> : <audio {...mediaProps} />;
}

function FileLink({ data: d, icon, render, reachable }: ContentProps & { data: Data; icon: IconName }) {
  const url = safeLink(text(d.url), render.base);
  const name = nameOf(d, render.t('file'));
  const details = [
    Number(d.size) > 0 && render.bytes(Number(d.size)),
    url && !isFromOrigins(url, render.origins) && render.t('fromHost', { host: hostOf(url) }),
  ].filter(Boolean);
  const content = (
    <>
      <span class="disc">
        <Icon name={icon} />
      </span>
      <span class="filetext">
        <span class="filename" dir="auto">
          {name}
        </span>
        {details.length > 0 && <span class="foot">{details.join(' · ')}</span>}
      </span>
    </>
  );
  return url ? (
    <Link class="filelink" href={url} render={render} reachable={reachable}>
      {content}
    </Link>
  ) : (
    <span class="filelink">{content}</span>
  );
}

/** A link that stands in for a card picture from a disallowed origin. */
function ExternalPicture({ url, render, reachable }: ContentProps & { url: string }) {
  const href = safeLink(url, render.base);
  return href ? (
    <Link class="cover elsewhere" href={href} render={render} reachable={reachable}>
      <Icon name="picture" />
      <span>{render.t('fromHost', { host: hostOf(href) })}</span>
    </Link>
  ) : null;
}

import { useEffect, useMemo, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import type { Render } from '@parley/shared/render/content.js';
import { Composer } from './composer.js';
import { ScreenContext, type Screen } from './context.js';
import { Form } from './form.js';
import { Header } from './header.js';
import type { Sheet } from './sheet.js';
import { Banner, Failed, Loading } from './status.js';
import { isAway, SupportBar } from './support.js';
import { Transcript } from './transcript.js';

export interface PanelProps extends Screen {
  sheet: Sheet;
  now: number;
  /** The announcement and its number, which makes a live region announce the same text again. */
  announcement: { text: string; count: number };
  transcript: { current: Transcript | null };
}

/** The chat dialog. */
export function Panel(p: PanelProps) {
  const { state, language, session, host, extras, markdown } = p;
  const panel = useRef<HTMLDivElement>();
  const opener = useRef<HTMLElement>();
  const [picture, setPicture] = useState<{ url: string; name: string }>();
  const [dropped, setDropped] = useState<{ files: File[] }>();
  const [dragDepth, setDragDepth] = useState(0);
  const [sent, setSent] = useState(0);
  /** What the visitor has written in the composer or in the offline form, whichever is shown. */
  const draft = useRef<string>();

  const render = useMemo<Render>(
    () => ({
      t: (key, values) => language.t(key, values),
      n: (key, n) => language.n(key, n),
      bytes: (n) => language.bytes(n),
      base: host.base,
      origins: host.mediaOrigins,
      choose: (choice) => {
        session.sending.choose(choice);
        setSent((n) => n + 1);
      },
      preview: (chosen) => {
        opener.current = host.root.activeElement as HTMLElement;
        extras.load().then(
          () => setPicture(chosen),
          () => p.announce(language.t('unavailable')),
        );
      },
      markdown: () => markdown.getOrLoad()?.Markdown,
    }),
    [language, markdown.loaded],
  );
  useEffect(() => {
    if (sent) p.transcript.current?.scrollToEnd();
  }, [sent]);

  // Focus the first input field. On touch devices focus the title instead, so that the on-screen keyboard does not
  // open.
  useEffect(() => {
    if (!state.open) return;
    const touch = matchMedia('(pointer:coarse)').matches;
    const next = touch ? undefined : panel.current!.querySelector<HTMLElement>('textarea,.field input');
    (next ?? panel.current!.querySelector<HTMLElement>('.title'))?.focus({ preventScroll: true });
  }, [state.open, state.phase]);

  // The composer stands in until the offline form is loaded, or if loading fails.
  const OfflineForm = isAway(state.chat) && extras.getOrLoad()?.OfflineForm;
  const Preview = picture && extras.getOrLoad()?.Preview;
  const closePicture = () => {
    setPicture(undefined);
    opener.current?.focus();
  };

  const onKeyDown = (e: KeyboardEvent) => {
    // Trap focus while the panel fills the screen or a picture is open.
    if (e.key === 'Tab' && (picture || fullScreen(panel.current!)))
      trapFocus(e, picture ? panel.current!.querySelector('.preview')! : panel.current!);
  };

  const dragHandlers = {
    onDragEnter: (e: DragEvent) => hasFiles(e) && setDragDepth((n) => n + 1),
    onDragLeave: (e: DragEvent) => hasFiles(e) && setDragDepth((n) => Math.max(0, n - 1)),
    onDragOver: (e: DragEvent) => hasFiles(e) && e.preventDefault(),
    onDrop: (e: DragEvent) => {
      if (!hasFiles(e)) return;
      e.preventDefault();
      setDragDepth(0);
      setDropped({ files: [...e.dataTransfer!.files] });
    },
  };

  return (
    <ScreenContext.Provider value={p}>
      <div
        ref={panel}
        class="p"
        data-theme={host.theme}
        data-phase={state.phase}
        data-connection={state.connection}
        role="dialog"
        aria-label={language.t('chatWith', { name: state.settings?.name || state.settings?.botName || '' }).trim()}
        lang={language.code}
        dir={language.rtl ? 'rtl' : 'ltr'}
        hidden={!state.open}
        onKeyDown={onKeyDown}
        {...(state.phase === 'chat' && dragHandlers)}
      >
        <div class="inside" inert={!!picture}>
          <Header />
          {state.phase === 'chat' && <Banner />}
          {(state.phase === 'loading' || !state.settings) && state.phase !== 'failed' && state.phase !== 'refused' && (
            <Loading />
          )}
          {(state.phase === 'failed' || state.phase === 'refused') && <Failed />}
          {state.phase === 'form' && state.settings && <Form />}
          {state.phase === 'chat' && state.settings && (
            <>
              <Transcript
                ref={p.transcript}
                session={session}
                state={state}
                language={language}
                render={render}
                sheet={p.sheet}
                now={p.now}
                onEndVisible={() =>
                  state.open && document.visibilityState === 'visible' && session.readCursor.markRead()
                }
              />
              <SupportBar />
              {OfflineForm ? (
                <OfflineForm draft={draft} />
              ) : (
                <Composer draft={draft} dropped={dropped} onSent={() => p.transcript.current?.scrollToEnd()} />
              )}
            </>
          )}
        </div>
        {dragDepth > 0 && (
          <div class="drop" aria-hidden="true">
            <Icon name="attach" />
            <p>{language.t('dropHere')}</p>
          </div>
        )}
        {Preview && <Preview {...picture!} close={closePicture} />}
        <div class="sr" role="status" aria-live="polite" aria-atomic="true" key="announcer">
          {p.announcement.text + (p.announcement.count % 2 ? '\u00a0' : '')}
        </div>
      </div>
    </ScreenContext.Provider>
  );
}

const hasFiles = (e: DragEvent) => !!e.dataTransfer?.types.includes('Files');

const fullScreen = (panel: HTMLElement) => panel.offsetWidth >= innerWidth;

function trapFocus(e: KeyboardEvent, within: HTMLElement) {
  const tabbable = [
    ...within.querySelectorAll<HTMLElement>('button,a[href],input:not([hidden]),textarea,[tabindex="0"]'),
  ].filter((s) => s.tabIndex >= 0 && !(s as HTMLButtonElement).disabled && s.offsetParent !== null);
  const active = (within.getRootNode() as ShadowRoot).activeElement;
  const edge = e.shiftKey ? tabbable[0] : tabbable.at(-1);
  if (active !== edge && tabbable.includes(active as HTMLElement)) return;
  e.preventDefault();
  (e.shiftKey ? tabbable.at(-1) : tabbable[0])?.focus();
}

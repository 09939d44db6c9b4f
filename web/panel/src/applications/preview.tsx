import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApplicationDraft } from '../api/types.js';
import { useStore } from '../lib/store.js';
import { app } from '../state.js';
import { strings } from '../strings.js';
import { theme } from '../theme.js';
import { Segmented } from '../ui/field.js';
import type { PreviewState, PreviewStage, PreviewTheme } from '../preview/state.js';
import { cleaned } from './draft.js';

const s = strings.applications.previewTexts;

/** The shipped widget in a frame, with the unsaved settings. */
export function Preview({ draft, stage: first }: { draft: ApplicationDraft; stage: PreviewStage }) {
  const { meta } = useStore(app);
  const panelTheme = useStore(theme);
  const frame = useRef<HTMLIFrameElement>(null);
  const [device, setDevice] = useState<'desktop' | 'phone'>('desktop');
  const [look, setLook] = useState<PreviewTheme>(panelTheme === 'dark' ? 'dark' : 'light');
  const [stage, setStage] = useState<PreviewStage>(first);
  const [ready, setReady] = useState(false);
  useEffect(() => setStage(first), [first]);
  useEffect(() => {
    const onMessage = (e: MessageEvent) => {
      if (
        e.source === frame.current?.contentWindow &&
        e.origin === location.origin &&
        (e.data as { kind?: string } | null)?.kind === 'preview-ready'
      )
        setReady(true);
    };
    addEventListener('message', onMessage);
    return () => removeEventListener('message', onMessage);
  }, []);
  const d = cleaned(draft);
  const state: PreviewState = {
    kind: 'preview',
    stage,
    theme: look,
    mediaOrigin: meta?.widgetBaseUrl ? new URL(meta.widgetBaseUrl).origin : '',
    settings: { id: 'preview', name: d.name, botName: d.botName, widgetConfigs: d.widgetConfigs },
  };
  const text = JSON.stringify(state);
  useEffect(() => {
    if (!ready) return;
    const timer = setTimeout(() => frame.current?.contentWindow?.postMessage(JSON.parse(text), location.origin), 200);
    return () => clearTimeout(timer);
  }, [text, ready]);
  return (
    <aside class="preview-side" aria-label={strings.preview}>
      <div class="toolbar">
        <Segmented
          label={s.device}
          value={device}
          change={(v) => setDevice(v)}
          options={[
            { value: 'desktop', label: s.desktop },
            { value: 'phone', label: s.phone },
          ]}
        />
        <Segmented
          label={s.theme}
          value={look}
          change={(v) => setLook(v)}
          options={[
            { value: 'light', label: strings.theme.light },
            { value: 'dark', label: strings.theme.dark },
          ]}
        />
        <Segmented
          label={s.stage}
          value={stage}
          change={(v) => setStage(v)}
          options={[
            { value: 'form', label: s.form },
            { value: 'chat', label: s.chat },
            { value: 'closed', label: s.closed },
          ]}
        />
      </div>
      <div class={`preview-frame ${device}`}>
        <iframe ref={frame} src="/preview.html" title={s.title} />
      </div>
      <p class="faint small">{s.note}</p>
    </aside>
  );
}

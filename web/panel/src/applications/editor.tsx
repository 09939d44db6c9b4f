import { useEffect, useState } from 'preact/hooks';
import type { Data } from '@parley/shared/message.js';
import { applications as api } from '../api/api.js';
import { fieldErrors, isStatus, messageOf } from '../api/client.js';
import type { Application, ApplicationDraft } from '../api/types.js';
import { useLoad } from '../lib/load.js';
import { setGuard } from '../lib/router.js';
import { can } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Page, TabLinks } from '../ui/page.js';
import { Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { cleaned, draftOf, same } from './draft.js';
import { FormTab } from './form.js';
import { Install } from './install.js';
import { Look } from './look.js';
import { Preview } from './preview.js';
import { Security } from './security.js';
import { SupportTab } from './support.js';

const s = strings.applications;
const TABS = ['look', 'form', 'support', 'install', 'security'] as const;
const BACK = { href: '#/applications', label: s.title };

/** The editor of an application. Its tabs share one draft, except for the settings that are saved on their own. */
export function Editor({ id, tab }: { id: string; tab: string }) {
  const { app, draft: d, dirty, busy, problem, change, save, discard, put, loadError, reload } = useDraft(id);
  const writable = can('applications.write');
  if (!app || !d) {
    return (
      <Page title={s.one} back={BACK}>
        <Unloaded error={loadError} retry={reload} />
      </Page>
    );
  }
  const at = TABS.find((t) => t === tab) ?? 'look';
  const previewed = at === 'look' || at === 'form';
  const errors = fieldErrors(problem);
  const configs = (c: Data) => change({ widgetConfigs: c });
  const loadNew = () => {
    discard();
    reload();
  };
  return (
    <Page wide={previewed} title={app.name} back={BACK}>
      <TabLinks
        label={s.one}
        tabs={TABS.map((t) => ({ href: `#/applications/${id}/${t}`, label: s.tabs[t], current: t === at }))}
      />
      <div class={previewed ? 'editor' : 'stack'}>
        <fieldset class="stack" disabled={!writable}>
          <legend class="sr">{s.tabs[at]}</legend>
          {!writable && <Notice>{s.readOnly}</Notice>}
          {at === 'support' && <SupportTab key={app.version} app={app} writable={writable} put={put} />}
          {at === 'look' && <Look d={d} change={change} configs={configs} errors={errors} />}
          {at === 'form' && <FormTab d={d} configs={configs} errors={errors} />}
          {at === 'install' && <Install app={app} d={d} change={change} errors={errors} dirty={dirty} />}
          {at === 'security' && (
            <Security app={app} d={d} change={change} errors={errors} put={put} writable={writable} />
          )}
          {!!problem && <Problem problem={problem} loadNew={loadNew} />}
          {dirty && <SaveBar busy={busy} save={save} discard={discard} />}
        </fieldset>
        {previewed && <Preview draft={d} stage={at === 'form' ? 'form' : 'chat'} />}
      </div>
    </Page>
  );
}

/** Loads an application and keeps the changes that are not saved. Asks before they are left. */
function useDraft(id: string) {
  const { data, error, reload, set } = useLoad((signal) => api.get(id, signal), [id]);
  const [edited, setEdited] = useState<ApplicationDraft>();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const draft = edited ?? (data && draftOf(data));
  const dirty = !!edited && !!data && !same(cleaned(edited), cleaned(draftOf(data)));
  useEffect(() => {
    const mayLeave = (path: string) => path.startsWith(`/applications/${id}`) || window.confirm(s.leave);
    setGuard(dirty ? mayLeave : undefined); // the tabs of the editor share the draft
    return () => setGuard(undefined);
  }, [dirty]);
  const change = (c: Partial<ApplicationDraft>) => draft && can('applications.write') && setEdited({ ...draft, ...c });
  const discard = () => {
    setEdited(undefined);
    setProblem(undefined);
  };
  const save = async () => {
    if (!edited || !data || busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const saved = await api.update(id, cleaned(edited), data.version);
      set(() => saved);
      setEdited(undefined);
      toast(s.saved);
    } catch (err) {
      setProblem(err);
    } finally {
      setBusy(false);
    }
  };
  const put = (a: Application) => set(() => a);
  return { app: data, draft, dirty, busy, problem, change, save, discard, put, loadError: error, reload };
}

function Unloaded({ error, retry }: { error: unknown; retry(): void }) {
  if (!error) return <Skeleton />;
  if (!isStatus(error, 404)) return <Failed error={error} retry={retry} />;
  return (
    <Empty icon="search" title={strings.notFound}>
      {s.goneLead}
    </Empty>
  );
}

/** Why the draft could not be saved. If another user has saved first, offers the newer version. */
function Problem({ problem, loadNew }: { problem: unknown; loadNew(): void }) {
  const outdated = isStatus(problem, 412);
  const action = outdated && (
    <Button small onClick={loadNew}>
      {s.loadNew}
    </Button>
  );
  return (
    <Notice kind="bad" action={action}>
      {outdated ? s.changedMeanwhile : messageOf(problem)}
    </Notice>
  );
}

function SaveBar({ busy, save, discard }: { busy: boolean; save(): Promise<void>; discard(): void }) {
  return (
    <div class="save-bar" role="region" aria-label={s.unsaved}>
      <p>{s.unsaved}</p>
      <Button onClick={discard}>{s.discard}</Button>
      <Button kind="primary" busy={busy} onClick={() => void save()}>
        {strings.save}
      </Button>
    </div>
  );
}

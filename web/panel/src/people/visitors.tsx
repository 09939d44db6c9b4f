import { useEffect, useState } from 'preact/hooks';
import { people as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { ErasureReceipt, Visitor } from '../api/types.js';
import { formatFull, formatNumber, initials } from '../lib/format.js';
import { usePages } from '../lib/load.js';
import { setQuery, useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button, LinkButton } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Confirm, Dialog } from '../ui/dialog.js';
import { Glyph } from '../ui/icon.js';
import { Facts, Page, Table } from '../ui/page.js';
import { Avatar, Empty, Failed, Notice, Skeleton } from '../ui/states.js';

const s = strings.visitors;

/** Searches, exports and erases visitors. */
export default function Visitors() {
  const { query } = useRoute();
  const q = query.get('q') ?? '';
  const [text, setText] = useState(q);
  const { items, error, loading, ready, more, loadMore, reload, set } = usePages(
    (cursor, signal) => api.visitors(q, cursor, signal),
    [q],
  );
  const [erasing, setErasing] = useState<Visitor>();
  const [receipt, setReceipt] = useState<ErasureReceipt>();
  useEffect(() => setText(q), [q]);
  useEffect(() => {
    const timer = setTimeout(() => text.trim() !== q && setQuery({ q: text.trim() }), 350);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <Page title={s.title} lead={s.lead}>
      <div class="search wide-search">
        <Glyph name="search" size={16} />
        <input
          type="search"
          class="input"
          aria-label={s.search}
          placeholder={s.search}
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
      </div>
      {!ready && loading && <Skeleton />}
      {!ready && !!error && <Failed error={error} retry={reload} />}
      {ready && items.length === 0 && (
        <Empty icon="people" title={q ? s.none : s.empty}>
          {q ? s.noneLead : s.emptyLead}
        </Empty>
      )}
      {items.length > 0 && (
        <Table
          class="stacked"
          label={s.title}
          head={[s.name, s.email, s.phone, s.userId, <span class="sr">{strings.actions}</span>]}
        >
          {items.map((v) => (
            <tr key={v.id}>
              <td>
                <div class="row-flex nowrap">
                  <Avatar name={v.id} letters={initials(v.name)} size="small" />
                  <span class="strong" dir="auto">
                    {v.name}
                  </span>
                </div>
              </td>
              <td class="wrap-any">{v.email ?? '–'}</td>
              <td class="nowrap">{v.phone ?? '–'}</td>
              <td class="wrap-any">{v.userId ?? '–'}</td>
              <td class="end">
                <div class="row-flex nowrap">
                  <LinkButton small href={api.exportUrl(v.id)} icon="download" download aria-label={s.exportOf(v.name)}>
                    {s.export}
                  </LinkButton>
                  <Button small icon="trash" aria-label={s.eraseOf(v.name)} onClick={() => setErasing(v)}>
                    {s.erase}
                  </Button>
                </div>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {ready && !!error && <Notice kind="bad">{messageOf(error)}</Notice>}
      {more && (
        <div>
          <Button busy={loading} onClick={loadMore}>
            {strings.more}
          </Button>
        </div>
      )}
      {erasing && (
        <Confirm
          title={s.eraseTitle(erasing.name)}
          action={s.eraseAction}
          typed={s.word}
          close={() => setErasing(undefined)}
          confirm={async () => {
            setReceipt(await api.erase(erasing.id));
            set((old) => old.filter((v) => v.id !== erasing.id));
          }}
        >
          <p>{s.eraseLead}</p>
          <Facts
            facts={(
              [
                [s.name, erasing.name],
                [s.email, erasing.email],
                [s.phone, erasing.phone],
                [s.userId, erasing.userId],
                [s.id, <code class="wrap-any">{erasing.id}</code>],
              ] as [string, preact.ComponentChild][]
            ).filter(([, v]) => v)}
          />
        </Confirm>
      )}
      {receipt && (
        <Dialog
          title={s.receipt}
          wide
          close={() => setReceipt(undefined)}
          footer={
            <Button kind="primary" data-autofocus onClick={() => setReceipt(undefined)}>
              {strings.done}
            </Button>
          }
        >
          <Notice kind="good">{s.erased}</Notice>
          <Facts
            facts={[
              [s.at, formatFull(receipt.at)],
              [s.by, receipt.by],
              ...(['chats', 'messages', 'files', 'identities', 'statuses', 'events'] as const).map(
                (k): [string, string] => [s.counts[k], formatNumber(receipt[k])],
              ),
            ]}
          />
          <Code label={s.receipt} text={JSON.stringify(receipt, null, 2)} copyLabel={s.copyReceipt} />
        </Dialog>
      )}
    </Page>
  );
}

import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { people as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { AuditEntry } from '../api/types.js';
import { formatFull } from '../lib/format.js';
import { usePages } from '../lib/load.js';
import { setQuery, useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Field, Select } from '../ui/field.js';
import { Page, Table } from '../ui/page.js';
import { Badge, Empty, Failed, Notice, Skeleton } from '../ui/states.js';
import { differences } from './diff.js';

const s = strings.audit;

export default function Audit() {
  const { query } = useRoute();
  const target = query.get('target') ?? '';
  const pages = usePages((cursor, signal) => api.audit(target, cursor, signal), [target]);
  const [open, setOpen] = useState('');
  return (
    <Page title={s.title} lead={s.lead}>
      <div class="toolbar">
        <Field label={s.target} class="inline">
          <Select
            value={target}
            change={(v) => setQuery({ target: v })}
            options={[
              { value: '', label: s.everything },
              ...Object.entries(s.targets).map(([value, label]) => ({ value, label })),
            ]}
          />
        </Field>
      </div>
      {!pages.ready && pages.loading && <Skeleton />}
      {!pages.ready && !!pages.error && <Failed error={pages.error} retry={pages.reload} />}
      {pages.ready && !pages.items.length && (
        <Empty icon="history" title={s.empty}>
          {s.emptyLead}
        </Empty>
      )}
      {pages.items.length > 0 && (
        <Table label={s.title} head={[s.when, s.who, s.what, s.target, <span class="sr">{s.changes}</span>]}>
          {pages.items.map((e) => (
            <Fragment key={e.id}>
              <tr>
                <td class="nowrap">
                  <time dateTime={e.at}>{formatFull(e.at)}</time>
                </td>
                <td class="wrap-any">{e.user}</td>
                <td>
                  <Badge>{e.action}</Badge>
                </td>
                <td>
                  {s.targets[e.target] ?? e.target}
                  <div class="sub wrap-any">{nameOf(e)}</div>
                </td>
                <td class="end">
                  {(e.before || e.after) && (
                    <IconButton
                      small
                      icon={open === e.id ? 'up' : 'down'}
                      label={s.changesOf(e.action)}
                      aria-expanded={open === e.id}
                      onClick={() => setOpen(open === e.id ? '' : e.id)}
                    />
                  )}
                </td>
              </tr>
              {open === e.id && (
                <tr class="part">
                  <td colSpan={5}>
                    <Changes entry={e} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </Table>
      )}
      {pages.more && (
        <div>
          <Button busy={pages.loading} onClick={pages.loadMore}>
            {strings.more}
          </Button>
        </div>
      )}
      {pages.ready && !!pages.error && <Notice kind="bad">{messageOf(pages.error)}</Notice>}
    </Page>
  );
}

const nameOf = (e: AuditEntry): string =>
  [e.after, e.before].map((d) => d?.name ?? d?.email).find((n): n is string => typeof n === 'string' && n !== '') ??
  e.targetId;

function Changes({ entry: e }: { entry: AuditEntry }) {
  const all = differences(e.before, e.after);
  return (
    <div class="stack tight">
      {all.length === 0 && <p class="faint">{s.noChanges}</p>}
      {all.map((d) => (
        <div key={d.path} class="diff">
          <code>{d.path}</code>
          {d.before !== undefined && <del>{d.before}</del>}
          {d.after !== undefined && <ins>{d.after}</ins>}
        </div>
      ))}
      <p class="faint small">
        {s.id} <code class="wrap-any">{e.targetId}</code>
      </p>
    </div>
  );
}

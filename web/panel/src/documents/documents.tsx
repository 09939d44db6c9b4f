/** The section "Documents": what the company's bots answer from. */
import { useState } from 'preact/hooks';
import { documents as api } from '../api/api.js';
import type { Document } from '../api/types.js';
import { formatAgo, formatBytes, formatFull, formatNumber } from '../lib/format.js';
import { usePages } from '../lib/load.js';
import { useRoute } from '../lib/router.js';
import { strings } from '../strings.js';
import { Button, IconButton, LinkButton } from '../ui/button.js';
import { Confirm } from '../ui/dialog.js';
import { ExternalLink } from '../ui/external.js';
import { Page, Table } from '../ui/page.js';
import { Empty, Failed, Skeleton } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import { EditDocument, NewDocument } from './editor.js';
import { FetchState } from './fetch.js';
import { Question } from './question.js';
import { RankingCard } from './ranking.js';

const s = strings.documents;

/** The list, or the form of one document. */
export default function Documents() {
  const { parts, query } = useRoute();
  const id = parts[1];
  const question = query.get('question') ?? '';
  if (id === 'new') return <NewDocument key={question} question={question} />;
  return id ? <EditDocument key={id} id={id} /> : <List />;
}

function List() {
  const pages = usePages((cursor, signal) => api.list(cursor, signal), []);
  const [removing, setRemoving] = useState<Document>();
  const create = (
    <LinkButton href="#/documents/new" kind="primary" icon="plus">
      {s.create}
    </LinkButton>
  );
  const remove = async ({ id }: Document) => {
    await api.remove(id);
    pages.set((all) => all.filter((d) => d.id !== id));
    toast(s.removed);
  };
  const some = pages.items.length > 0;
  const none = pages.ready && !some && !pages.more;
  return (
    <Page title={s.title} lead={s.lead} actions={some && create}>
      {!pages.ready && pages.loading && <Skeleton />}
      {!!pages.error && <Failed error={pages.error} retry={pages.reload} />}
      {none && (
        <Empty icon="book" title={s.empty} action={create}>
          {s.emptyLead}
        </Empty>
      )}
      {some && (
        <Table
          class="documents"
          label={s.title}
          head={[s.name, s.format, s.size, s.passages, s.changed, <span class="sr">{strings.actions}</span>]}
          numbers={[2, 3]}
        >
          {pages.items.map((d) => (
            <Row key={d.id} document={d} remove={() => setRemoving(d)} />
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
      {some && <Question />}
      {some && <RankingCard />}
      {removing && (
        <Confirm
          title={s.removeTitle}
          action={s.remove}
          close={() => setRemoving(undefined)}
          confirm={() => remove(removing)}
        >
          <p class="wrap-any">{s.removeLead(removing.title)}</p>
        </Confirm>
      )}
    </Page>
  );
}

function Row({ document: d, remove }: { document: Document; remove(): void }) {
  return (
    <tr>
      <td class="wrap-any">
        <a class="cell-link" href={`#/documents/${d.id}`}>
          {d.title}
        </a>
        {d.address && (
          <div class="sub">
            <ExternalLink href={d.address}>{d.address}</ExternalLink>
          </div>
        )}
        {d.fetch && <FetchState fetch={d.fetch} />}
      </td>
      <td>{s.formats[d.format]}</td>
      <td class="num nowrap">{formatBytes(d.bytes)}</td>
      <td class="num">{formatNumber(d.passages)}</td>
      <td class="nowrap">
        <time dateTime={d.updatedAt} title={formatFull(d.updatedAt)}>
          {formatAgo(d.updatedAt)}
        </time>
      </td>
      <td class="end">
        <IconButton icon="trash" label={s.removeOne(d.title)} onClick={remove} />
      </td>
    </tr>
  );
}

/** The card "Try a question": the passages that a bot would get for it. */
import { useState } from 'preact/hooks';
import { documents as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { Passage } from '../api/types.js';
import { strings } from '../strings.js';
import { Button, LinkButton } from '../ui/button.js';
import { ExternalLink } from '../ui/external.js';
import { Field, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Notice } from '../ui/states.js';
import { useSubmit } from '../ui/submit.js';
import { answerHref, placeOf } from './document.js';

const s = strings.documents;

/** The passages of a question. */
interface Found {
  question: string;
  passages: Passage[];
}

export function Question() {
  const [question, setQuestion] = useState('');
  const [found, setFound] = useState<Found>();
  const asked = question.trim();
  const { busy, error, errors, tried, submit } = useSubmit(async () => {
    setFound(undefined);
    const passages = await api.search(asked);
    setFound({ question: asked, passages });
  }, !!asked);
  const missing = tried && !asked ? strings.required : undefined;
  return (
    <Card title={s.tryTitle} lead={s.tryLead}>
      <form class="stack tight" noValidate onSubmit={submit}>
        <Field label={s.question} required error={errors.question ?? missing}>
          <TextInput value={question} change={setQuestion} maxLength={4096} spellcheck />
        </Field>
        <div>
          <Button type="submit" icon="search" busy={busy}>
            {s.search}
          </Button>
        </div>
      </form>
      {!!error && !errors.question && <Notice kind="bad">{messageOf(error)}</Notice>}
      <div aria-live="polite">{found && <Passages {...found} />}</div>
    </Card>
  );
}

function Passages({ question, passages }: Found) {
  if (!passages.length)
    return (
      <div class="row-flex">
        <p class="muted">{s.nothingFound}</p>
        <LinkButton small icon="edit" href={answerHref(question)}>
          {s.writeAnswer}
        </LinkButton>
      </div>
    );
  return (
    <ol class="passages" aria-label={s.found}>
      {passages.map((p, i) => (
        <li key={i}>
          <a class="cell-link wrap-any" href={`#/documents/${p.documentId}`}>
            {placeOf(p)}
          </a>
          {p.address && (
            <p class="small">
              <ExternalLink href={p.address}>{p.address}</ExternalLink>
            </p>
          )}
          <p class="said">{p.text}</p>
        </li>
      ))}
    </ol>
  );
}

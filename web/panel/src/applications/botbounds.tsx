/** The parts of the bot's form that are folded: the bounds of what it uses, and the prices of a language model. */
import { strings } from '../strings.js';
import { Field, TextArea, TextInput } from '../ui/field.js';
import { Fold } from '../ui/fold.js';
import { Card } from '../ui/page.js';
import { type BotForm, hasBounds, hasErrorIn, hasPrices } from './botdraft.js';

export interface PartProps {
  form: BotForm;
  change(c: Partial<BotForm>): void;
  /** The errors of the fields, by their paths in the settings. */
  errors: Record<string, string>;
}

/** The API's maximum of a bound, and of a price. */
const MAX_BOUND = 1_000_000_000;
const MAX_PRICE = 1_000_000;

/** What the bot may use. */
export function BoundsPart({ form, change, errors }: PartProps) {
  const s = strings.bot.bounds;
  return (
    <Card>
      <Fold title={<h2>{s.title}</h2>} open={hasBounds(form)} reveal={hasErrorIn('bounds', errors)}>
        <p class="muted">{s.lead}</p>
        <div class="form-grid">
          <Field label={s.questions} hint={s.questionsHint} optional error={errors['bounds.application.questions']}>
            <Bound value={form.questions} change={(questions) => change({ questions })} />
          </Field>
          <Field label={s.tokens} hint={s.tokensHint} optional error={errors['bounds.application.tokens']}>
            <Bound value={form.tokens} change={(tokens) => change({ tokens })} />
          </Field>
        </div>
        <div class="form-grid">
          <Field label={s.visitorQuestions} optional error={errors['bounds.visitor.questions']}>
            <Bound value={form.visitorQuestions} change={(visitorQuestions) => change({ visitorQuestions })} />
          </Field>
          <Field label={s.visitorTokens} optional error={errors['bounds.visitor.tokens']}>
            <Bound value={form.visitorTokens} change={(visitorTokens) => change({ visitorTokens })} />
          </Field>
        </div>
        <Field label={s.callsAtOnce} hint={s.callsAtOnceHint} optional error={errors['bounds.callsAtOnce']}>
          <Bound class="short" value={form.callsAtOnce} change={(callsAtOnce) => change({ callsAtOnce })} />
        </Field>
        <Field label={s.exhaustedText} hint={s.exhaustedTextHint} optional error={errors['bounds.exhaustedText']}>
          <TextArea
            rows={2}
            spellcheck
            maxLength={4096}
            value={form.exhaustedText}
            change={(exhaustedText) => change({ exhaustedText })}
          />
        </Field>
      </Fold>
    </Card>
  );
}

interface NumberProps {
  class?: string;
  value: string;
  change(value: string): void;
}

const Bound = (props: NumberProps) => <TextInput type="number" min={1} max={MAX_BOUND} {...props} />;

/** What a language model costs. */
export function PricesPart({ form, change, errors }: PartProps) {
  const s = strings.bot.prices;
  return (
    <Fold title={<h3>{s.title}</h3>} open={hasPrices(form)} reveal={hasErrorIn('model.prices', errors)}>
      <p class="muted">{s.lead}</p>
      <div class="form-grid">
        <Field label={s.input} optional error={errors['model.prices.input']}>
          <Price value={form.inputPrice} change={(inputPrice) => change({ inputPrice })} />
        </Field>
        <Field label={s.output} optional error={errors['model.prices.output']}>
          <Price value={form.outputPrice} change={(outputPrice) => change({ outputPrice })} />
        </Field>
        <Field label={s.currency} optional error={errors['model.prices.currency']}>
          <TextInput
            value={form.currency}
            change={(currency) => change({ currency })}
            maxLength={10}
            placeholder="EUR"
          />
        </Field>
      </div>
    </Fold>
  );
}

const Price = (props: NumberProps) => <TextInput type="number" min={0} max={MAX_PRICE} step="any" {...props} />;

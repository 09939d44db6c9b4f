import { useState } from 'preact/hooks';
import { companies } from '../api/api.js';
import { fieldErrors, messageOf } from '../api/client.js';
import type { Company } from '../api/types.js';
import { selectCompany } from '../state.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Dialog } from '../ui/dialog.js';
import { Field, TextInput } from '../ui/field.js';
import { Notice } from '../ui/states.js';
import { toast } from '../ui/toast.js';

const s = strings.people;

/** Creates or renames a company. */
export function CompanyDialog({ company, close }: { company?: Company; close(): void }) {
  const [name, setName] = useState(company?.name ?? '');
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const errors = fieldErrors(problem);
  const submit = async () => {
    setTried(true);
    if (busy || !name.trim()) return;
    setBusy(true);
    try {
      const saved = company ? await companies.rename(company.id, name.trim()) : await companies.create(name.trim());
      selectCompany(saved);
      toast(company ? s.renamed : s.companyCreated(saved.name));
      close();
    } catch (err) {
      setBusy(false);
      setProblem(err);
    }
  };
  return (
    <Dialog title={company ? s.renameCompany : s.newCompany} close={close} onSubmit={() => void submit()} footer={<><Button onClick={close}>{strings.cancel}</Button><Button type="submit" kind="primary" busy={busy}>{company ? strings.save : s.createCompany}</Button></>}>
      {!!problem && !Object.keys(errors).length && <Notice kind="bad">{messageOf(problem)}</Notice>}
      <Field label={s.companyName} required error={errors.name ?? (tried && !name.trim() ? strings.required : undefined)}><TextInput value={name} change={setName} spellcheck maxLength={100} /></Field>
    </Dialog>
  );
}

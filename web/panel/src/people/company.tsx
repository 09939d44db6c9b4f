import { useState } from 'preact/hooks';
import { companies } from '../api/api.js';
import type { Company } from '../api/types.js';
import { selectCompany } from '../state.js';
import { strings } from '../strings.js';
import { FormDialog } from '../ui/dialog.js';
import { Field, TextInput } from '../ui/field.js';
import { useSubmit } from '../ui/submit.js';
import { toast } from '../ui/toast.js';

const s = strings.people;

/** Creates or renames a company. */
export function CompanyDialog({ company, close }: { company?: Company; close(): void }) {
  const [name, setName] = useState(company?.name ?? '');
  const form = useSubmit(async () => {
    const saved = company ? await companies.rename(company.id, name.trim()) : await companies.create(name.trim());
    selectCompany(saved);
    toast(company ? s.renamed : s.companyCreated(saved.name));
    close();
  }, !!name.trim());
  const { errors, tried } = form;
  return (
    <FormDialog
      title={company ? s.renameCompany : s.newCompany}
      close={close}
      form={form}
      action={company ? strings.save : s.createCompany}
    >
      <Field
        label={s.companyName}
        required
        error={errors.name ?? (tried && !name.trim() ? strings.required : undefined)}
      >
        <TextInput value={name} change={setName} spellcheck maxLength={100} />
      </Field>
    </FormDialog>
  );
}

import { useState } from 'preact/hooks';
import { FormDialog } from './dialog.js';
import { Field, Select } from './field.js';
import { useSubmit } from './submit.js';

interface Text {
  rotate: string;
  rotateLead: string;
  overlap: string;
  overlapHint: string;
  overlaps: readonly (readonly [string, string])[];
}

/** Asks how long the old secret stays valid, then rotates it. */
export function Rotate({
  title,
  text,
  close,
  rotate,
}: {
  title: string;
  text: Text;
  close(): void;
  rotate(overlapSeconds: number): Promise<void>;
}) {
  const [overlap, setOverlap] = useState('86400');
  const form = useSubmit(() => rotate(Number(overlap)));
  return (
    <FormDialog title={title} close={close} form={form} action={text.rotate} notice={!!form.error}>
      <p>{text.rotateLead}</p>
      <Field label={text.overlap} hint={text.overlapHint}>
        <Select
          value={overlap}
          change={setOverlap}
          options={text.overlaps.map(([value, label]) => ({ value, label }))}
        />
      </Field>
    </FormDialog>
  );
}

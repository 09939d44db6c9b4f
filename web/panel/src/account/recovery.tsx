import { useState } from 'preact/hooks';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Code } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Checkbox } from '../ui/field.js';
import { Notice } from '../ui/states.js';

const s = strings.account;

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Shows recovery codes, which the server answers once. */
export function RecoveryCodes({ codes, close }: { codes: string[]; close(): void }) {
  const [stored, setStored] = useState(false);
  const text = codes.join('\n');
  return (
    <Dialog
      title={s.recoveryTitle}
      close={() => stored && close()}
      footer={
        <Button kind="primary" disabled={!stored} onClick={close}>
          {strings.done}
        </Button>
      }
    >
      <Notice kind="info">{s.recoveryLead}</Notice>
      <Code text={text} label={s.recoveryTitle} />
      <div>
        <Button small icon="download" onClick={() => download('parley-recovery-codes.txt', `${text}\n`)}>
          {s.recoveryDownload}
        </Button>
      </div>
      <Checkbox label={s.recoveryStored} checked={stored} change={setStored} />
    </Dialog>
  );
}

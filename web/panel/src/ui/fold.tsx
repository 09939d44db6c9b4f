import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

export interface FoldProps {
  /** What is shown when the part is folded as well. */
  title: ComponentChildren;
  /** Whether the part is open at first. */
  open?: boolean;
  /** Opens the part when it becomes true, such as for a field with an error. */
  reveal?: boolean;
  class?: string;
  children: ComponentChildren;
}

/** A part that the user folds. Its content is rendered when it is opened for the first time, and then stays. */
export function Fold({ title, open: first = false, reveal = false, class: more, children }: FoldProps) {
  const [open, setOpen] = useState(first);
  const opened = useRef(false);
  const shown = open || reveal;
  opened.current ||= shown;
  return (
    <details
      class={more ? `fold ${more}` : 'fold'}
      open={shown}
      onToggle={(e) => setOpen((e.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>{title}</summary>
      {opened.current && <div class="fold-body">{children}</div>}
    </details>
  );
}

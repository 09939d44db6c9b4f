import type { ComponentChildren } from 'preact';
import { messageOf, requestIdOf } from '../api/client.js';
import { strings } from '../strings.js';
import { Button } from './button.js';
import { Glyph, type GlyphName } from './icon.js';

/** The empty state: what is missing, and what to do next. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: GlyphName;
  title: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="state">
      <span class="state-icon">
        <Glyph name={icon} size={24} />
      </span>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

/** The error state of a failed load. */
export function Failed({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const id = requestIdOf(error);
  return (
    <div class="state" role="alert">
      <span class="state-icon bad">
        <Glyph name="alert" size={24} />
      </span>
      <h2>{strings.loadFailed}</h2>
      <p>{messageOf(error)}</p>
      {id && (
        <p class="faint small">
          {strings.requestId} <code>{id}</code>
        </p>
      )}
      {retry && (
        <Button icon="refresh" onClick={retry}>
          {strings.tryAgain}
        </Button>
      )}
    </div>
  );
}

/** A loading placeholder. */
export function Skeleton({ rows = 6, class: more }: { rows?: number; class?: string }) {
  return (
    <div class={more ? `skeleton ${more}` : 'skeleton'} role="status" aria-label={strings.loading}>
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} aria-hidden="true" />
      ))}
    </div>
  );
}

export function Notice({
  kind = 'info',
  children,
  action,
}: {
  kind?: 'info' | 'good' | 'warn' | 'bad';
  children: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class={`notice ${kind}`} role={kind === 'bad' ? 'alert' : undefined}>
      <Glyph name={kind === 'good' ? 'check' : kind === 'info' ? 'info' : 'alert'} />
      <div>{children}</div>
      {action}
    </div>
  );
}

export function Badge({
  kind = 'plain',
  children,
}: {
  kind?: 'plain' | 'accent' | 'good' | 'warn' | 'bad';
  children: ComponentChildren;
}) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

const hues = 8;

/** A circle with initials. The name determines its colour. */
export function Avatar({
  name,
  letters,
  size = 'normal',
  online,
}: {
  name: string;
  letters: string;
  size?: 'small' | 'normal' | 'large';
  online?: boolean;
}) {
  let sum = 0;
  for (const c of name) sum = (sum * 31 + c.codePointAt(0)!) % 9973;
  return (
    <span class={`avatar ${size} hue-${sum % hues}`} aria-hidden="true">
      {letters}
      {online && <span class="presence" />}
    </span>
  );
}

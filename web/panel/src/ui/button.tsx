import type { ComponentChildren, JSX, Ref } from 'preact';
import { Glyph, type GlyphName } from './icon.js';

type Native = Omit<JSX.IntrinsicElements['button'], 'icon' | 'ref' | 'size'>;

export interface ButtonProps extends Native {
  kind?: 'primary' | 'secondary' | 'danger' | 'quiet';
  icon?: GlyphName | undefined;
  small?: boolean;
  busy?: boolean;
  buttonRef?: Ref<HTMLButtonElement>;
  children: ComponentChildren;
}

/** A busy button keeps the focus and its width, and ignores clicks. */
export function Button({
  kind = 'secondary',
  icon,
  small,
  busy,
  buttonRef,
  children,
  class: more,
  onClick,
  ...rest
}: ButtonProps) {
  const names = ['btn', kind, small && 'small', busy && 'busy', more].filter(Boolean).join(' ');
  return (
    <button
      type="button"
      ref={buttonRef}
      class={names}
      aria-disabled={busy || undefined}
      onClick={(e) => !busy && onClick?.(e)}
      {...rest}
    >
      {icon && <Glyph name={icon} size={16} />}
      <span>{children}</span>
    </button>
  );
}

export interface IconButtonProps extends Native {
  label: string;
  icon: GlyphName;
  small?: boolean;
  buttonRef?: Ref<HTMLButtonElement>;
}

export function IconButton({ label, icon, small, buttonRef, class: more, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      ref={buttonRef}
      class={['iconbtn', small && 'small', more].filter(Boolean).join(' ')}
      aria-label={label}
      title={label}
      {...rest}
    >
      <Glyph name={icon} size={small ? 16 : 18} />
    </button>
  );
}

export function LinkButton({
  href,
  kind = 'secondary',
  icon,
  small,
  children,
  ...rest
}: { href: string; kind?: ButtonProps['kind']; icon?: GlyphName; small?: boolean; children: ComponentChildren } & Omit<
  JSX.IntrinsicElements['a'],
  'icon' | 'ref'
>) {
  return (
    <a href={href} class={['btn', kind, small && 'small'].filter(Boolean).join(' ')} {...rest}>
      {icon && <Glyph name={icon} size={16} />}
      <span>{children}</span>
    </a>
  );
}

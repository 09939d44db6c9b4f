import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useRule } from '../lib/sheet.js';
import { IconButton } from './button.js';
import { Glyph, type GlyphName } from './icon.js';

export interface MenuItem {
  label: string;
  icon?: GlyphName;
  danger?: boolean;
  checked?: boolean;
  hint?: string;
  act(): void;
}

export interface MenuProps {
  label: string;
  items: (MenuItem | false | undefined)[];
  /** The content of the button; three dots by default. */
  children?: ComponentChildren;
  class?: string;
  up?: boolean;
  /** Whether the content of the button is its accessible name. */
  named?: boolean;
}

/** A button that opens a list of actions. The list is a popover in the top layer, so that no scroll container clips it. */
export function Menu({ label, items, children, class: more, up, named }: MenuProps) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const place = useRule({});
  const all = items.filter((i): i is MenuItem => !!i);

  useEffect(() => {
    if (!open) return;
    const menu = list.current!;
    const b = button.current!.getBoundingClientRect();
    menu.showPopover();
    const { width, height } = menu.getBoundingClientRect();
    const left = Math.max(8, Math.min(up ? b.left : b.right - width, innerWidth - width - 8));
    const below = b.bottom + 4 + height < innerHeight - 8 && !up;
    const top = below ? b.bottom + 4 : Math.max(8, b.top - height - 4);
    rulePlace(place, left, top);
    menu.querySelector<HTMLElement>('[role^=menuitem]')?.focus();
    const onPointerDown = (e: Event) => {
      if (!menu.contains(e.target as Node) && !button.current!.contains(e.target as Node)) setOpen(false);
    };
    const onResize = () => setOpen(false);
    addEventListener('pointerdown', onPointerDown);
    addEventListener('resize', onResize);
    return () => {
      removeEventListener('pointerdown', onPointerDown);
      removeEventListener('resize', onResize);
    };
  }, [open]);

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const keys = (e: KeyboardEvent) => {
    const entries = [...list.current!.querySelectorAll<HTMLElement>('[role^=menuitem]')];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[e.key];
    if (to !== undefined) entries[(to + entries.length) % entries.length]?.focus();
    else if (e.key === 'Escape') close();
    else if (e.key === 'Tab') setOpen(false);
    else if (e.key.length === 1)
      entries.find((x) => x.textContent!.trim().toLowerCase().startsWith(e.key.toLowerCase()))?.focus();
    if (to !== undefined || e.key === 'Escape') {
      e.preventDefault();
      e.stopPropagation();
    }
  };
  const press = {
    'aria-haspopup': 'menu',
    'aria-expanded': open,
    'aria-controls': open ? id : undefined,
    onClick: () => setOpen(!open),
  } as const;
  return (
    <>
      {children ? (
        <button
          type="button"
          ref={button}
          class={more}
          {...(!named && { 'aria-label': label, title: label })}
          {...press}
        >
          {children}
        </button>
      ) : (
        <IconButton buttonRef={button} icon="more" label={label} class={more} {...press} />
      )}
      {open && (
        <div
          ref={list}
          id={id}
          popover="manual"
          role="menu"
          aria-label={label}
          class={`menu ${place}`}
          onKeyDown={keys}
        >
          {all.map((item) => (
            <button
              key={item.label}
              type="button"
              role={item.checked === undefined ? 'menuitem' : 'menuitemradio'}
              aria-checked={item.checked}
              tabIndex={-1}
              class={item.danger ? 'menuitem danger' : 'menuitem'}
              onClick={() => {
                close();
                item.act();
              }}
            >
              {item.icon && <Glyph name={item.icon} />}
              <span>
                {item.label}
                {item.hint && <small>{item.hint}</small>}
              </span>
              {item.checked && <Glyph name="check" />}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function rulePlace(name: string, left: number, top: number) {
  for (const sheet of document.adoptedStyleSheets) {
    const rule = sheet.cssRules[0] as CSSStyleRule;
    if (rule.selectorText !== `.${name}`) continue;
    rule.style.setProperty('left', `${Math.round(left)}px`);
    rule.style.setProperty('top', `${Math.round(top)}px`);
  }
}

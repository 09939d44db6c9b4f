import { Fragment, jsx, jsxs } from 'preact/jsx-runtime';
import { ApiError } from '@parley/shared/api.js';
import { text } from '@parley/shared/message.js';
import { useEffect, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import type { Host } from '../host.js';
import { useScreen } from './context.js';

declare const __EXTRAS__: string;
declare const __EXTRAS_INTEGRITY__: string;

/** What the extras have from the chat: with a Preact of their own they could not be part of its screen. */
const shared = { Fragment, jsx, jsxs, ApiError, text, useEffect, useRef, useState, Icon, useScreen };

export type Shared = typeof shared;

type Parts = typeof import('../extras.js');

/** After a failure the screen, which is drawn often, asks again only after this time. */
const PAUSE = 5_000;

/** Loads the extras when one of them is first needed. Without them the rest of the chat goes on. */
export class Extras {
  #parts: Parts | undefined;
  #loading: Promise<Parts> | undefined;
  #failures = 0;
  #notBefore = 0;

  constructor(readonly host: Host, readonly loaded: () => void) {}

  /** The extras, if they are loaded; otherwise they are requested, and `loaded` is called when they are there. */
  need(): Parts | undefined {
    if (!this.#parts && Date.now() >= this.#notBefore) this.load().catch(() => {});
    return this.#parts;
  }

  load(): Promise<Parts> {
    return (this.#loading ??= this.#fetch());
  }

  async #fetch(): Promise<Parts> {
    const { host } = this;
    // A browser may remember that a module failed, by its address.
    const file = __EXTRAS__ + (this.#failures ? `?${this.#failures}` : '');
    const link = host.preload(file, __EXTRAS_INTEGRITY__);
    try {
      const parts = (await import(host.base + file)) as Parts;
      parts.provide(shared);
      const look = new CSSStyleSheet();
      look.replaceSync(parts.styles);
      host.root.adoptedStyleSheets = [...host.root.adoptedStyleSheets, look];
      this.#parts = parts;
      this.loaded();
      return parts;
    } catch (err) {
      this.#failures++;
      this.#notBefore = Date.now() + PAUSE;
      this.#loading = undefined;
      throw err;
    } finally {
      link.remove();
    }
  }
}

import { Fragment, jsx, jsxs } from 'preact/jsx-runtime';
import { ApiError } from '@parley/shared/api.js';
import { text } from '@parley/shared/message.js';
import { useEffect, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import type { Host } from '../host.js';
import { type ExtrasModule, useScreen } from './context.js';

declare const __EXTRAS__: string;
declare const __EXTRAS_INTEGRITY__: string;

/**
 * Modules that the extras share with the chat. Components must use the same Preact instance as the tree that renders
 * them.
 */
const shared = { Fragment, jsx, jsxs, ApiError, text, useEffect, useRef, useState, Icon, useScreen };

export type Shared = typeof shared;

/** The module as it is loaded: with what only this file uses. */
export interface LoadedExtras extends ExtrasModule {
  provide(given: Shared): void;
  styles: string;
}

/** Minimum delay before a failed load is retried, because every render calls `getOrLoad`. */
const RETRY_DELAY = 5_000;

/** Loads the extras on first use. The chat works without them. */
export class Extras {
  #module: LoadedExtras | undefined;
  #loading: Promise<LoadedExtras> | undefined;
  #failures = 0;
  #notBefore = 0;

  constructor(
    readonly host: Host,
    readonly onLoaded: () => void,
  ) {}

  /** Returns the extras if loaded; otherwise starts loading, which ends with a call of `onLoaded`. */
  getOrLoad(): LoadedExtras | undefined {
    if (!this.#module && Date.now() >= this.#notBefore) this.load().catch(() => {});
    return this.#module;
  }

  load(): Promise<LoadedExtras> {
    return (this.#loading ??= this.#fetch());
  }

  async #fetch(): Promise<LoadedExtras> {
    const { host } = this;
    // Browsers may cache a failed module by its URL, so a retry needs another URL.
    const file = __EXTRAS__ + (this.#failures ? `?${this.#failures}` : '');
    const link = host.preload(file, __EXTRAS_INTEGRITY__);
    try {
      const module = (await import(host.base + file)) as LoadedExtras;
      module.provide(shared);
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(module.styles);
      host.root.adoptedStyleSheets = [...host.root.adoptedStyleSheets, sheet];
      this.#module = module;
      this.onLoaded();
      return module;
    } catch (err) {
      this.#failures++;
      this.#notBefore = Date.now() + RETRY_DELAY;
      this.#loading = undefined;
      throw err;
    } finally {
      link.remove();
    }
  }
}

import { Fragment, jsx, jsxs } from 'preact/jsx-runtime';
import { ApiError } from '@parley/shared/api.js';
import { text } from '@parley/shared/message.js';
import { Link, Linked } from '@parley/shared/render/content.js';
import { useEffect, useRef, useState } from '@parley/shared/render/hooks.js';
import { Icon } from '@parley/shared/render/icon.js';
import { safeLink } from '@parley/shared/url.js';
import type { Host } from '../host.js';
import { useScreen } from './context.js';

/**
 * What modules that are loaded later share with the chat. Components must use the same Preact instance as the tree that
 * renders them.
 */
const shared = {
  Fragment,
  jsx,
  jsxs,
  ApiError,
  text,
  useEffect,
  useRef,
  useState,
  Icon,
  useScreen,
  Link,
  Linked,
  safeLink,
};

export type Shared = typeof shared;

/** The exports of each such module that this file uses. */
export interface Loaded {
  provide(given: Shared): void;
  styles: string;
}

/** Minimum delay before a failed load is retried, because every render calls `getOrLoad`. */
const RETRY_DELAY = 5_000;

/** Loads a module on first use. The chat works without it. */
export class OnDemand<Module extends Loaded> {
  loaded: Module | undefined;
  #loading: Promise<Module> | undefined;
  #failures = 0;
  #notBefore = 0;

  constructor(
    readonly host: Host,
    readonly file: string,
    readonly integrity: string,
    readonly onLoaded: () => void,
  ) {}

  /** Returns the module if loaded; otherwise starts loading, which ends with a call of `onLoaded`. */
  getOrLoad(): Module | undefined {
    if (!this.loaded && Date.now() >= this.#notBefore) this.load().catch(() => {});
    return this.loaded;
  }

  load(): Promise<Module> {
    return (this.#loading ??= this.#fetch());
  }

  async #fetch(): Promise<Module> {
    const { host } = this;
    // Browsers may cache a failed module by its URL, so a retry needs another URL.
    const file = this.file + (this.#failures ? `?${this.#failures}` : '');
    const link = host.preload(file, this.integrity);
    try {
      const module = (await import(host.base + file)) as Module;
      module.provide(shared);
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(module.styles);
      host.root.adoptedStyleSheets = [...host.root.adoptedStyleSheets, sheet];
      this.loaded = module;
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

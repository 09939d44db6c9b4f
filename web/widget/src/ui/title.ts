import type { Language } from '../i18n.js';

/** The title of the page, which shows the unread count before the site's own title. */
export class PageTitle {
  #shown: { title: string; own: string } | undefined;

  show(unread: number, language: Language | undefined): void {
    this.restore();
    if (!unread || !language) return;
    const own = document.title;
    const title = language.t('titleUnread', { n: language.number(unread), title: own });
    document.title = title;
    this.#shown = { title, own };
  }

  /** Restores the site's own title, unless the site has set another one since. */
  restore(): void {
    if (document.title === this.#shown?.title) document.title = this.#shown.own;
    this.#shown = undefined;
  }
}

declare module '*.css' {
  const text: string;
  export default text;
}

/** Made by the build: the languages in i18n/, each a file of its own. */
declare module 'languages' {
  const table: Record<string, () => Promise<{ default: import('./i18n/strings.js').Strings }>>;
  export default table;
}

/** Made by the build: what the extras have from the chat. */
declare module 'chat' {
  export function provide(shared: import('./ui/extras.js').Shared): void;
}

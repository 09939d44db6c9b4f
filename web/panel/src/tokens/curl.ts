/** Returns an example call with the token. The user replaces CHAT_ID with the id of a chat. */
export function curlFor(base: string, token: string): string {
  const body = JSON.stringify({ type: 'TEXT', data: { text: 'Hello from the API' }, chatId: 'CHAT_ID' });
  return `curl -X POST ${quote(base.replace(/\/$/, '') + '/message/send')} -H ${quote(`x-access-token: ${token}`)} -H 'Content-Type: application/json' -d ${quote(body)}`;
}

/** Quotes a word for the shell, if needed. */
export const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

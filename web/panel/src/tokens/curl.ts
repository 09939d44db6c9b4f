/** The first call that a company makes: it says whether the token counts, and which chat is meant is to be filled in. */
export function curlFor(base: string, token: string): string {
  const body = JSON.stringify({ type: 'TEXT', data: { text: 'Hello from the API' }, chatId: 'CHAT_ID' });
  return `curl -X POST ${quote(base.replace(/\/$/, '') + '/message/send')} -H ${quote(`x-access-token: ${token}`)} -H 'Content-Type: application/json' -d ${quote(body)}`;
}

/** A word for the shell. */
export const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

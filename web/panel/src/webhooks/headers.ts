/** Reads headers from lines of "Name: value"; undefined where a line is none. */
export function parseHeaders(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (const line of text.split('\n').map((l) => l.trim()).filter(Boolean)) {
    const [, name, value] = /^([^\s:]+):\s*(.+)$/.exec(line) ?? [];
    if (!name || !value) return undefined;
    headers[name] = value;
  }
  return headers;
}

/** JSON indented to be read; anything else as it is. */
export function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

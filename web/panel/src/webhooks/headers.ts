/** Parses headers from lines of "Name: value". Returns undefined when a line is malformed. */
export function parseHeaders(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (const line of text
    .split('\n')
    .map((l) => l.trim())
    .filter(Boolean)) {
    const [, name, value] = /^([^\s:]+):\s*(.+)$/.exec(line) ?? [];
    if (!name || !value) return undefined;
    headers[name] = value;
  }
  return headers;
}

/** Indents JSON. Returns any other text unchanged. */
export function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

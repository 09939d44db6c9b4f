import type { SessionEntry } from '../api/types.js';
import { formatAgo, formatFull } from '../lib/format.js';
import { strings } from '../strings.js';
import { Button } from '../ui/button.js';
import { Glyph } from '../ui/icon.js';
import { Badge } from '../ui/states.js';

const s = strings.people;

/** Returns the browser and the operating system from the User-Agent. */
export function browserOf(userAgent: string): string {
  const browser = (
    [
      [/Edg\//, 'Edge'],
      [/OPR\//, 'Opera'],
      [/Firefox\//, 'Firefox'],
      [/Chrome\//, 'Chrome'],
      [/Safari\//, 'Safari'],
      [/curl\//, 'curl'],
    ] as const
  ).find(([r]) => r.test(userAgent))?.[1];
  const system = (
    [
      [/iPhone|iPad/, 'iOS'],
      [/Android/, 'Android'],
      [/Windows/, 'Windows'],
      [/Mac OS X/, 'macOS'],
      [/Linux/, 'Linux'],
    ] as const
  ).find(([r]) => r.test(userAgent))?.[1];
  if (!browser && !system) return s.unknownBrowser;
  return [browser ?? s.unknownBrowser, system].filter(Boolean).join(', ');
}

export function SessionList({ sessions, end }: { sessions: SessionEntry[]; end?: (id: string) => void }) {
  if (!sessions.length) return <p class="faint">{s.noSessions}</p>;
  return (
    <ul class="plain-list">
      {sessions.map((x) => (
        <li key={x.id}>
          <Glyph name={/iPhone|Android|Mobile/.test(x.userAgent) ? 'phone' : 'display'} />
          <span class="grow-1">
            <span class="strong">{browserOf(x.userAgent)}</span>{' '}
            {x.current && <Badge kind="good">{s.thisBrowser}</Badge>}
            <span class="sub">
              {x.address} · {s.lastSeen(formatAgo(x.lastSeenAt))} · {s.signedInAt(formatFull(x.createdAt))}
            </span>
          </span>
          {end && !x.current && (
            <Button small onClick={() => end(x.id)} aria-label={s.endSession(browserOf(x.userAgent))}>
              {strings.signOut}
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

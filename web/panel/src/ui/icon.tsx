/** The icons of the panel: stroked paths on a 24 by 24 grid. */
export const paths = {
  inbox: 'M4 13h4.5l1.5 3h4l1.5-3H20M4 13l2.5-8h11L20 13v6H4v-6Z',
  key: 'M14.5 13.5a5 5 0 1 0-4.3-2.4L4 17.3V20h3v-2h2v-2h2l1.3-2.9a5 5 0 0 0 2.2.4ZM15.5 8h.01',
  window: 'M4 5h16v14H4V5Zm0 4h16M7 7h.01M10 7h.01',
  template: 'M6 3.5h8l4 4v13H6v-17ZM14 3.5v4h4M9 12h6M9 15.5h4',
  streams: 'M3 7c3 0 3 2 6 2s3-2 6-2 3 2 6 2M3 12c3 0 3 2 6 2s3-2 6-2 3 2 6 2M3 17c3 0 3 2 6 2s3-2 6-2 3 2 6 2',
  people:
    'M9 11.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 19.5c.4-3.3 3-5.5 6.5-5.5s6.1 2.2 6.5 5.5M16 4.8a3.5 3.5 0 0 1 0 6.4M18 14.4c2 .8 3.3 2.6 3.5 5.1',
  history: 'M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5M12 8v4.5l3 1.8',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20c.6-3.6 3.6-6 7.5-6s6.9 2.4 7.5 6',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.5 15.5 20 20',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h11v11H9V9ZM5 15H4V4h11v1',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  checks: 'M2.5 12.5 7 17l8.5-9.5M11.5 16l1.2 1L21.5 7.5',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  down: 'M6 9l6 6 6-6',
  up: 'M6 15l6-6 6 6',
  left: 'M14.5 6l-6 6 6 6',
  right: 'M9.5 6l6 6-6 6',
  logout: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4',
  moon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10Z',
  display: 'M3.5 5h17v11h-17V5ZM9 20h6M12 16v4',
  phone: 'M7.5 3h9v18h-9V3ZM11 18h2',
  bell: 'M6 16.5V11a6 6 0 1 1 12 0v5.5l1.5 1.5h-15L6 16.5ZM10 20.5h4',
  mute: 'M6 16.5V11a6 6 0 0 1 9.5-4.9M18 11v5.5l1.5 1.5h-11M10 20.5h4M4 4l16 16',
  send: 'M4 12 20 4l-5 16-3.5-6.5L4 12Zm7.5 1.5L20 4',
  attach: 'M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4l7.7-7.8',
  choices: 'M4 6.5h2M4 12h2M4 17.5h2M9.5 6.5H20M9.5 12H20M9.5 17.5H20',
  bot: 'M5 9h14v10H5V9ZM12 9V5M12 5h.01M9 13.5h.01M15 13.5h.01M9.5 16.5h5M2.5 13v3M21.5 13v3',
  hand: 'M8 12V6a1.5 1.5 0 0 1 3 0v5-7a1.5 1.5 0 0 1 3 0v7-5.5a1.5 1.5 0 0 1 3 0V15a6 6 0 0 1-6 6c-3 0-4.3-1.3-6-4l-2-3.5c-.6-1 .8-2.2 1.8-1.3L8 14.5',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12ZM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z',
  eyeOff:
    'M4 4l16 16M9.9 6A9 9 0 0 1 12 5.5c6 0 9.5 6.5 9.5 6.5a16 16 0 0 1-3 3.6M6.3 7.8A16 16 0 0 0 2.5 12S6 18.5 12 18.5c1.5 0 2.8-.4 4-1M10 10a3 3 0 0 0 4 4',
  alert: 'M12 4 2.5 20h19L12 4Zm0 6v4.5m0 2.5h.01',
  info: 'M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17ZM12 11v5.5M12 8h.01',
  clock: 'M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16ZM12 8v4.5l3 1.5',
  refresh: 'M19 12a7 7 0 1 1-2-5l2.5 2.5M19.5 4.5v5h-5',
  trash: 'M5 7h14M10 7V4.5h4V7m-7 0 1 13h8l1-13',
  edit: 'M4 20h4L19 9l-4-4L4 16v4ZM13 7l4 4',
  link: 'M9 5H5v14h14v-4M13 5h6v6m0-6-8.5 8.5',
  mail: 'M3.5 6h17v12h-17V6Zm0 .5 8.5 6.5 8.5-6.5',
  shield: 'M12 3.5 5 6v5.5c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6l-7-2.5ZM9 12l2.2 2.2L15.5 10',
  play: 'M8 5.5v13l11-6.5-11-6.5Z',
  pause: 'M8 5v14M16 5v14',
  download: 'M12 4v11m0 0 4.5-4.5M12 15l-4.5-4.5M5 20h14',
  building: 'M5 20.5v-16h9v16M14 9.5h5v11M3 20.5h18M8 8h3M8 11.5h3M8 15h3',
  menu: 'M4 7h16M4 12h16M4 17h16',
  filter: 'M4 6h16l-6 7v5l-4 2v-7L4 6Z',
  keyboard: 'M3 7h18v11H3V7ZM6.5 10.5h.01M10 10.5h.01M13.5 10.5h.01M17 10.5h.01M8 14.5h8',
  route:
    'M6 19a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM18 10a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8.5 16.5H15a3 3 0 0 0 3-3V10M6 14V8.5a2 2 0 0 1 2-2h7.5',
  webhook:
    'M12 4.5a3 3 0 0 1 2.4 4.8L17 14.5M12 4.5a3 3 0 0 0-2.6 4.6L6.5 14.5M6 14.5a2.5 2.5 0 1 0 2.5 2.5H15.5M18 14.5a2.5 2.5 0 1 1-2.5 2.5',
  book: 'M12 6.5c-2-1.4-4.6-2-8.5-2v13c3.9 0 6.5.6 8.5 2 2-1.4 4.6-2 8.5-2v-13c-3.9 0-6.5.6-8.5 2Zm0 0v13',
  archive: 'M4 5h16v4H4V5Zm1.5 4v10.5h13V9M10 13h4',
} as const;

export type GlyphName = keyof typeof paths;

export function Glyph({
  name,
  size = 18,
  class: more,
}: {
  name: GlyphName;
  size?: 14 | 16 | 18 | 20 | 24 | 32;
  class?: string;
}) {
  return (
    <svg
      viewBox="0 0 24 24"
      width={size}
      height={size}
      class={['glyph', name === 'more' && 'glyph-more', more].filter(Boolean).join(' ')}
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}

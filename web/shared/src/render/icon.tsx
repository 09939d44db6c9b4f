/** SVG path data on a 24 × 24 grid. */
export const icons = {
  close: 'M6 6l12 12M18 6 6 18',
  down: 'M6 9l6 6 6-6',
  more: 'M4.4 12a.6.6 0 1 0 1.2 0 .6.6 0 1 0-1.2 0m7 0a.6.6 0 1 0 1.2 0 .6.6 0 1 0-1.2 0m7 0a.6.6 0 1 0 1.2 0 .6.6 0 1 0-1.2 0',
  send: 'M4 12 20 4l-5 16-3.5-6.5L4 12Zm7.5 1.5L20 4',
  attach: 'M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4l7.7-7.8',
  camera: 'M4 8h3.5L9 5.5h6L16.5 8H20v11H4V8Zm8 8.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Z',
  file: 'M7 3h7l5 5v13H7V3Zm7 0v5h5M10 13h6M10 17h6',
  download: 'M12 4v11m0 0 4.5-4.5M12 15l-4.5-4.5M5 20h14',
  play: 'M8 5.5v13l11-6.5-11-6.5Z',
  retry: 'M19 12a7 7 0 1 1-2-5l2.5 2.5M19.5 4.5v5h-5',
  trash: 'M5 7h14M10 7V4.5h4V7m-7 0 1 13h8l1-13',
  bell: 'M6 16.5V11a6 6 0 1 1 12 0v5.5l1.5 1.5h-15L6 16.5ZM10 20.5h4',
  mute: 'M6 16.5V11a6 6 0 0 1 9.5-4.9M18 11v5.5l1.5 1.5h-11M10 20.5h4M4 4l16 16',
  left: 'M14.5 6l-6 6 6 6',
  right: 'M9.5 6l6 6-6 6',
  link: 'M9 5H5v14h14v-4M13 5h6v6m0-6-8.5 8.5',
  phone: 'M6.5 4h3l1.5 4.5-2 1.5a11 11 0 0 0 5 5l1.5-2 4.5 1.5v3a2 2 0 0 1-2 2A15.5 15.5 0 0 1 4.5 6a2 2 0 0 1 2-2Z',
  picture: 'M4 5h16v14H4V5Zm0 11 5-5 4 4 2.5-2.5L20 17M15.5 9.5h.01',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  checks: 'M2.5 12.5 7 17l8.5-9.5M11.5 16l1.2 1L21.5 7.5',
  clock: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16Zm0 4v4.5l3 1.5',
  alert: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16Zm0 4v5m0 3h.01',
} as const;

export type IconName = keyof typeof icons;

export function Icon({ name, flip }: { name: IconName; flip?: boolean }) {
  return (
    <svg viewBox="0 0 24 24" class={flip ? 'icon flip' : 'icon'} aria-hidden="true" focusable="false">
      <path d={icons[name]} />
    </svg>
  );
}

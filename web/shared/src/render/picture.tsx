import { h, type ComponentChild, type VNode } from 'preact';
import { useEffect, useRef, useState } from './hooks.js';
import { isOn, safeLink } from '../url.js';

export interface PictureProps {
  url: string;
  base: string;
  /** Origins that may be asked for pictures. No other one is. */
  origins: string[];
  alt: string;
  class?: string;
  /** Shown where the picture cannot be. */
  instead?: ComponentChild;
  onReady?: () => void;
}

/**
 * A picture from where the site allows it. One that stands in a data: URL is drawn by us, because the policies of many sites
 * forbid it in an <img>: pixels into a canvas, SVG as a few harmless shapes.
 */
export function Picture(p: PictureProps) {
  const [broken, setBroken] = useState('');
  if (p.url.startsWith('data:') && !p.origins.includes('data:')) {
    if (/^data:image\/svg\+xml/i.test(p.url)) return drawSvg(p.url, p.alt, p.class) ?? <>{p.instead}</>;
    return <Pixels source={p.url} alt={p.alt} class={p.class} instead={p.instead} />;
  }
  const url = p.url.startsWith('data:image/') ? p.url : safeLink(p.url, p.base);
  if (!url || !isOn(url, p.origins) || broken === url) return <>{p.instead}</>;
  return <img src={url} alt={p.alt} class={p.class} loading="lazy" decoding="async" draggable={false} onLoad={p.onReady} onError={() => setBroken(url)} />;
}

/** A picture that is in memory: the bytes of a data: URL, or a file that the visitor is about to send. */
export function Pixels({ source, alt, class: name, instead }: { source: string | Blob; alt: string; class?: string | undefined; instead?: ComponentChild }) {
  const canvas = useRef<HTMLCanvasElement>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let current = true;
    setFailed(false);
    const blob = typeof source === 'string' ? bytesOf(source) : source;
    if (!blob) return setFailed(true);
    createImageBitmap(blob).then(
      (image) => {
        const c = canvas.current;
        if (!current || !c) return image.close();
        const scale = Math.min(1, 640 / Math.max(image.width, image.height));
        c.width = Math.max(1, image.width * scale);
        c.height = Math.max(1, image.height * scale);
        c.getContext('2d')?.drawImage(image, 0, 0, c.width, c.height);
        image.close();
      },
      () => current && setFailed(true),
    );
    return () => {
      current = false;
    };
  }, [source]);
  return failed ? <>{instead}</> : <canvas ref={canvas} class={name} role="img" aria-label={alt || undefined} aria-hidden={alt ? undefined : 'true'} width={1} height={1} />;
}

function decode(url: string): { mime: string; data: string } | undefined {
  const match = /^data:([^;,]*)([^,]*),(.*)$/s.exec(url);
  if (!match) return undefined;
  try {
    return { mime: match[1]!, data: /;base64$/i.test(match[2]!) ? atob(match[3]!) : decodeURIComponent(match[3]!) };
  } catch {
    return undefined;
  }
}

function bytesOf(url: string): Blob | undefined {
  const d = decode(url);
  return d && new Blob([Uint8Array.from(d.data, (c) => c.charCodeAt(0))], { type: d.mime });
}

const SHAPES = /^(svg|g|path|circle|rect|ellipse|line|polyline|polygon)$/;
const LOOKS =
  /^(viewBox|d|c[xy]|r[xy]?|[xy][12]?|width|height|points|fill|stroke|transform|opacity|(fill|clip)-rule|fill-opacity|stroke-(width|linecap|linejoin|opacity))$/;

/** Makes elements of an SVG's shapes. What is no shape, and what refers to something else, is left out. */
export function drawSvg(url: string, alt: string, name?: string): VNode | undefined {
  const source = decode(url)?.data.replace(/<!--.*?-->/gs, '') ?? '';
  const open: { name: string; attributes: Record<string, string>; children: ComponentChild[] }[] = [];
  let skip = 0;
  for (const [, end, tag, rest, closed] of source.matchAll(/<(\/?)([a-zA-Z][\w:]*)((?:"[^"]*"|'[^']*'|[^>"'])*?)(\/?)>/g)) {
    if (!SHAPES.test(tag!)) {
      if (!closed) skip += end ? -1 : 1;
      continue;
    }
    if (skip > 0) continue;
    if (!end) {
      const attributes: Record<string, string> = {};
      for (const [, key, , a, b] of rest!.matchAll(/([\w:-]+)\s*=\s*("([^"]*)"|'([^']*)')/g)) {
        const value = a ?? b ?? '';
        if (LOOKS.test(key!) && !/url\(|[<&]/i.test(value)) attributes[key!] = value;
      }
      open.push({ name: tag!, attributes, children: [] });
    }
    if (!end && !closed) continue;
    const done = open.pop();
    if (!done) return undefined;
    if (!open.length) {
      if (done.name !== 'svg') return undefined;
      return h('svg', { ...done.attributes, class: name, role: 'img', 'aria-label': alt || undefined, 'aria-hidden': alt ? undefined : 'true' }, done.children) as VNode;
    }
    open.at(-1)!.children.push(h(done.name, done.attributes, done.children));
  }
  return undefined;
}

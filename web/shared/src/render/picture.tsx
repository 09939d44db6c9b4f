import { h, type ComponentChild, type VNode } from 'preact';
import { useEffect, useRef, useState } from './hooks.js';
import { isFromOrigins, safeLink } from '../url.js';

export interface PictureProps {
  url: string;
  base: string;
  /** Origins from which pictures may be loaded; no other origin is requested. */
  origins: string[];
  alt: string;
  class?: string;
  /** Shown if the picture is not allowed or fails to load. */
  fallback?: ComponentChild;
  onReady?: () => void;
}

/**
 * A picture from an allowed origin. Many sites' CSP forbids data: URLs in <img>, so unless `origins` has "data:", a data: URL is rendered
 * without <img>: bitmaps on a canvas, SVG as elements of an allowlist.
 */
export function Picture(p: PictureProps) {
  const [broken, setBroken] = useState('');
  if (p.url.startsWith('data:') && !p.origins.includes('data:')) {
    if (/^data:image\/svg\+xml/i.test(p.url)) return drawSvg(p.url, p.alt, p.class) ?? <>{p.fallback}</>;
    return <BitmapCanvas source={p.url} alt={p.alt} class={p.class} fallback={p.fallback} />;
  }
  const url = p.url.startsWith('data:image/') ? p.url : safeLink(p.url, p.base);
  if (!url || !isFromOrigins(url, p.origins) || broken === url) return <>{p.fallback}</>;
  return (
    <img
      src={url}
      alt={p.alt}
      class={p.class}
      loading="lazy"
      decoding="async"
      draggable={false}
      onLoad={p.onReady}
      onError={() => setBroken(url)}
    />
  );
}

/** Draws an in-memory picture on a canvas: a data: URL, or a file that is not sent yet. */
export function BitmapCanvas({
  source,
  alt,
  class: name,
  fallback,
}: {
  source: string | Blob;
  alt: string;
  class?: string | undefined;
  fallback?: ComponentChild;
}) {
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
  return failed ? (
    <>{fallback}</>
  ) : (
    <canvas
      ref={canvas}
      class={name}
      role="img"
      aria-label={alt || undefined}
      aria-hidden={alt ? undefined : 'true'}
      width={1}
      height={1}
    />
  );
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

const ELEMENTS = /^(svg|g|path|circle|rect|ellipse|line|polyline|polygon)$/;
const ATTRIBUTES =
  /^(viewBox|d|c[xy]|r[xy]?|[xy][12]?|width|height|points|fill|stroke|transform|opacity|(fill|clip)-rule|fill-opacity|stroke-(width|linecap|linejoin|opacity))$/;

/** Renders an SVG as virtual nodes. Drops elements and attributes outside the allowlist, and values that reference a URL. */
export function drawSvg(url: string, alt: string, name?: string): VNode | undefined {
  const source = decode(url)?.data.replace(/<!--.*?-->/gs, '') ?? '';
  const open: { name: string; attributes: Record<string, string>; children: ComponentChild[] }[] = [];
  let skip = 0;
  for (const [, end, tag, rest, closed] of source.matchAll(
    /<(\/?)([a-zA-Z][\w:]*)((?:"[^"]*"|'[^']*'|[^>"'])*?)(\/?)>/g,
  )) {
    if (!ELEMENTS.test(tag!)) {
      if (!closed) skip += end ? -1 : 1;
      continue;
    }
    if (skip > 0) continue;
    if (!end) {
      const attributes: Record<string, string> = {};
      for (const [, key, , a, b] of rest!.matchAll(/([\w:-]+)\s*=\s*("([^"]*)"|'([^']*)')/g)) {
        const value = a ?? b ?? '';
        if (ATTRIBUTES.test(key!) && !/url\(|[<&]/i.test(value)) attributes[key!] = value;
      }
      open.push({ name: tag!, attributes, children: [] });
    }
    if (!end && !closed) continue;
    const done = open.pop();
    if (!done) return undefined;
    if (!open.length) {
      if (done.name !== 'svg') return undefined;
      return h(
        'svg',
        {
          ...done.attributes,
          class: name,
          role: 'img',
          'aria-label': alt || undefined,
          'aria-hidden': alt ? undefined : 'true',
        },
        done.children,
      ) as VNode;
    }
    open.at(-1)!.children.push(h(done.name, done.attributes, done.children));
  }
  return undefined;
}

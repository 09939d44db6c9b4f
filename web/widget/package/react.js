import { useEffect, useRef, useState } from 'react';
import { load } from './index.js';

/**
 * The widget for as long as the component is on the page. `onLoad` gets its API. It follows `identity` (without one the session of the
 * last one ends), `lang` and `theme`; the other options hold from the first time.
 */
export function ParleyWidget({ onLoad, identity, ...options }) {
  const [parley, setParley] = useState();
  const identified = useRef(false);
  useEffect(() => {
    const loaded = load(options);
    setParley(loaded);
    onLoad?.(loaded);
    return () => loaded.destroy();
  }, [options.baseUrl, options.appId]);
  useEffect(() => {
    if (identity) parley?.identify(identity);
    else if (identified.current) parley?.logout();
    identified.current = !!identity;
  }, [parley, JSON.stringify(identity)]);
  useEffect(() => {
    if (options.lang) parley?.setLanguage(options.lang);
  }, [parley, options.lang]);
  useEffect(() => {
    if (options.theme) parley?.setTheme(options.theme);
  }, [parley, options.theme]);
  return null;
}

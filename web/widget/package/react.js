import { useEffect, useRef, useState } from 'react';
import { load } from './index.js';

/**
 * Shows the widget while the component is mounted. `onLoad` receives its API. Changes of `identity`, `lang` and `theme` are applied;
 * removing `identity` ends the session. A change of `baseUrl` or `appId` reloads the widget. Changes of other options are ignored.
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

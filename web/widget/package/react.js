import { useEffect } from 'react';
import { load } from './index.js';

/** The widget for as long as the component is on the page. `onLoad` gets its API. */
export function ParleyWidget({ onLoad, identity, ...options }) {
  useEffect(() => {
    const parley = load(options);
    if (identity) parley.identify(identity);
    onLoad?.(parley);
    return () => parley.destroy();
  }, [options.baseUrl, options.appId]);
  return null;
}

// Loads the widget into the page. Does nothing without a DOM, so that pages can be rendered on the server.

const METHODS = [
  'open',
  'close',
  'toggle',
  'show',
  'hide',
  'identify',
  'logout',
  'forget',
  'on',
  'off',
  'setLanguage',
  'setTheme',
];

/**
 * @param {import('./index.d.ts').Options} options
 * @returns {import('./index.d.ts').Parley}
 */
export function load({ baseUrl, appId, nonce, ...attributes }) {
  if (typeof document === 'undefined')
    return {
      ...Object.fromEntries(METHODS.map((name) => [name, () => {}])),
      ready: () => new Promise(() => {}),
      destroy() {},
    };

  const script = document.createElement('script');
  const queue = [];
  let api; // set when the script has run
  let destroyed = false;
  const whenReady = (act) => {
    if (destroyed) return;
    if (api) act(api);
    else queue.push(act);
  };
  const parley = Object.fromEntries(METHODS.map((name) => [name, (...args) => whenReady((api) => api[name](...args))]));
  parley.ready = () => new Promise((resolve) => whenReady(() => resolve(parley)));
  parley.destroy = () => {
    destroyed = true;
    api?.destroy();
    script.remove();
    delete script.dataset.appId; // a script that is already loading still runs; without an app id it does nothing
  };

  script.async = true;
  if (nonce) script.nonce = nonce;
  script.dataset.appId = appId;
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) script.dataset[key] = Array.isArray(value) ? value.join(' ') : String(value);
  script.addEventListener('load', () => {
    if (destroyed) return;
    api = window.Parley?.widgets?.[appId];
    if (api) for (const act of queue.splice(0)) act(api);
  });
  const url = `${baseUrl.replace(/\/$/, '')}/widget.js`;
  script.src = window.trustedTypes ? policy().createScriptURL(url) : url;
  document.head.append(script);
  return parley;
}

/** A Trusted Types policy, needed for script URLs on pages with require-trusted-types-for. */
function policy() {
  return (policy.made ??= window.trustedTypes.createPolicy('parley', { createScriptURL: (url) => url }));
}

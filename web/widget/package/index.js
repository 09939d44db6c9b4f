// Loads the widget into the page. On a server it does nothing, so that pages can be rendered there.

const METHODS = ['open', 'close', 'toggle', 'show', 'hide', 'identify', 'logout', 'forget', 'on', 'off', 'setLanguage', 'setTheme'];

/**
 * @param {import('./index.d.ts').Options} options
 * @returns {import('./index.d.ts').Parley}
 */
export function load({ baseUrl, appId, nonce, ...look }) {
  if (typeof document === 'undefined') return { ...Object.fromEntries(METHODS.map((name) => [name, () => {}])), ready: () => new Promise(() => {}), destroy() {} };

  const script = document.createElement('script');
  const waiting = [];
  let api; // when the script has run
  let ended = false;
  const when = (act) => {
    if (ended) return;
    if (api) act(api);
    else waiting.push(act);
  };
  const parley = Object.fromEntries(METHODS.map((name) => [name, (...args) => when((api) => api[name](...args))]));
  parley.ready = () => new Promise((resolve) => when(() => resolve(parley)));
  parley.destroy = () => {
    ended = true;
    api?.destroy();
    script.remove();
    delete script.dataset.appId; // a script that is on its way still runs, and then does nothing
  };

  script.async = true;
  if (nonce) script.nonce = nonce;
  script.dataset.appId = appId;
  for (const [key, value] of Object.entries(look)) if (value !== undefined) script.dataset[key] = Array.isArray(value) ? value.join(' ') : String(value);
  script.addEventListener('load', () => {
    if (ended) return;
    api = window.Parley?.widgets?.[appId];
    if (api) for (const act of waiting.splice(0)) act(api);
  });
  const url = `${baseUrl.replace(/\/$/, '')}/widget.js`;
  script.src = window.trustedTypes ? policy().createScriptURL(url) : url;
  document.head.append(script);
  return parley;
}

/** Pages with require-trusted-types-for take a script's address only from a policy. */
function policy() {
  return (policy.made ??= window.trustedTypes.createPolicy('parley', { createScriptURL: (url) => url }));
}

// Which property names the build shortens in the chat and in the extras. A name must not be listed if something outside of these two bundles
// uses it: the loader, a language file, the server, the browser, another tab, or what is stored (test/mangle.test.ts checks the last).

import { names as clients } from './client.mjs';

/** Names of the widget's own code. */
const internal =
  `dispatch reachable outbox storage announce announcement dropped onSent onEndVisible chosen subscribe sendText sendFile discard markRead setColours
  loadOlder retryLoading formFields registered sheet newest answers transcript onReply refreshAfter accepted maySend blocked opened configs setSound addFile
  putBlob removeBlob settings older unread phase notice slow preview seen scrolledUp heard isLeader isolated rtl
  typing streaming readUpTo seenUpTo names clock changed stopStreaming handOver retryAfter scrollToEnd
  config session support messages firstOrdinal isTemporary checkLeader getOrLoad isReading atEnd ends opens choosing draft chatBefore
  addOfflineMessage skipRating sendOfflineMessage notifyTyping progress strings locale onLoaded update scrolledUp origins fallback putItem isItem`.split(
    /\s+/,
  );

/** Names of Preact and of components, which only the chat has; the extras have functions. */
const lifecycle =
  `getDerivedStateFromProps getDerivedStateFromError componentDidCatch componentWillMount componentDidMount componentWillUnmount
  componentWillReceiveProps componentWillUpdate componentDidUpdate shouldComponentUpdate getSnapshotBeforeUpdate getChildContext contextType
  defaultProps debounceRendering`.split(/\s+/);

export const mangleProps = new RegExp(`^(${[...internal, ...lifecycle, ...clients].join('|')})$`);

// Which property names the build shortens in the chat and in the extras. A name must not be listed if something outside
// of these two bundles uses it: the loader, a language file, the server, the browser, another tab, or what is stored
// (test/mangle.test.ts checks the last).

import { names as clients } from './client.mjs';

/** Names of the widget's own code. */
const internal = `
  accepted addFile addOfflineMessage addPage announce announcement answers applyReadState applyState atEnd
  beginSession blocked changed chatBefore checkLeader choosing chosen clock config configs destroyed discard
  dispatch draft dropped ends endSession fallback firstOrdinal formFields getOrLoad guard handOver heard history
  incoming incomplete isFirst isItem isLeader isolated isReading isTemporary known loadChat loadOlder locale
  markAvailable markRead maySend messages names newest notice notifyTyping older onAccepted onConnected onEnded
  onEndVisible onEvent onLeadershipChange onLoaded onPart onRead onReply onSent onStored onTokenExpiring
  onTyping opened opens origins outbox phase preview progress putBlob putItem reachable readCursor readUpTo
  realtime reconnectNow refreshAfter refuse registered registerSilently removeBlob renew reportError retryAfter
  retryLoading rtl scrolledUp scrollToEnd seen seenUpTo sendFile sending sendOfflineMessage sendRead sendText
  sendToken sendTyping session setColours setConnection setSound settings sheet showOutbox skipRating slow
  storage store streaming strings subscribe support sync syncIfStale tabs transcript typing unread update
  updateUnread wake
`;

/** Names of Preact and of components, which only the chat has; the extras have functions. */
const lifecycle = `
  getDerivedStateFromProps getDerivedStateFromError componentDidCatch componentWillMount componentDidMount
  componentWillUnmount componentWillReceiveProps componentWillUpdate componentDidUpdate shouldComponentUpdate
  getSnapshotBeforeUpdate getChildContext contextType defaultProps debounceRendering
`;

const names = [...internal.trim().split(/\s+/), ...lifecycle.trim().split(/\s+/), ...clients];

export const mangleProps = new RegExp(`^(${names.join('|')})$`);

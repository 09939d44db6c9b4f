/** Every text of the panel. A text with values is a function. */

import type { RenderKey } from '@parley/shared/render/content.js';

const render: Record<RenderKey, string> & { cards: readonly [string, string]; picture: string; video: string; audio: string; file: string } = {
  choose: 'Choices', chosen: 'Chosen', cardOf: 'Card {n} of {total}', previousCard: 'Previous card', nextCard: 'Next card', picture: 'Picture', video: 'Video', audio: 'Audio', file: 'File',
  openPicture: 'Open picture: {name}', play: 'Play {name}', download: 'Download {name}', newTab: '(opens in a new tab)', fromHost: 'on {host}', call: 'Call {name}',
  unsupported: 'This message cannot be shown here.', cards: ['card', 'cards'],
};

/** What a code of the API means here, where the server's own text says less. */
const codes: Record<string, string> = {
  INVALID_CREDENTIALS: 'The email address or the password is wrong.',
  INVALID_CODE: 'That code is wrong or has expired. Enter the current one.',
  FORBIDDEN: 'Your role does not allow this.',
  CSRF: 'Your session was renewed in another tab. Reload the page and try again.',
  NOT_FOUND: 'This does not exist any more.',
  CHAT_TOO_OLD: 'The 24-hour window has ended. Only an approved template can be sent.',
  CHAT_CLOSED: 'The chat has been closed.',
  TEMPLATE_NOT_APPROVED: 'The template is not approved.',
  TEMPLATE_STATE: 'The template has changed meanwhile. Reload it.',
  TOKEN_NOT_ACTIVE: 'The token is no longer active.',
  EMAIL_TAKEN: 'A user with this email address exists already.',
  LAST_OWNER: 'A company needs at least one owner. Make somebody else owner first.',
  WRONG_PASSWORD: 'The password is wrong.',
};

const signIn = {
  title: 'Sign in', heading: 'Sign in to Parley', lead: 'Answer your visitors and manage your applications.', email: 'Email', password: 'Password', submit: 'Sign in', busy: 'Signing in…',
  code: 'Authentication code', codeHint: 'The six digits that your authenticator app shows.', otherAccount: 'Use another account', or: 'or',
  oidc: (name: string) => `Continue with ${name}`, oidcFailed: 'Signing in through your identity provider failed. Try again, or use your password.',
  expired: 'Your session has ended. Sign in again; you come back to where you were.', foot: 'No account? Ask an owner of your company for an invitation.',
};

const invitation = {
  title: 'Invitation', heading: (company?: string) => (company ? `Join ${company}` : 'Join Parley'), lead: (email: string, role: string) => `You are invited as ${role.toLowerCase()} with ${email}.`, name: 'Your name', password: 'Choose a password',
  passwordHint: (n: number) => `At least ${n} characters. A few unrelated words are strong and easy to remember.`, passwordShort: (n: number) => `Use at least ${n} characters.`, submit: 'Create account',
  gone: 'This invitation is no longer valid', goneLead: 'It has been used, has expired or was replaced. Ask for a new one.',
};

const overlaps: [string, string][] = [['0', 'None: the old one ends at once'], ['3600', '1 hour'], ['86400', '1 day'], ['604800', '7 days'], ['2592000', '30 days']];

const tokens = {
  title: 'Access tokens', lead: 'Your systems send a token in the header x-access-token to use the Client API. Treat it like a password.', create: 'New token', createAction: 'Create token', name: 'Name', nameHint: 'Where it is used, such as "Order system".',
  prefix: 'Begins with', created: 'Created', lastUsed: 'Last used', expires: 'Expires', status: 'Status', never: 'Never', noExpiry: 'Does not expire', inDays: (n: number) => `In ${n} days`, onDate: 'On a date…', date: 'Last day',
  statuses: { active: 'Active', expired: 'Expired', revoked: 'Revoked' }, actionsFor: (name: string) => `Actions for ${name}`, rotate: 'Rotate', revoke: 'Revoke',
  effect: 'Changes take effect on every server within a second.', empty: 'No access tokens yet', emptyLead: 'Create a token to send messages from your systems.',
  revokeTitle: 'Revoke this token?', revokeLead: (name: string) => `Systems that use "${name}" are refused within a second. This cannot be undone.`, revoked: (name: string) => `"${name}" is revoked`,
  rotateTitle: (name: string) => `Rotate "${name}"`, rotateLead: 'You get a new token. The old one keeps working for the overlap, so that you can change your systems without interruption.', overlap: 'Overlap', overlapHint: 'How long the old one keeps working.', overlaps,
  secret: 'Token', secretTitle: (name: string) => `Token "${name}" is ready`, secretOnce: 'Copy it now. It is not stored and is never shown again.', secretDone: 'I have copied it', curl: 'Try it', curlHint: 'Put the id of one of your chats in place of CHAT_ID. It stands in the details of each chat in the inbox.',
  oldEnds: (at: string) => `The old token works until ${at}.`,
};

const applications = {
  title: 'Applications', one: 'Application', lead: 'An application is a chat on one of your sites: its look, its form, and where it may be embedded.', create: 'New application', createAction: 'Create application',
  empty: 'No applications yet', emptyLead: 'Create one to put the chat on your site.', name: 'Title', nameHint: 'Visitors see it in the header of the chat.', botName: 'Bot name', botNameHint: 'Stands on the messages of the bot.', botIs: (name: string) => `Bot: ${name}`,
  origins: (n: number) => (n === 1 ? '1 origin' : `${n} origins`), anyOrigin: 'Any origin', defaultGreeting: 'Hello! How can we help you?', goneLead: 'The application does not exist, or belongs to another company.',
  tabs: { look: 'Look', form: 'Form and greetings', install: 'Install', security: 'Identity and files' }, readOnly: 'Your role may look at applications but not change them.', saved: 'Application saved', unsaved: 'You have unsaved changes.', discard: 'Discard',
  leave: 'Leave without saving your changes?', changedMeanwhile: 'Somebody else has saved this application meanwhile. Load the new version; your changes are lost.', loadNew: 'Load', texts: 'Texts', colours: 'Colours', coloursLead: 'Empty fields have the widget’s own colours. In the dark theme, surfaces are dark and your primary colour stays.',
  colourNames: {
    primaryBackgroundColor: 'Primary', primaryTextColor: 'Text on primary', contentBackgroundColor: 'Conversation', footerBackgroundColor: 'Footer', formBackgroundColor: 'Form', inputBackgroundColor: 'Input', inputTextColor: 'Text in inputs',
    sentMessageBubbleBgColor: 'Visitor’s bubble', sentMessageBubbleTextColor: 'Text in visitor’s bubble', receivedMessageBubbleBgColor: 'Your bubble', receivedMessageBubbleTextColor: 'Text in your bubble',
  },
  colourWrong: 'Write a hex colour such as #0f766e.', pick: (name: string) => `Pick a colour: ${name}`, resetColour: (name: string) => `Reset ${name}`,
  poorContrast: (name: string, ratio: number) => `${name} has a contrast of ${ratio.toFixed(1)} to 1. The widget adjusts the text to at least 4.5 to 1.`,
  icons: 'Icons', iconsLead: 'Shown where the page that embeds the widget allows their host (data-media-origins); the first letter of the name otherwise.', iconNames: { aiIconUrl: 'Bot icon', widgetIconUrl: 'Widget icon', userIconUrl: 'Visitor icon' },
  form: 'Form before the chat', formLead: 'Without an optional or required field there is no form: the chat begins at once.', fieldNames: { firstName: 'First name', lastName: 'Last name', email: 'Email', phone: 'Phone', userId: 'Customer number' } as Record<string, string>,
  fieldModes: { hidden: 'Not asked for', optional: 'Optional', required: 'Required' }, otherField: 'Another field', otherFieldHint: 'Its name in the registration, such as orderNumber.',
  greetings: 'Greetings', greetingsLead: 'Added to a chat when a visitor registers.', greeting: (n: number) => `Greeting ${n}`, addGreeting: 'Add greeting', removeGreeting: (n: number) => `Remove greeting ${n}`,
  embed: 'Embed snippet', embedLead: 'Put this line on each page that should have the chat.', csp: 'Content-Security-Policy', cspLead: 'Add this to your site’s policy, if it has one.', appId: 'Application id:',
  allowed: 'Allowed origins', allowedLead: 'Sites that may use this application.', anyOriginLead: 'Any site may embed this chat. Add your sites to allow only them.', origin: (n: number) => `Origin ${n}`, addOrigin: 'Add origin', removeOrigin: (n: number) => `Remove origin ${n}`,
  originWrong: (right?: string) => (right ? `An origin has no path. Did you mean ${right}?` : 'Write an origin such as https://www.example.com.'), afterSaving: 'Takes effect when you save.',
  verification: 'Identity verification', verificationLead: 'Visitors who are signed in on your site prove it with a hash (userHash) that your server makes with the identity secret.',
  verifications: { off: ['Off', 'Anybody may give any email address, phone number or customer number.'], session: ['For sessions', 'A visitor who has proved who they are comes back to their chats. Others get chats of their own.'], required: ['Required', 'Registration without a valid hash is refused.'] } as Record<'off' | 'session' | 'required', [string, string]>,
  verificationSet: (mode: string) => `Identity verification: ${mode.toLowerCase()}`, needsSecret: 'Create an identity secret first.', secrets: 'Identity secrets', secretsLead: 'Keep the secret on your server. It never belongs into a page.', noSecret: 'There is no secret yet.', makeSecret: 'Create secret', rotateSecret: 'Rotate secret', makeAction: 'Create',
  makeLead: 'The secret is shown once. Put it where your server makes the hashes.', secretOverlapHint: 'How long hashes of the old secret are accepted.', newSecret: 'Identity secret', identitySecret: 'Secret', secretUse: 'The hash of a customer number, in the shell', secretMade: (at: string) => `Created ${at}`, secretEnds: (at: string) => `Until ${at}`, current: 'Current',
  files: 'Files', filesLead: 'Files that visitors send are deleted after this time. It counts for files sent from now on.', retention: 'Keep for days', retentionHint: 'Empty: as long as the installation keeps files.', asService: 'Default',
  previewTexts: { device: 'Device', desktop: 'Desktop', phone: 'Phone', theme: 'Theme', stage: 'Shows', form: 'Form', chat: 'Chat', closed: 'Closed', title: 'Preview of the widget', note: 'This is the widget that your visitors get, with your unsaved settings. Nothing that you type here is sent.' },
};

const templates = {
  title: 'Templates', one: 'Template', lead: 'Approved texts that reach a visitor after the 24-hour window, or before a conversation.', create: 'New template', empty: 'No templates yet', emptyLead: 'Write one and submit it for approval.', name: 'Name', nameHint: 'Only your company sees it.', text: 'Text', textHint: 'Placeholders stand in double braces, such as {{orderNumber}}. {{username}} is the recipient’s name.', status: 'Status',
  statuses: { draft: 'Draft', pending: 'Waiting for approval', approved: 'Approved', rejected: 'Rejected' },
  statusLeads: { draft: 'Only an approved template can be sent.', pending: 'An owner looks at it.', approved: 'It can be sent.', rejected: 'Change it and submit it again.' },
  waiting: (n: string) => `${n} waiting for your approval.`, templateForms: ['template is', 'templates are'] as const, submit: 'Submit for approval', submitted: 'Template submitted', approve: 'Approve', approved: 'Template approved', reject: 'Reject', rejected: 'Template rejected', rejectTitle: 'Reject this template?', reason: 'Reason', reasonHint: 'The author reads it.',
  saved: 'Template saved', saveUnapproves: 'Saving makes it a draft again.', unapproveTitle: 'Save as a draft?', unapproveLead: 'The template is approved now. After the change it must be approved again before it can be sent.', leave: 'Leave without saving the template?', goneLead: 'The template does not exist, or belongs to another company.',
  defaults: 'Defaults of the placeholders', defaultsHint: 'Used when a push gives no value. Without a default a value is required.', noDefault: 'No default: required', previewLead: 'Try values; they are not stored.', previewEmpty: 'The text appears here.', username: 'Recipient’s name', sampleName: 'Ada Lovelace', missing: (names: string) => `Without a value: ${names}`,
  history: 'History', noHistory: 'Nothing yet.', byAt: (who: string, at: string) => `${who}, ${at}`, actions: { create: 'Written', update: 'Changed', pending: 'Submitted', approved: 'Approved', rejected: 'Rejected' } as Record<string, string>,
  test: 'Test push', testLead: 'A dry run: it checks everything that a push checks, and sends nothing.', testRun: 'Run the test', source: 'Phone number', sourceHint: 'At least 11 characters, with the country code.', wouldSend: (to: string) => `This would be sent to ${to}.`, wouldNotSend: 'This would be refused:',
};

const inbox = {
  chats: 'Chats', conversation: 'Conversation', conversationWith: (name: string) => `Conversation with ${name}`, view: 'View', views: { open: 'Open', unread: 'Unread', mine: 'Mine', closed: 'Closed' }, filters: 'Filters', filtersActive: (n: number) => `Filters: ${n} set`, clearFilters: 'Clear filters',
  application: 'Application', assignee: 'Assignee', handledBy: 'Answered by', status: 'Status', all: 'All', anybody: 'Anybody', nobody: 'Nobody', allOpen: 'All open', bot: 'Bot', agent: 'Agent', statuses: { pending: 'Visitor has not written', active: 'Active', closed: 'Closed' },
  search: 'Search by name or email', live: { connecting: 'Connecting…', live: 'Live', lost: 'Not live' }, shortcuts: 'Keyboard shortcuts', empty: 'No open chats', emptyLead: 'New chats appear here the moment a visitor writes.', noneFound: 'No chats match', noneFoundLead: 'Change the search or the filters.', showAll: 'Show all open chats', loadingMore: 'Loading more chats…', moreFailed: 'More chats could not be loaded.',
  noneChosen: 'Choose a chat', noneChosenLead: 'Its conversation appears here. Press ? for the keyboard shortcuts.', unread: 'unread', message: 'Message', noMessage: 'No message yet', support: 'Support', windowOver: 'Window ended', phone: 'Phone', you: 'You', somebody: 'Another agent', unassigned: 'Unassigned',
  alerts: 'Notifications', sound: 'Play a sound', soundHint: 'When a visitor writes and you do not look at the chat.', desktop: 'Show desktop notifications', desktopHint: 'While this page is open but not in front.', desktopMissing: 'This browser has none.', desktopRefused: 'The browser does not allow notifications for this page. Change it in the site’s settings.', notification: (name: string) => `${name} wrote`,
  keys: [['j k', 'Next, previous chat'], ['/', 'Search'], ['r', 'Reply'], ['a', 'Assign to me, or to nobody'], ['t', 'Take over, hand back'], ['e', 'Close the chat'], ['i', 'Details'], ['u', 'Back to the list'], ['Esc', 'Leave the reply'], ['Enter', 'Send'], ['?', 'This help']] as [string, string][],
  singleKeys: 'Use single-key shortcuts', singleKeysHint: 'Turn this off if you speak to your computer or press keys by accident.',
  gone: 'This chat does not exist', goneLead: 'It may have been erased, or belongs to another company.', back: 'Back to the list', botAnswers: 'Bot answers', withYou: 'With you', with: (name: string) => `With ${name}`, withAgents: 'With agents', looking: (names: string) => `Also looking: ${names}`, takeOver: 'Take over', handBack: 'Hand back to bot', handedBack: 'The bot answers again', close: 'Close', details: 'Details',
  windowEnds: (at: string) => `The window ends ${at}`, windowLeft: (left: string) => `${left} left to write`, typing: (names: string) => `${names} is typing…`, visitorOnline: 'Online', visitorAway: 'Not online', visitorSeen: (when: string) => `Last online ${when}`, messages: 'Messages', loadOlder: 'Load earlier messages', olderFailed: 'Earlier messages could not be loaded.', beginning: 'The conversation begins here.', noMessages: 'No messages yet.', newMessages: ['new message', 'new messages'] as const,
  messageStatuses: { accepted: 'Sent', stored: 'Sent', delivered: 'Delivered', read: 'Read' } as Record<'accepted' | 'stored' | 'delivered' | 'read', string>, deliveryFailed: 'Not delivered', notSent: 'Not sent', notSentWhy: (why: string) => `Not sent. ${why}`, sending: 'Sending…', sendAgain: 'Send again', discard: 'Delete', uploading: (name: string) => `Sending ${name}`,
  closeTitle: 'Close this chat?', closeAction: 'Close chat', closeLead: 'The visitor’s next message opens a new chat.', closed: 'Chat closed', closedNote: 'This chat is closed. A new message of the visitor opens another one.',
  assignMe: 'Assign to me', nameYou: (name: string) => `${name} (you)`, visitor: 'Visitor', email: 'Email', userId: 'Customer no.', nothingKnown: 'The visitor has given nothing but a name.', verified: (by: string) => `Verified by ${by}`, verifiedBy: { userId: 'customer number', email: 'email', phone: 'phone' } as Record<string, string>, notVerified: 'Identity not verified', chat: 'Chat', channel: 'Channel', channels: { widget: 'Website', phone: 'Phone' }, started: 'Started', closedAt: 'Closed', window: 'Window', until: (at: string) => `Until ${at}`, ended: (at: string) => `Ended ${at}`, chatId: 'Chat id', privacy: 'Export or erase this visitor', openOriginal: 'Open in a new tab',
  reply: 'Your reply', placeholder: (name: string) => `Reply to ${name}…`, caption: 'Add a caption…', attach: 'Attach files', offerChoices: 'Offer choices', useTemplate: 'Send a template', enterSends: 'Enter sends, Shift+Enter breaks the line', send: 'Send', tooLong: (n: number) => `At most ${n} characters can be sent.`, staged: 'Files ready to send', removeFile: (name: string) => `Remove ${name}`, replyTakesOver: 'The bot is answering. Your reply takes the chat over, and the bot falls silent.',
  windowNote: (at: string) => `The 24-hour window ended ${at}. Only an approved template can be sent now; a new message of the visitor opens the window again.`, question: 'Question', answers: 'Answers', answer: (n: number) => `Answer ${n}`, removeAnswer: (n: number) => `Remove answer ${n}`, addAnswer: 'Add answer', oneAnswer: 'Write at least one answer.', answersTwice: 'Each answer may stand once.', noTemplates: 'No approved templates', noTemplatesLead: 'Write one in the section Templates and have it approved.', templateAfterWindow: 'The visitor gets it when they next open the chat.',
};

const streams = {
  title: 'Streams', lead: 'What waits, what is processed, and what was given up, in every stream of the installation.', overview: 'Overview', dead: 'Dead letters', trace: 'Trace a message', tail: 'Live tail', pause: 'Pause', resume: 'Resume', asOf: (at: string) => `As of ${at}, every 3 seconds`, stale: 'These numbers are not current.', none: 'No streams', noneLead: 'The streams have not been created yet.',
  messages: (n: string) => `${n} events`, of: (max: string) => `of ${max}`, in: (rate: string) => `${rate} in`, last: (ago: string) => `last ${ago}`, perSecond: (n: string) => `${n}/s`, fill: (percent: number) => `${percent} % full`, noConsumers: 'No consumers read this stream.', consumersOf: (name: string) => `Consumers of ${name}`, consumer: 'Consumer', state: 'State', pending: 'Waiting', inFlight: 'In flight', redelivered: 'Redelivered', oldest: 'Oldest', rate: 'Rate', active: 'Active',
  health: { good: 'Up to date', behind: 'Behind', away: 'Nobody reads' }, partitions: (n: number) => `${n} partitions`, partition: (n: number) => `Partition ${n}`, stream: 'Stream', anyValue: 'Any', chosen: (n: number) => `${n} chosen`, drop: 'Delete', redrive: 'Redrive', redriveChosen: 'Redrive chosen', redriveAll: 'Redrive all', noDead: 'No dead letters', noDeadLead: 'Every event has been processed, or still waits for its turn.', noDeadFilter: 'None match the filter.', chooseAll: 'Choose all', choose: (n: number) => `Choose letter ${n}`, when: 'When', event: 'Event', unknownEvent: 'Unknown event', reason: 'Reason', attempts: 'Attempts', letter: (n: number) => `Dead letter #${n}`, subject: 'Subject', eventId: 'Event id', messageId: 'Message id', payload: 'Payload', headers: 'Headers',
  dropTitle: 'Delete dead letters?', dropLead: 'What is deleted is never processed. This cannot be undone.', dropAction: (n: number) => `Delete ${n}`, dropped: (n: number) => `${n} deleted`, redriveTitle: 'Redrive dead letters?', redriveLead: 'Each event is published again, for the consumer that gave it up only.', redriveAction: (n: number) => `Redrive ${n}`, redriven: (n: number) => `${n} redriven`, dryRun: (n: string) => `Dry run: ${n}. Nothing has happened yet.`, letterForms: ['letter', 'letters'] as const, results: 'Results', result: 'Result', someFailed: (n: number) => `${n} failed.`,
  traceHint: 'A message of a company, a visitor, a bot or an agent.', traceAction: 'Trace', traceEmpty: 'Follow one message', traceEmptyLead: 'From the request, through the streams and their consumers, to the browser.', noTrace: 'No trace of this message', noTraceLead: 'Check the id. Events are kept as long as the streams keep them.', traceOf: 'What became of it', again: 'Refresh', asSteps: 'Steps', asJson: 'JSON', company: 'Company', inStream: (stream: string, sequence: string) => `${stream} #${sequence}`, tried: (n: number) => `${n} attempts`, plus: (ms: number) => `+${ms} ms`, steps: { accepted: 'Accepted', stored: 'In the history', delivered: 'Delivered to the browser', read: 'Read', failed: 'Failed' },
  kind: 'Kind', since: 'From', sinces: [['0s', 'Now'], ['10m', '10 minutes ago'], ['1h', '1 hour ago'], ['24h', '1 day ago']] as [string, string][], paused: 'Paused', tailStates: { connecting: 'Connecting…', open: 'Live', lost: 'Not live' }, tailLost: 'The connection has ended. Resume to begin again.', tailEmpty: 'Nothing has passed yet', tailEmptyLead: 'Events appear here as they pass.',
};

const people = {
  title: 'People', operators: 'Operators', lead: 'Who may sign in, and what they may do.', invite: 'Invite', inviteAction: 'Create invitation', empty: 'Nobody yet', emptyLead: 'Invite the people who answer your visitors.', person: 'Person', role: 'Role', status: 'Status', twoFactor: 'Two-factor', lastSignIn: 'Last sign-in', statuses: { active: 'Active', invited: 'Invited', disabled: 'Disabled' }, on: 'On', off: 'Off', you: '(you)', until: (at: string) => `until ${at}`, actionsFor: (name: string) => `Actions for ${name}`, edit: 'Edit', inviteAgain: 'New invitation link', sessions: 'Sessions', disable: 'Disable', disabled: 'User disabled and signed out', enable: 'Enable', enabled: 'User enabled', remove: 'Remove', removeTitle: 'Remove this person?', removeLead: (name: string) => `${name} can no longer sign in. What they did stays in the audit log.`, removed: 'User removed',
  email: 'Email', name: 'Name', roleHints: { owner: 'Everything in the company, people and erasure of visitors too.', developer: 'Access tokens, applications and templates; no inbox.', agent: 'The inbox; sees applications and templates.', operator: 'The whole installation: all companies and the streams.' }, linkTitle: (email: string) => `Invitation for ${email}`, linkOnce: 'Send this link to the person yourself. It is shown once and works for 7 days.', link: 'Invitation link', editTitle: (email: string) => `Edit ${email}`, changed: 'User changed', sessionsOf: (name: string) => `Sessions of ${name}`, signOutEverywhere: 'Sign out everywhere', signedOutEverywhere: 'Signed out everywhere', unknownBrowser: 'Unknown browser', noSessions: 'No sessions.', thisBrowser: 'This browser', lastSeen: (ago: string) => `active ${ago}`, signedInAt: (at: string) => `signed in ${at}`, endSession: (browser: string) => `Sign out ${browser}`,
  newCompany: 'New company', createCompany: 'Create company', renameCompany: 'Rename company', renamed: 'Company renamed', companyCreated: (name: string) => `Company ${name} created`, companyName: 'Company name',
};

const audit = {
  title: 'Audit log', lead: 'Every change: who made it, when, and what was there before and after.', when: 'When', who: 'Who', what: 'What', target: 'Concerns', changes: 'Changes', changesOf: (action: string) => `Changes of ${action}`, everything: 'Everything', targets: { token: 'Access tokens', application: 'Applications', template: 'Templates', chat: 'Chats', user: 'People', visitor: 'Visitors', company: 'Company', session: 'Sessions' } as Record<string, string>, empty: 'Nothing yet', emptyLead: 'Changes appear here.', noChanges: 'No fields changed.', id: 'Id:',
};

const visitors = {
  title: 'Visitors', lead: 'Give visitors their data, or erase it: profile, chats, files, and events that are still in streams.', search: 'Search by name, email, phone or customer number', none: 'No visitor found', noneLead: 'Try another part of the name or address.', empty: 'No visitors yet', emptyLead: 'They appear here when they register.', name: 'Name', email: 'Email', phone: 'Phone', userId: 'Customer no.', id: 'Visitor id', export: 'Export', exportOf: (name: string) => `Export ${name}`, erase: 'Erase', eraseOf: (name: string) => `Erase ${name}`, eraseTitle: (name: string) => `Erase ${name}?`, eraseAction: 'Erase for ever', word: 'erase', eraseLead: 'Profile, chats, messages, files and events in streams are deleted everywhere. This cannot be undone.', receipt: 'Receipt of erasure', erased: 'Everything about this visitor has been erased.', at: 'Erased', by: 'By', counts: { chats: 'Chats', messages: 'Messages', files: 'Files', identities: 'Identities', statuses: 'Statuses', events: 'Events in streams' }, copyReceipt: 'Copy receipt',
};

const account = {
  title: 'Your account', email: 'Email', role: 'Role', company: 'Company', password: 'Password', passwordLead: 'A new password ends your other sessions.', currentPassword: 'Current password', newPassword: 'New password', changePassword: 'Change password', passwordChanged: 'Password changed', wrongPassword: 'The password is wrong.',
  totp: 'Two-factor authentication', totpLead: 'A code from an authenticator app, asked for at each sign-in.', totpOn: 'On', totpOff: 'Off', totpEnable: 'Set up', totpDisable: 'Turn off', totpEnabled: 'Two-factor authentication is on', totpDisabled: 'Two-factor authentication is off', next: 'Next', confirm: 'Confirm', totpSetUp: 'Add this key to your authenticator app, then enter the code that it shows.', setupKey: 'Setup key', openApp: 'Open in an authenticator app on this device',
  sessions: 'Where you are signed in', sessionsLead: 'A session ends 12 hours after its last use.', sessionEnded: 'Session ended', everywhereLead: 'All your sessions end, this one too.',
};

export const strings = {
  product: 'Parley', optional: '(optional)', required: 'Fill in this field.', cancel: 'Cancel', close: 'Close', done: 'Done', save: 'Save', add: 'Add', more: 'Load more', actions: 'Actions', dismiss: 'Dismiss', copy: 'Copy', copied: 'Copied', preview: 'Preview', loading: 'Loading…', tryAgain: 'Try again', loadFailed: 'This could not be loaded', requestId: 'Request id', showPassword: 'Show password', hidePassword: 'Hide password', typeToConfirm: (word: string) => `Type "${word}" to confirm`,
  unexpected: 'Something went wrong. Try again.', offlineError: 'The panel is not reachable. Check your connection and try again.', tooMany: (seconds: number) => (seconds ? `Too many attempts. Try again in ${seconds} s.` : 'Too many attempts. Try again in a moment.'), unavailable: 'The service is not available at the moment. Try again shortly.',
  today: 'Today', yesterday: 'Yesterday', justNow: 'just now', ago: (duration: string) => `${duration} ago`, titleOf: (title: string, unread: number) => `${unread ? `(${unread}) ` : ''}${title ? `${title} – ` : ''}Parley`, skip: 'Skip to the content', signOut: 'Sign out', unreadChats: (n: number) => (n === 1 ? '1 unread chat' : `${n} unread chats`), offline: 'You are offline. What you see may be old.', notLive: 'Not live: new messages may be missing. Connecting again…', notFound: 'Nothing is here', notFoundLead: 'The address is wrong, or your role does not show it.', noCompany: 'No company', noCompanyYet: 'No company yet', noCompanyLead: 'Create the first company; its owner is invited in the section People.',
  roles: { operator: 'Operator', owner: 'Owner', developer: 'Developer', agent: 'Agent' }, theme: { auto: 'Theme of the system', light: 'Light', dark: 'Dark' },
  nav: { label: 'Sections', open: 'Menu', inbox: 'Inbox', applications: 'Applications', templates: 'Templates', tokens: 'Access tokens', people: 'People', visitors: 'Visitors', audit: 'Audit log', streams: 'Streams', account: 'Your account', company: (name: string) => `Company: ${name}`, user: 'your account, theme and sign-out' },
  codes, render, signIn, invitation, tokens, applications, templates, inbox, streams, people, audit, visitors, account,
};

package store

import (
	"context"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Store is the complete contract. It is safe for concurrent use. Callers declare smaller interfaces with the methods
// they need.
type Store interface {
	Companies
	AccessTokens
	Applications
	Templates
	Visitors
	Chats
	Messages
	Statuses
	Receipts
	idempotency.Records
	Files
	Users
	Sessions
	AuditLog
	WebhookEndpoints
	WebhookDeliveries
	Bots
	ModelConnections
	BotUsage
	BotCalls
	BotActions
	Documents
	DocumentFetches
	KnowledgeSettings
	Streams
	Portable

	// IDs lists the ids of an owner's records, sorted. It reads no more of them: settings and texts may have a megabyte
	// each.
	IDs(ctx context.Context, of IDFilter, p Page) ([]string, error)
	// Ready returns nil if the database responds, else an Unavailable error.
	Ready(ctx context.Context) error
	// Close closes all connections. Operations in progress have until ctx ends to finish.
	Close(ctx context.Context) error
}

// IDFilter selects the records of one kind and owner; one of its fields is set.
type IDFilter struct {
	ApplicationsOf string // a company
	TemplatesOf    string // a company
	FilesOf        string // a visitor
}

// Companies stores companies.
type Companies interface {
	// Company returns the company, or NotFound.
	Company(ctx context.Context, id string) (chat.Company, error)
	// PutCompany writes the company, whether or not it exists.
	PutCompany(ctx context.Context, c chat.Company) error
	// Companies lists companies ordered by id.
	Companies(ctx context.Context, p Page) ([]chat.Company, error)
}

// AccessTokens stores the companies' credentials for the Client API. Secrets are never stored, only their hashes.
type AccessTokens interface {
	// AccessToken returns the token with that hash, or NotFound. [chat.AccessToken.Valid] decides whether it may be used.
	//
	// The lookup compares hashes, not secrets: without the secret a caller cannot choose the hash, so the timing of
	// the comparison leaks nothing useful.
	AccessToken(ctx context.Context, hash string) (chat.AccessToken, error)
	// CreateAccessToken adds a token. Errors: NotFound (no such company), Invalid (see [CheckAccessToken]),
	// Conflict (the hash exists).
	CreateAccessToken(ctx context.Context, t chat.AccessToken) error
	// AccessTokens lists a company's tokens, also revoked and expired ones, in the order of creation.
	// NotFound if the page's cursor is not the hash of one of them.
	AccessTokens(ctx context.Context, companyID string, p Page) ([]chat.AccessToken, error)
	// DeleteAccessToken removes a token. NotFound if it does not exist.
	DeleteAccessToken(ctx context.Context, hash string) error
	// ChangeAccessToken records what has happened to the token. NotFound if the token does not exist. After a
	// revocation or an expiry the caller invalidates [CachedAccessToken] on all replicas.
	ChangeAccessToken(ctx context.Context, hash string, change TokenChange) error
}

// TokenChange is what has happened to an access token; zero times change nothing. Changes commute.
type TokenChange struct {
	RevokedAt time.Time // the first revocation wins
	ExpiresAt time.Time // the earliest expiry wins
	UsedAt    time.Time // the latest use wins
}

// Applications stores chat applications.
type Applications interface {
	// Application returns the application, or NotFound.
	Application(ctx context.Context, id string) (chat.Application, error)
	// PutApplication writes the application, whether or not it exists, except for what [ApplicationChange] has.
	// Invalid: see [CheckApplication]. The caller invalidates [CachedApplication].
	PutApplication(ctx context.Context, a chat.Application) error
	// Applications lists the applications of a company, or all if companyID is empty, ordered by id.
	Applications(ctx context.Context, companyID string, p Page) ([]chat.Application, error)
	// ChangeApplication changes the application's identity verification and its support. It applies the change again if
	// the secrets were changed concurrently: no concurrent change loses a secret. Errors: NotFound; those of
	// [ApplicationChange.Apply]; Conflict if concurrent changes keep interfering. The caller invalidates
	// [CachedApplication].
	ChangeApplication(ctx context.Context, id string, change ApplicationChange) error
}

// ApplicationChange changes how an application treats its visitors; zero members change nothing.
type ApplicationChange struct {
	Verification chat.Verification // how visitors prove their identity
	Secrets      ChangeSecrets     // replaces the identity secrets
	Support      *chat.Support     // how agents serve the visitors
}

// Apply returns the changed application. It has no effects. Errors: Invalid (see [CheckVerification], [CheckSupport]);
// those of Secrets.
func (c ApplicationChange) Apply(a chat.Application) (chat.Application, error) {
	if c.Secrets != nil {
		secrets, err := c.Secrets(a.Identity)
		if err != nil {
			return a, err
		}
		a.Identity.Secrets = secrets
	}
	if c.Verification != "" {
		if err := CheckVerification(c.Verification, a.Identity); err != nil {
			return a, err
		}
		a.Identity.Mode = c.Verification
	}
	if c.Support != nil {
		if err := CheckSupport(*c.Support); err != nil {
			return a, err
		}
		a.Support = *c.Support
	}
	return a, nil
}

// ChangeSecrets returns the new identity secrets of an application. It has no effects.
type ChangeSecrets func(chat.IdentityVerification) ([]chat.IdentitySecret, error)

// RotateSecret returns the change that makes fresh the current secret; earlier ones stay valid for overlap.
func RotateSecret(fresh chat.Secret, now time.Time, overlap time.Duration) ChangeSecrets {
	return func(v chat.IdentityVerification) ([]chat.IdentitySecret, error) {
		return v.Rotate(fresh, UTC(now), overlap), nil
	}
}

// Templates stores message templates.
type Templates interface {
	// Template returns the template, or NotFound.
	Template(ctx context.Context, id string) (chat.MessageTemplate, error)
	// PutTemplate writes the template, whether or not it exists.
	PutTemplate(ctx context.Context, t chat.MessageTemplate) error
	// Templates lists the templates of a company, or all if companyID is empty, ordered by id.
	Templates(ctx context.Context, companyID string, p Page) ([]chat.MessageTemplate, error)
}

// Kinds of [Identity], strongest first.
const (
	KindUserID = "userId"
	KindEmail  = "email"
	KindPhone  = "phone"
)

// Identity identifies a visitor within a scope; at most one visitor owns it. E-mail addresses compare without case and
// surrounding white space.
//
// A proved identity and the same value unproved are different identities, with separate owners: a visitor who only
// claims a value never reaches the visitor who has proved it, nor vice versa
// (docs/decisions/0005-visitors-identity.md).
type Identity struct {
	Scope  string // the application's id, or the company's for the recipients of pushes
	Kind   string // KindUserID, KindEmail or KindPhone
	Value  string
	Proved bool // the company's own server vouches for it
}

// Visitors stores visitors and the owners of identities.
type Visitors interface {
	// Visitor returns the visitor, or NotFound.
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
	// FindVisitor returns the chatUserId that owns the identity, or NotFound.
	FindVisitor(ctx context.Context, i Identity) (chatUserID string, err error)
	// Register finds or creates a visitor, saves the profile, and opens a chat if none is open: [Chats.OpenChat] with
	// its guarantees and errors. A repeat after an error completes the registration.
	//
	// Without an id, the visitor is the one that owns the identities. Unowned identities become this visitor's; one
	// that another visitor owns stays theirs. If they belong to several visitors, the strongest decides, and nothing is
	// merged. Concurrent calls are serializable: two new identities that arrive together lead to one visitor.
	// Identities with an empty value are ignored; without any, Invalid.
	//
	// Non-empty fields of the profile overwrite, empty ones keep what is stored. CompanyID, AppID and VerifiedBy stay
	// those of the first call; ChatNumber and TokensValidFrom are not written.
	Register(ctx context.Context, r Registration) (Registered, error)
	// RevokeVisitorTokens invalidates all tokens of the visitor issued before at; the latest time wins. NotFound if the
	// visitor does not exist. The caller invalidates [CachedVisitor].
	RevokeVisitorTokens(ctx context.Context, chatUserID string, at time.Time) error
	// FindVisitors lists visitors of a company whose names, e-mail address, phone number or user id contain the text,
	// case-insensitively, ordered by id, and the cursor of the next page; "" on the last page. It examines at most
	// [MaxExamined] visitors, so a page may be short or empty and still have a next page.
	FindVisitors(ctx context.Context, companyID, text string, p Page) (found []chat.Visitor, next string, err error)
	// EraseVisitor removes the visitor with identities, chats, messages, statuses, receipts, webhook deliveries, calls
	// of bots, usage of bots and file records, and returns the counts. A repeat after a crash completes the erasure,
	// without counting removed records again. The caller invalidates [CachedVisitor] and [CachedChat], and removes
	// events and the files themselves.
	EraseVisitor(ctx context.Context, chatUserID string) (Erased, error)
}

// Erased counts the removed records.
type Erased struct {
	Visitors   int
	Identities int
	Chats      int
	Messages   int
	Statuses   int
	Files      int
}

// Registration is the input of [Visitors.Register].
type Registration struct {
	// Visitor is the profile. Its ID is empty if Identities determine the visitor.
	Visitor chat.Visitor
	// Identities are the visitor's identities; ignored if Visitor.ID is set.
	Identities []Identity
	// OnlyUnowned keeps Identities from matching a known visitor: if another visitor owns any of them, the
	// result is a new visitor without identities.
	OnlyUnowned bool
	// Chat is opened if none is open; nil: no chat is opened.
	Chat *NewChat
}

// PushRecipient returns the registration of a push recipient: within the company, by the digits of the phone number
// (see [chat.ParsePhone]). An empty name keeps the stored one.
func PushRecipient(companyID, phone, name string, at time.Time) Registration {
	return Registration{
		Identities: []Identity{{Scope: companyID, Kind: KindPhone, Value: strings.TrimPrefix(phone, "+")}},
		Visitor:    chat.Visitor{CompanyID: companyID, Phone: phone, FirstName: name},
		Chat:       &NewChat{Channel: chat.ChannelPhone, Now: at},
	}
}

// Registered is the result of [Visitors.Register].
type Registered struct {
	Visitor chat.Visitor // as stored
	Chat    chat.Chat    // zero if the registration has none
	Opened  bool         // the chat is new
	Created bool         // the identities led to a new visitor
}

// NewChat describes the chat that [Chats.OpenChat] creates if none is open.
type NewChat struct {
	Channel   chat.Channel
	Now       time.Time
	Greetings []chat.Message // in the history from the start, ordered by time and id
	// AgentsOnly assigns a newly created chat to the agents; no bot answers it.
	AgentsOnly bool
}

// Control returns the control of the new chat.
func (n NewChat) Control() chat.Control {
	if !n.AgentsOnly {
		return chat.Control{}
	}
	return chat.Control{Agent: true, ChangedAt: UTC(n.Now)}
}

// Chats stores chats.
type Chats interface {
	// Chat returns the chat, or NotFound.
	Chat(ctx context.Context, id string) (chat.Chat, error)
	// OpenChat returns the visitor's chat that is open at n.Now, or creates one with its greetings; opened reports
	// which. A visitor never has two open chats, whatever runs concurrently. A chat closed only by idleness is first
	// closed permanently. Invalid if the visitor's id is not a UUID.
	OpenChat(ctx context.Context, v chat.Visitor, n NewChat) (c chat.Chat, opened bool, err error)
	// ChangeChat records what has happened to the chat, and returns the resulting chat. NotFound if the chat does not
	// exist. The caller invalidates [CachedChat].
	ChangeChat(ctx context.Context, id string, change ChatChange) (chat.Chat, error)
	// Chats lists chats, newest first. NotFound if the page's cursor is not an existing chat.
	Chats(ctx context.Context, f ChatFilter, p Page) ([]chat.Chat, error)
	// Ratings sums the ratings of a company's chats that were first rated at since or later, ordered by
	// application, which is the page's cursor.
	Ratings(ctx context.Context, companyID string, since time.Time, p Page) ([]Ratings, error)
	// Inbox lists chats with their visitors, most recent activity first (waiting ones, longest wait first),
	// and the cursor of the next page; nil on the last page. It examines at most [MaxExamined] chats, so a page may be
	// short or empty and still have a next page. For a profile shared by more than [InboxProfiles] visitors, it lists
	// the chats of that many.
	Inbox(ctx context.Context, f InboxFilter, p InboxPage) (entries []InboxEntry, next *InboxCursor, err error)
}

// ChatChange is what has happened to a chat; members with a zero time change nothing. Changes commute. Each member is
// applied atomically, whichever else the change has.
type ChatChange struct {
	ClosedAt     time.Time    // the first close wins
	Control      chat.Control // whether agents or the bot answer; the one with the latest ChangedAt wins
	Rating       chat.Rating  // the one with the latest At wins; the stored FirstAt is the At of the first one
	AgentsReadAt time.Time    // up to when the company has read the visitor's messages; the latest wins
}

// Messages stores the history of chats, ordered by creation time, then by id.
type Messages interface {
	// AppendMessage adds a message to the chat's history. If a message with its id exists nothing changes, even if the
	// content differs: the first wins. A visitor's message moves the chat's window; a repeat after a crash completes
	// the write. Errors: NotFound (no such chat), Invalid (see [CheckMessage]; or the id belongs to another chat).
	AppendMessage(ctx context.Context, chatID string, m chat.Message) error
	// History returns a part of the chat's history, ascending, and whether there are earlier messages. Paging backwards
	// with the first message's id as Before visits each message that existed at the start exactly once, even with
	// concurrent writes. Errors: NotFound (no such chat), Invalid (Before is not a message of this chat).
	History(ctx context.Context, chatID string, q HistoryQuery) (messages []chat.Message, more bool, err error)
	// CountUnread counts the messages after the cursor that were sent by the company, or else by the visitor, up to
	// limit, which is positive. An unknown chat has none. The work does not grow with the chat: it is constant, or that of
	// limit entries of an index.
	CountUnread(ctx context.Context, chatID string, fromSupport bool, after chat.ReadCursor, limit int) (int, error)
	// FindMessage returns a message and its chat, or NotFound. A caller that serves one chat compares the chat.
	FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error)
}

// Statuses stores the delivery status of companies' messages.
type Statuses interface {
	// MessageStatus returns the status of a company's message, or NotFound.
	MessageStatus(ctx context.Context, companyID, messageID string) (chat.MessageStatus, error)
	// JoinMessageStatus merges more into the stored status and returns the result. Repeats and any order lead to the
	// same result; see [chat.MessageStatus.Join]. One company's reports never affect another's messages.
	JoinMessageStatus(
		ctx context.Context,
		companyID, messageID string,
		more chat.MessageStatus,
	) (chat.MessageStatus, error)
}

// MaxAwaited is the maximum number of messages of a chat with pending reports. Without it a company that sends on to a
// visitor who never reads would leave any number of them, and the visitor's next read report would publish them all.
const MaxAwaited = 1000

// Receipts stores the company messages of a chat with pending delivery or read reports, and the visitor's read
// cursor. If a message is stored while the visitor reads past it, the later of the two operations sees the earlier.
type Receipts interface {
	// AwaitReceipts records that the sender of m waits for its read report, and, unless delivered, for its delivery
	// report. If the visitor has read that far already it only returns when. A chat in which [MaxAwaited] messages wait
	// takes no further one: the reports of that message are lost.
	AwaitReceipts(ctx context.Context, chatID string, m chat.Message, delivered bool) (readAt time.Time, err error)
	// ReadUpTo records that the visitor has read everything up to m, and returns the sorted ids of the messages up to
	// m with a pending read report, at most [MaxAwaited]. They are returned again until [Receipts.NoteReceipt].
	ReadUpTo(ctx context.Context, chatID string, m chat.Message, at time.Time) (unread []string, err error)
	// ChatReceipts returns the visitor's read cursor, and the messages with pending delivery reports.
	ChatReceipts(ctx context.Context, chatID string) (ChatReceipts, error)
	// NoteReceipt records that the delivery report of a message was sent, or the read report, which implies it.
	NoteReceipt(ctx context.Context, chatID, messageID string, read bool) error
}

// ChatReceipts is the state of a chat's receipts.
type ChatReceipts struct {
	ReadUpTo    chat.ReadCursor // of the visitor; it only advances
	Undelivered []string        // ids of the messages with pending delivery reports, sorted
}

// FileUsage is the number and size of stored files, without expired ones.
type FileUsage struct {
	Bytes int64
	Count int64
}

// Files stores metadata of uploaded files: for quotas, listing and erasure. Stores remove expired entries themselves.
type Files interface {
	// PutFile records an upload. A repeat changes nothing.
	PutFile(ctx context.Context, f chat.StoredFile) error
	// DeleteFile removes the record; a missing one is not an error.
	DeleteFile(ctx context.Context, id string) error
	// FileUsage returns the usage of the owner's unexpired files at now. It may read one row per file: cache it where
	// many senders share an owner.
	FileUsage(ctx context.Context, of FileOwner, now time.Time) (FileUsage, error)
}

// FileOwner is whose files are counted; one of its fields is set.
type FileOwner struct{ Sender, Address, Application, Company string }

// Users stores the panel's users.
type Users interface {
	// User returns the user, or NotFound. [UsersByEmail] finds users by their e-mail address.
	User(ctx context.Context, id string) (account.User, error)
	// CreateUser adds a user. Errors: Invalid (see [account.User.Check]), Conflict with the reason EMAIL_TAKEN if the
	// id exists.
	CreateUser(ctx context.Context, u account.User) error
	// UpdateUser replaces the user, if its Revision is still the stored one, and increments it. Errors: NotFound;
	// Conflict with the reason CHANGED_MEANWHILE.
	UpdateUser(ctx context.Context, u account.User) error
	// DeleteUser removes the user and its sessions. NotFound if the user does not exist.
	DeleteUser(ctx context.Context, id string) error
	// Users lists a company's users, or all if companyID is empty, ordered by id.
	Users(ctx context.Context, companyID string, p Page) ([]account.User, error)
}

// Sessions stores the panel's sessions. Stores remove expired ones themselves, not necessarily immediately.
type Sessions interface {
	// Session returns the session, or NotFound. [account.Session.Valid] decides whether it is valid.
	Session(ctx context.Context, id string) (account.Session, error)
	// CreateSession adds a session.
	CreateSession(ctx context.Context, s account.Session) error
	// SessionUsed records a use and the new expiry; the latest of both win. NotFound if the session does not exist.
	SessionUsed(ctx context.Context, id string, at, expiresAt time.Time) error
	// UserSessions lists a user's sessions in the order of their creation. NotFound if the page's cursor is
	// not one of them.
	UserSessions(ctx context.Context, userID string, p Page) ([]account.Session, error)
	// DeleteSessions removes sessions; that there are none is not an error.
	DeleteSessions(ctx context.Context, of SessionFilter) error
}

// SessionFilter selects one session, or all of a user; one of its fields is set.
type SessionFilter struct{ ID, UserID string }

// AuditFilter selects entries of the audit log; an empty field matches all.
type AuditFilter struct {
	CompanyID string
	TargetID  string
}

// AuditLog records all changes by users. Entries are never modified. They are kept for [account.AuditRetention].
type AuditLog interface {
	// AppendAuditEntry adds an entry; a repeat changes nothing.
	AppendAuditEntry(ctx context.Context, e account.AuditEntry) error
	// AuditEntries lists entries, newest first, and none that is older than the retention.
	AuditEntries(ctx context.Context, f AuditFilter, p Page) ([]account.AuditEntry, error)
}

// WebhookEndpoints stores the webhook endpoints of companies.
type WebhookEndpoints interface {
	// WebhookEndpoint returns the endpoint, or NotFound.
	WebhookEndpoint(ctx context.Context, id string) (webhook.Endpoint, error)
	// CreateWebhookEndpoint adds an endpoint. Invalid: see [webhook.Endpoint.Check].
	CreateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error
	// UpdateWebhookEndpoint replaces the endpoint, if its Revision is still the stored one, and increments it. Errors:
	// Invalid, NotFound; Conflict with the reason CHANGED_MEANWHILE.
	UpdateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error
	// DeleteWebhookEndpoint removes the endpoint and its deliveries. NotFound if the endpoint does not exist.
	DeleteWebhookEndpoint(ctx context.Context, id string) error
	// WebhookEndpoints lists a company's endpoints, or all if companyID is empty, ordered by id.
	WebhookEndpoints(ctx context.Context, companyID string, p Page) ([]webhook.Endpoint, error)
}

// WebhookFilter selects deliveries; an empty field matches all.
type WebhookFilter struct {
	CompanyID  string // this or EndpointID is required
	EndpointID string
	Status     string
	Reason     string
	EventType  string
	From, To   time.Time // of CreatedAt: at From or later, before To
}

// Wants reports whether a delivery matches the filter.
func (f WebhookFilter) Wants(d webhook.Delivery) bool {
	return (f.CompanyID == "" || d.CompanyID == f.CompanyID) && (f.EndpointID == "" || d.EndpointID == f.EndpointID) &&
		(f.Status == "" || d.Status == f.Status) && (f.Reason == "" || d.Reason == f.Reason) &&
		(f.EventType == "" || d.EventType == f.EventType) &&
		!d.CreatedAt.Before(UTC(f.From)) && (f.To.IsZero() || d.CreatedAt.Before(UTC(f.To)))
}

// WebhookDeliveries stores the deliveries of webhooks: the queue of pending ones, and the log of all attempts. Stores
// remove expired deliveries themselves.
type WebhookDeliveries interface {
	// InsertWebhookDelivery adds a delivery and reports false if its id exists.
	InsertWebhookDelivery(ctx context.Context, d webhook.Delivery) (bool, error)
	// WebhookDelivery returns the delivery, or NotFound.
	WebhookDelivery(ctx context.Context, id string) (webhook.Delivery, error)
	// WebhookDeliveries lists deliveries, newest first, and the cursor of the next page; "" on the last page. It
	// examines at most [MaxExamined] deliveries and returns at most [MaxDeliveryBytes] and one delivery more, so a
	// page may be short or empty and still have a next page. NotFound if the page's cursor is not an existing delivery
	// of the filter's endpoint and company.
	WebhookDeliveries(ctx context.Context, f WebhookFilter, p Page) (found []webhook.Delivery, next string, err error)
	// StoredWebhookBytes adds up the sizes of a company's deliveries, pending and ended, with their attempts:
	// [webhook.Delivery.Size], [webhook.Attempt.Size].
	StoredWebhookBytes(ctx context.Context, companyID string) (int64, error)
	// DueWebhookCompanies lists the companies that have pending deliveries due at now.
	DueWebhookCompanies(ctx context.Context, now time.Time) ([]string, error)
	// DueWebhookDeliveries lists at most limit pending deliveries of a company that are due at now, longest due first,
	// except those of the endpoints in except.
	DueWebhookDeliveries(
		ctx context.Context, companyID string, now time.Time, except []string, limit int,
	) ([]webhook.Due, error)
	// ClaimWebhookDelivery postpones a delivery that is due at now to until, and returns it. Of several concurrent
	// callers one claims it; claimed reports whether this one did.
	ClaimWebhookDelivery(
		ctx context.Context,
		id string,
		now, until time.Time,
	) (d webhook.Delivery, claimed bool, err error)
	// EndWebhookAttempt adds an attempt to the log of a delivery, and applies the outcome if the delivery is pending.
	// It does nothing if the delivery no longer exists. A nil attempt is not logged: see [webhook.Postponed].
	EndWebhookAttempt(ctx context.Context, id string, a *webhook.Attempt, o webhook.Outcome) error
	// ReplayWebhookDelivery makes a delivery pending again, due at the given time, with a full set of tries. It reports
	// false, and changes nothing, if the delivery is already pending. NotFound if the delivery does not exist.
	ReplayWebhookDelivery(ctx context.Context, id string, at time.Time) (bool, error)
	// FirstWebhookDelivery returns the pending delivery with the lowest OrderNumber of an endpoint's OrderKey: the only
	// one of them that may be sent. NotFound if none is pending, or the key is empty.
	FirstWebhookDelivery(ctx context.Context, endpointID, orderKey string) (webhook.InOrder, error)
}

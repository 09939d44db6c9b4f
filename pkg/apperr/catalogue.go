package apperr

// Definition is one public error: what callers of the APIs, of the panel and of the socket see. Reason and
// the class are stable; the message may be reworded.
type Definition struct {
	Code    Code
	Reason  string
	Message string
}

// New returns the error as it is defined.
func (d Definition) New() *Error { return New(d.Code, d.Reason, d.Message) }

// Wrap returns the error with its cause, for the log.
func (d Definition) Wrap(cause error) *Error { return d.New().Wrap(cause) }

// WithMessage returns the error with a message that says more.
func (d Definition) WithMessage(message string) *Error { return New(d.Code, d.Reason, message) }

// WithField returns the error with what the caller should know about a field.
func (d Definition) WithField(name, message string) *Error {
	e := d.New()
	e.Fields = []Field{{Name: name, Message: message}}
	return e
}

// TokenExpired returns the error for an authentic credential that has expired. Only its holder gets it: the
// details are absent from the error for an unknown credential.
func TokenExpired() *Error { return Unauthorized.WithField(tokenField, "has expired") }

// TokenRevoked returns the error for an authentic credential that was revoked; see [TokenExpired].
func TokenRevoked() *Error { return Unauthorized.WithField(tokenField, "was revoked") }

const tokenField = "token"

// Requests.
var (
	BadRequest            = define(Invalid, "BAD_REQUEST", "Bad request")
	MalformedJSON         = define(Invalid, "MALFORMED_JSON", "Request body is not valid JSON.")
	MalformedMultipart    = define(Invalid, "MALFORMED_MULTIPART", "Request body is not valid multipart/form-data.")
	ValidationError       = define(Invalid, "VALIDATION_ERROR", "Validation failed")
	MissingRequiredFields = define(Invalid, "MISSING_REQUIRED_FIELDS", "Missing required fields")
	UnsupportedMediaType  = define(Invalid, "UNSUPPORTED_MEDIA_TYPE", "Content-Type must be application/json.")
	PayloadTooLarge       = define(Invalid, "PAYLOAD_TOO_LARGE", "Request body is too large")
	RequestTimeout        = define(Invalid, "REQUEST_TIMEOUT", "The upload took too long.")
	MethodNotAllowed      = define(Invalid, "METHOD_NOT_ALLOWED", "Method not allowed")
	RouteNotFound         = define(NotFound, "NOT_FOUND", "Route not found")
	PreconditionFailed    = define(Invalid, "PRECONDITION_FAILED", "The file is not the one that the request is about.")
	RangeNotSatisfiable   = define(Invalid, "RANGE_NOT_SATISFIABLE", "The file has no such range.")
)

// Credentials and rights.
var (
	Unauthorized    = define(Unauthenticated, "UNAUTHORIZED", "Unauthorized")
	TokenMissing    = define(Unauthenticated, "TOKEN_MISSING", "Unauthorized: the token is missing.")
	WrongAuthScheme = define(
		Unauthenticated,
		"WRONG_AUTH_SCHEME",
		"Unauthorized: the token is not sent in the required form.",
	)
	OriginNotAllowed    = define(Invalid, "ORIGIN_NOT_ALLOWED", "Origin is not allowed")
	IdentityNotVerified = define(Invalid, "IDENTITY_NOT_VERIFIED", "Identity could not be verified")
	Forbidden           = define(Invalid, "FORBIDDEN", "Your role does not allow this")
	CSRF                = define(Invalid, "CSRF", "The request does not come from the panel. Load the page again.")
)

// Limits and outages.
var (
	TooManyRequests    = define(TooMany, "TOO_MANY_REQUESTS", "Too many requests. Please try again later.")
	ByteBudgetExceeded = define(TooMany, "BYTE_BUDGET_EXCEEDED", "Too much data was sent. Please try again later.")
	TooManyUploads     = define(TooMany, "TOO_MANY_UPLOADS", "Too many files are being uploaded. Please try again.")
	TooManyDownloads   = define(TooMany, "TOO_MANY_DOWNLOADS", "Too many files are being downloaded. Please try again.")
	TooManyReads       = define(Unavailable, "TOO_MANY_READS", "Too many histories are being read. Please try again.")
	TooManyConnections = define(Unavailable, "TOO_MANY_CONNECTIONS", "Too many connections")
	ServiceUnavailable = define(
		Unavailable,
		"SERVICE_UNAVAILABLE",
		"Service is temporarily unavailable. Please try again.",
	)
	StreamFull        = define(Unavailable, "STREAM_FULL", ServiceUnavailable.Message)
	StreamNotWritable = define(Unavailable, "STREAM_NOT_WRITABLE", ServiceUnavailable.Message)
	FileStoreFull     = define(
		Unavailable,
		"FILE_STORE_FULL",
		"There is no space for more files. Please try again later.",
	)
	WidgetNotBuilt = define(
		Unavailable,
		"WIDGET_NOT_BUILT",
		"This build has no widget. Run `make assets` and build again.",
	)
	PanelNotBuilt = define(
		Unavailable,
		"PANEL_NOT_BUILT",
		"This build has no panel. Run `make assets` and build again.",
	)
	InternalError = define(Internal, "INTERNAL_ERROR", "Internal server error")
)

// Idempotency keys.
var (
	IdempotencyKeyInvalid = define(
		Invalid,
		"IDEMPOTENCY_KEY_INVALID",
		`Idempotency-Key must be one string of 1 to 255 printable ASCII characters, such as "8e03978e-40d5-43dd-bc93-6894a57f9324".`,
	)
	IdempotencyKeyRequired = define(Invalid, "IDEMPOTENCY_KEY_REQUIRED", "The header Idempotency-Key is required")
	IdempotencyKeyReused   = define(
		Invalid,
		"IDEMPOTENCY_KEY_REUSED",
		"This Idempotency-Key was used for another request.",
	)
	IdempotencyKeyInUse = define(
		Conflict,
		"IDEMPOTENCY_KEY_IN_USE",
		"A request with this Idempotency-Key is in progress.",
	)
)

// Chats, messages and files.
var (
	ApplicationNotFound = define(NotFound, "APPLICATION_NOT_FOUND", "Chat application not found")
	VisitorNotFound     = define(NotFound, "VISITOR_NOT_FOUND", "Visitor not found")
	ChatNotFound        = define(NotFound, "CHAT_NOT_FOUND", "Chat not found")
	ChatTooOld          = define(Invalid, "CHAT_TOO_OLD", "Chat is too old. Please start a new chat.")
	ChatClosed          = define(Invalid, "CHAT_CLOSED", "Chat is closed. Please start a new chat.")
	ChatOpen            = define(Conflict, "CHAT_OPEN", "The chat is still open")
	MessageNotFound     = define(NotFound, "MESSAGE_NOT_FOUND", "Message not found")
	MessageExists       = define(Invalid, "MESSAGE_EXISTS", "A message with this id is in another chat")
	MessageComplete     = define(Conflict, "MESSAGE_COMPLETE", "Message is complete")
	TemplateNotFound    = define(NotFound, "TEMPLATE_NOT_FOUND", "Template not found")
	TemplateNotApproved = define(
		NotFound,
		"TEMPLATE_NOT_APPROVED",
		"Template not found: it exists, but it is not approved.",
	)
	ChannelNotConnected = define(
		Conflict,
		"CHANNEL_NOT_CONNECTED",
		"Nothing takes messages to phone numbers here: run a channel connector, and set PHONE_CONNECTOR",
	)
	EventTooLarge      = define(Invalid, "EVENT_TOO_LARGE", "The content is too large.")
	InvalidEvent       = define(Invalid, "INVALID_EVENT", "The event is not valid.")
	FileNotFound       = define(NotFound, "FILE_NOT_FOUND", "File not found")
	FileTypeMismatch   = define(Invalid, "FILE_TYPE_MISMATCH", "The file is not what its Content-Type says.")
	FileQuotaExceeded  = define(Invalid, "FILE_QUOTA_EXCEEDED", "The files exceed their quota.")
	HandoverNotOffered = define(Conflict, "HANDOVER_NOT_OFFERED", "The application does not offer to talk to a person")
	RatingNotOffered   = define(Conflict, "RATING_NOT_OFFERED", "The application does not ask for ratings")
	RatingEnded        = define(Conflict, "RATING_ENDED", "The chat can no longer be rated")
)

// The panel and parleyctl.
var (
	CompanyNotFound      = define(NotFound, "COMPANY_NOT_FOUND", "Company not found")
	AccessTokenNotFound  = define(NotFound, "ACCESS_TOKEN_NOT_FOUND", "Access token not found")
	AccessTokenExists    = define(Conflict, "ACCESS_TOKEN_EXISTS", "The access token exists already")
	AccessTokenNotActive = define(Conflict, "TOKEN_NOT_ACTIVE", "The token has expired or was revoked")
	NoIdentitySecret     = define(Invalid, "NO_IDENTITY_SECRET", "The application has no identity secret yet")
	ChangedMeanwhile     = define(Conflict, "CHANGED_MEANWHILE", "The record has been changed by somebody else")
	AgentChatClosed      = define(Conflict, ChatClosed.Reason, "The chat is closed")
	UnapprovedTemplate   = define(Conflict, TemplateNotApproved.Reason, "The template is not approved")
	TemplateState        = define(Conflict, "TEMPLATE_STATE", "The template is in another state")
	UserNotFound         = define(NotFound, "USER_NOT_FOUND", "User not found")
	EmailTaken           = define(Conflict, "EMAIL_TAKEN", "A user with this e-mail address exists already")
	LastOwner            = define(Conflict, "LAST_OWNER", "At least one user must be able to manage users")
	NotInvited           = define(Conflict, "NOT_INVITED", "The user has accepted the invitation")
	InvitationNotFound   = define(NotFound, "INVITATION_NOT_FOUND", "The invitation is not valid any more")
	SessionNotFound      = define(NotFound, "SESSION_NOT_FOUND", "Session not found")
	InvalidCredentials   = define(Unauthenticated, "INVALID_CREDENTIALS", "The e-mail address or the password is wrong")
	TOTPRequired         = define(Unauthenticated, "TOTP_REQUIRED", "A one-time code is required")
	InvalidCode          = define(Unauthenticated, "INVALID_CODE", "The one-time code is wrong")
	UnconfirmedCode      = define(Invalid, InvalidCode.Reason, InvalidCode.Message)
	TOTPNotSet           = define(Conflict, "TOTP_NOT_SET", "One-time codes are not turned on")
	WrongPassword        = define(Invalid, "WRONG_PASSWORD", "The password is wrong")
	IdentityBound        = define(
		Conflict,
		"IDENTITY_BOUND",
		"The user signs in with another account of the identity provider",
	)
	IdentityNotBound = define(
		Conflict,
		"IDENTITY_NOT_BOUND",
		"The user has not signed in with the identity provider",
	)
	OIDCNotConfigured = define(NotFound, "OIDC_NOT_CONFIGURED", "Signing in with an identity provider is not set up")
	OIDCFailed        = define(Unauthenticated, "OIDC_FAILED", "The sign-in at the identity provider failed")
	TooManyEndpoints  = define(
		Conflict,
		"TOO_MANY_ENDPOINTS",
		"The company has reached its limit of webhook endpoints",
	)
	TooManyApplications = define(
		Conflict,
		"TOO_MANY_APPLICATIONS",
		"The company has reached its limit of applications",
	)
	TooManyUsers            = define(Conflict, "TOO_MANY_USERS", "The company has reached its limit of users")
	TooManyTemplates        = define(Conflict, "TOO_MANY_TEMPLATES", "The company has reached its limit of templates")
	TooManyTokens           = define(Conflict, "TOO_MANY_TOKENS", "The company has reached its limit of access tokens")
	EndpointDisabled        = define(Conflict, "ENDPOINT_DISABLED", "The webhook endpoint is disabled")
	WebhookEndpointNotFound = define(NotFound, "WEBHOOK_ENDPOINT_NOT_FOUND", "Webhook endpoint not found")
	WebhookDeliveryNotFound = define(NotFound, "WEBHOOK_DELIVERY_NOT_FOUND", "Webhook delivery not found")
	BotNotFound             = define(NotFound, "BOT_NOT_FOUND", "The bot of the application was never changed")
	BotVersionNotFound      = define(NotFound, "BOT_VERSION_NOT_FOUND", "Version of the bot not found")
	BotActionNotFound       = define(NotFound, "BOT_ACTION_NOT_FOUND", "The visitor was not asked about this")
	ConnectionNotFound      = define(NotFound, "CONNECTION_NOT_FOUND", "Connection not found")
	ConnectionInUse         = define(Conflict, "CONNECTION_IN_USE", "A bot of the company uses the connection")
	TooManyModelConnections = define(Conflict, "TOO_MANY_MODEL_CONNECTIONS", "The company has reached its limit of connections")
	DocumentNotFound        = define(NotFound, "DOCUMENT_NOT_FOUND", "Document not found")
	TooManyDocuments        = define(Conflict, "TOO_MANY_DOCUMENTS", "The documents of the company have reached their limit")
	DocumentNotFetched      = define(Conflict, "DOCUMENT_NOT_FETCHED", "The text of the document is given by hand")
	PDFUnreadable           = define(Invalid, "PDF_UNREADABLE", "The file is not a PDF, or it is damaged")
	PDFEncrypted            = define(Invalid, "PDF_ENCRYPTED", "The PDF is protected with a password")
	PDFWithoutText          = define(Invalid, "PDF_WITHOUT_TEXT", "The PDF has no text, such as one of scanned pages")
	PDFTooLarge             = define(Invalid, "PDF_TOO_LARGE", "A PDF may have 10 MiB, 2000 pages and 512 KiB of text")
	PDFTooSlow              = define(Invalid, "PDF_TOO_SLOW", "Reading the PDF takes too long")
	StreamNotFound          = define(NotFound, "STREAM_NOT_FOUND", "Stream not found")
	DeadLetterNotFound      = define(NotFound, "DEAD_LETTER_NOT_FOUND", "Dead letter not found")
)

// definitions has all of the above, in their order.
var definitions []Definition

func define(code Code, reason, message string) Definition {
	d := Definition{code, reason, message}
	definitions = append(definitions, d)
	return d
}

// Definitions returns all public errors, for docs/errors.md.
func Definitions() []Definition { return append([]Definition(nil), definitions...) }

// Package subject defines every stream and subject of Parley.
//
// Ids are UUIDs and channels are lower-case words, so none can contain a dot, a space or a wildcard; a token that does
// is a programming error, which [Valid] detects before anything is published.
package subject

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Streams. A message is stored in the stream that its subject belongs to.
const (
	Inbound  = "INBOUND"  // visitors' registrations, messages and ratings, and changes of control
	Sends    = "SENDS"    // companies' messages and pushes
	Replies  = "REPLIES"  // messages to widget visitors
	Outbound = "OUTBOUND" // messages to channel connectors
	Status   = "STATUS"   // delivery reports of companies' messages
	Dead     = "DEAD"     // dead letters: messages that a consumer gave up
	Parts    = "PARTS"    // messages that bots are still writing; kept for [PartsAge]

	// Revocations stores the last revocation of each visitor whose tokens were revoked. It is not an event stream.
	Revocations = "REVOCATIONS"

	// Positions stores the offset of each partition handled by a group that does not acknowledge. It is not an event
	// stream.
	Positions = "POSITIONS"
)

// Filters: all subjects of one kind.
const (
	AllFromVisitors     = "chat.in.visitor.>"
	AllCompanyMessages  = "chat.in.message.>"
	AllPushes           = "chat.in.push.>"
	AllRegistrations    = "chat.in.visitor.registered.>"
	AllVisitorMessages  = "chat.in.visitor.message.>"
	AllRatings          = "chat.in.visitor.rated.>"
	AllControls         = "chat.in.control.>"
	AllReplies          = "chat.reply.>"
	AllParts            = "chat.part.>"
	AllOutbound         = "chat.out.>"
	AllStatuses         = "chat.status.>"
	AllDead             = "chat.dead.>"
	AllRevocations      = "parley.revocation.>"
	allPositions        = "parley.position.>"
	AllInvalidations    = "parley.invalidate.>"  // core NATS, not stored: a lost one costs a second of staleness
	AllOriginRequests   = "parley.ask.origins.*" // core NATS request
	AllStops            = "parley.stop.*.*.*"    // core NATS request
	revocationsPrefix   = "parley.revocation."
	invalidationsPrefix = "parley.invalidate."
	repliesPrefix       = "chat.reply."
	outboundPrefix      = "chat.out."
	stopsPrefix         = "parley.stop."
)

// Stream is a stream's name and its subjects.
type Stream struct {
	Name     string
	Subjects []string
	// Partitioned streams need order by key only, so several readers may share them.
	Partitioned bool
	// LastOnly keeps the last message of each subject, for an age of its own.
	LastOnly bool
	// Short keeps messages for [PartsAge] instead of the configured age, and when full drops the oldest instead of
	// rejecting.
	Short bool
}

// PartsAge is how long a part of a message is kept: longer than the longest pause of a bot within a message.
const PartsAge = time.Minute

// Streams returns every stream of Parley.
func Streams() []Stream {
	return []Stream{
		{Name: Inbound, Subjects: []string{AllFromVisitors, AllControls}, Partitioned: true},
		{Name: Sends, Subjects: []string{AllCompanyMessages, AllPushes}, Partitioned: true},
		{Name: Replies, Subjects: []string{AllReplies}, Partitioned: true},
		{Name: Outbound, Subjects: []string{AllOutbound}},
		{Name: Status, Subjects: []string{AllStatuses}},
		{Name: Dead, Subjects: []string{AllDead}},
		{Name: Revocations, Subjects: []string{AllRevocations}, LastOnly: true},
		{Name: Positions, Subjects: []string{allPositions}, LastOnly: true},
		{Name: Parts, Subjects: []string{AllParts}, Partitioned: true, Short: true},
	}
}

// Kind is a kind of subjects.
type Kind struct {
	Name string // for operators
	All  string // the filter of all its subjects
	// OfVisitor returns the subject of a visitor's events, and OfChat that of a chat's; nil: the subject names another
	// thing. The erasure of a visitor purges these subjects.
	OfVisitor func(appID, chatUserID string) string
	OfChat    func(companyID, chatID string) string
}

// Kinds returns every kind that a stream stores for readers.
func Kinds() []Kind {
	return []Kind{
		{Name: "company-message", All: AllCompanyMessages, OfChat: CompanyMessage},
		{Name: "push", All: AllPushes},
		{Name: "registration", All: AllRegistrations, OfVisitor: VisitorRegistered},
		{Name: "visitor-message", All: AllVisitorMessages, OfVisitor: VisitorMessage},
		{Name: "rating", All: AllRatings, OfVisitor: ChatRated},
		{Name: "control", All: AllControls, OfChat: ControlChanged},
		{Name: "reply", All: AllReplies, OfVisitor: Reply},
		{Name: "part", All: AllParts, OfVisitor: Part},
		{Name: "outbound", All: AllOutbound},
		{Name: "status", All: AllStatuses},
		{Name: "dead", All: AllDead},
		{Name: "revocation", All: AllRevocations},
	}
}

// StreamOf returns the name of the stream that stores a subject, or the empty string.
func StreamOf(subj string) string {
	for _, stream := range Streams() {
		for _, filter := range stream.Subjects {
			if strings.HasPrefix(subj, strings.TrimSuffix(filter, ">")) {
				return stream.Name
			}
		}
	}
	return ""
}

// CompanyMessage returns the subject of a company's message into a chat, published by the Client API.
func CompanyMessage(companyID, chatID string) string {
	return "chat.in.message." + companyID + "." + chatID
}

// Push returns the subject of a template message to a phone number, published by the Client API.
func Push(companyID, templateID string) string { return "chat.in.push." + companyID + "." + templateID }

// VisitorRegistered returns the subject of a registration, published by the Widget API.
func VisitorRegistered(appID, chatUserID string) string {
	return "chat.in.visitor.registered." + appID + "." + chatUserID
}

// VisitorMessage returns the subject of a visitor's message, published by the Widget API.
func VisitorMessage(appID, chatUserID string) string {
	return "chat.in.visitor.message." + appID + "." + chatUserID
}

// ChatRated returns the subject of a visitor's rating, published by the Widget API.
func ChatRated(appID, chatUserID string) string {
	return "chat.in.visitor.rated." + appID + "." + chatUserID
}

// ControlChanged returns the subject of changes to which side answers a chat.
func ControlChanged(companyID, chatID string) string {
	return "chat.in.control." + companyID + "." + chatID
}

// PanelNotice returns the subject on which panel replicas share agents' presence, what they have read, and changes of
// access (core NATS).
func PanelNotice(companyID string) string { return "parley.panel." + companyID }

// Reply returns the subject of a message to a widget visitor, published by the processing layer.
func Reply(appID, chatUserID string) string { return repliesPrefix + appID + "." + chatUserID }

// ParseReply returns the ids in the subject of a reply.
func ParseReply(s string) (appID, chatUserID string, ok bool) {
	rest, ok := strings.CutPrefix(s, repliesPrefix)
	if !ok {
		return "", "", false
	}
	appID, chatUserID, ok = strings.Cut(rest, ".")
	return appID, chatUserID, ok && Valid(appID) && Valid(chatUserID)
}

// Part returns the subject of the parts of a message that a bot is writing to a widget visitor.
func Part(appID, chatUserID string) string { return "chat.part." + appID + "." + chatUserID }

// Stop returns the subject of a request to stop a bot's message to a visitor (core NATS request).
func Stop(appID, chatUserID, messageID string) string {
	return stopsPrefix + appID + "." + chatUserID + "." + messageID
}

// ParseStop returns the ids in the subject of a stop request.
func ParseStop(s string) (appID, chatUserID, messageID string, ok bool) {
	tokens := strings.Split(s, ".")
	if len(tokens) != 5 || !strings.HasPrefix(s, stopsPrefix) {
		return "", "", "", false
	}
	return tokens[2], tokens[3], tokens[4], Valid(tokens[2]) && Valid(tokens[3]) && Valid(tokens[4])
}

// CompanyOf returns the company in the subject of a company's message, a push, or an outbound message.
func CompanyOf(s string) (companyID string, ok bool) {
	tokens := strings.Split(s, ".")
	switch {
	case len(tokens) == 5 && strings.HasPrefix(s, "chat.in.message."),
		len(tokens) == 5 && strings.HasPrefix(s, "chat.in.push."):
		return tokens[3], Valid(tokens[3])
	case len(tokens) == 4 && strings.HasPrefix(s, "chat.out."):
		return tokens[3], Valid(tokens[3])
	}
	return "", false
}

// AppOf returns the application in the subject of a visitor's message.
func AppOf(s string) (appID string, ok bool) {
	rest, ok := strings.CutPrefix(s, strings.TrimSuffix(AllVisitorMessages, ">"))
	if !ok {
		return "", false
	}
	appID, _, _ = strings.Cut(rest, ".")
	return appID, Valid(appID)
}

// ChatOf returns the chat in the subject of a company's message.
func ChatOf(s string) (chatID string, ok bool) {
	tokens := strings.Split(s, ".")
	if len(tokens) != 5 || !strings.HasPrefix(s, "chat.in.message.") {
		return "", false
	}
	return tokens[4], Valid(tokens[4])
}

// OutboundMessage returns the subject of a message for a channel connector, published by the processing layer.
func OutboundMessage(channel, companyID string) string {
	return outboundPrefix + channel + "." + companyID
}

// ParseOutbound returns the parts of the subject of a message for a channel connector.
func ParseOutbound(s string) (channel, companyID string, ok bool) {
	rest, ok := strings.CutPrefix(s, outboundPrefix)
	if !ok {
		return "", "", false
	}
	channel, companyID, ok = strings.Cut(rest, ".")
	return channel, companyID, ok && Valid(channel) && Valid(companyID)
}

// MessageStatus returns the subject of delivery reports for a company's message.
func MessageStatus(companyID, messageID string) string {
	return "chat.status." + companyID + "." + messageID
}

// DeadLetter returns the subject on which a consumer of a stream publishes dead letters.
func DeadLetter(stream, consumer string) string { return "chat.dead." + stream + "." + consumer }

// Invalidation returns the subject that makes all services drop what they cached of kind under key.
func Invalidation(kind, key string) string { return invalidationsPrefix + kind + "." + key }

// Revocation returns the subject of the revocation of a visitor's tokens. chatUserID may be "*", for all
// visitors of the company.
func Revocation(companyID, chatUserID string) string {
	return revocationsPrefix + companyID + "." + chatUserID
}

// ParseRevocation returns the visitor in the subject of a revocation.
func ParseRevocation(s string) (chatUserID string, ok bool) {
	rest, ok := strings.CutPrefix(s, revocationsPrefix)
	if !ok {
		return "", false
	}
	companyID, chatUserID, ok := strings.Cut(rest, ".")
	return chatUserID, ok && Valid(companyID) && Valid(chatUserID)
}

// Progress returns the subject on which a consumer's processes report the state of a delivery (core NATS request).
func Progress(stream, consumer string) string { return "parley.progress." + stream + "." + consumer }

// Skip returns the subject on which a consumer's processes are asked to give up a delivery (core NATS request).
func Skip(stream, consumer string) string { return "parley.skip." + stream + "." + consumer }

// Members returns the subject of the heartbeats of a consumer's replicas (core NATS).
func Members(stream, consumer string) string { return "parley.members." + stream + "." + consumer }

// Position returns the subject that stores a group's offset in a partition of a stream.
func Position(stream, group string, partition int) string {
	return "parley.position." + stream + "." + group + "." + strconv.Itoa(partition)
}

// AllPositions returns the filter of [Position] for all partitions of a stream; group may be "*".
func AllPositions(stream, group string) string {
	return "parley.position." + stream + "." + group + ".*"
}

// LostTail returns the subject of the record that a stream has lost messages, in [Positions].
func LostTail(stream string) string { return "parley.position." + stream + ".lost" }

// ParseInvalidation returns the kind and the key in the subject of an invalidation.
func ParseInvalidation(s string) (kind, key string, ok bool) {
	rest, ok := strings.CutPrefix(s, invalidationsPrefix)
	if !ok {
		return "", "", false
	}
	kind, key, ok = strings.Cut(rest, ".")
	return kind, key, ok && Valid(kind) && Valid(key)
}

// Replica returns the core NATS subject on which the replicas of a service announce themselves.
func Replica(service string) string { return "parley.hello." + service }

// Sync returns the core NATS request subject on which what a stream has acknowledged is put on the disk.
func Sync(stream string) string { return "parley.sync." + stream }

// Probe is the subject of the message that parleyctl doctor stores in a stream of its own and removes.
const Probe = "parley.probe"

// Ready returns the core NATS request subject on which a replica of a service reports the state of its dependencies.
func Ready(service string) string { return "parley.ready." + service }

// BotTest is the subject on which the panel asks a processor to test the settings of a bot (core NATS request).
const BotTest = "parley.ask.bot"

// BotTools is the subject on which the panel asks a processor for the tools of a company's server (core NATS request).
const BotTools = "parley.ask.tools"

// Embedding is the subject on which the panel asks a processor for the embedding of a text (core NATS request).
const Embedding = "parley.ask.embedding"

// OriginsRequest returns the subject on which a gateway requests an application's allowed origins from the Widget API.
func OriginsRequest(appID string) string { return "parley.ask.origins." + appID }

// nats-server ends a connection that sends a line of more than 4,096 bytes (max_control_line). The line also has the
// prefix of a JetStream request and the subject of its answer, hence the distance.
const (
	// MaxLength is the length of the longest subject, in bytes.
	MaxLength = 1024
	// MaxToken is the length of the longest token of a subject, in bytes.
	MaxToken = 255
)

// Valid reports whether token is a valid single token of a subject: text without dots, wildcards, white space and
// control characters.
func Valid(token string) bool {
	return len(token) <= MaxToken && !strings.Contains(token, ".") && Literal(token) && utf8.ValidString(token)
}

// ValidFilter reports whether messages can be read by s: its tokens are valid or wildcards.
func ValidFilter(s string) bool {
	s, _ = strings.CutSuffix(s, ".>")
	return s == ">" || Literal(strings.ReplaceAll(s, "*", "any"))
}

// Literal reports whether a message can be published on s: s is not too long, and has no empty tokens, wildcards or
// white space.
func Literal(s string) bool {
	if len(s) > MaxLength {
		return false
	}
	start := true
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if start {
				return false
			}
			start = true
		case c <= ' ' || c == '*' || c == '>' || c == 0x7f:
			return false
		default:
			start = false
		}
	}
	return !start
}

// Matches reports whether a filter, with the wildcards of NATS, matches a subject.
func Matches(filter, subj string) bool {
	tokens := strings.Split(subj, ".")
	wanted := strings.Split(filter, ".")
	for i, token := range wanted {
		switch {
		case i >= len(tokens):
			return false
		case token == ">":
			return true
		case token != "*" && token != tokens[i]:
			return false
		}
	}
	return len(wanted) == len(tokens)
}

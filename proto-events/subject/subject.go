// Package subject names every stream and subject of Parley, in one place.
//
// Ids are UUIDs and channels are lower-case words, so none of them can hold a dot, a space or a wildcard; a token that does is
// a fault of the caller, which [Valid] finds before anything is published.
package subject

import (
	"strconv"
	"strings"
	"time"
)

// Streams. A message is kept by the stream that its subject belongs to.
const (
	Inbound  = "INBOUND"  // what visitors did: registrations and messages; and who answers them
	Sends    = "SENDS"    // what companies sent: messages and pushes
	Replies  = "REPLIES"  // what goes to widget visitors
	Outbound = "OUTBOUND" // what goes to channel connectors
	Status   = "STATUS"   // what became of messages that companies sent
	Dead     = "DEAD"     // what a consumer gave up on
	Parts    = "PARTS"    // what bots are still writing; kept for [PartsAge]

	// Revocations keeps, for each visitor whose tokens were revoked, the last revocation. It is no stream of events.
	Revocations = "REVOCATIONS"

	// Positions keeps how far each partition of a stream has been handled by a group that acknowledges nothing. It is no stream of events.
	Positions = "POSITIONS"
)

// Filters: all subjects of one kind.
const (
	AllInbound          = "chat.in.visitor.>"
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
	AllInvalidations    = "parley.invalidate.>"  // core NATS, no stream: a lost one costs a second of staleness
	AllOriginQuestions  = "parley.ask.origins.*" // core NATS, a question with an answer
	AllStops            = "parley.stop.*.*.*"    // core NATS, a request with an answer
	revocationsPrefix   = "parley.revocation."
	invalidationsPrefix = "parley.invalidate."
	repliesPrefix       = "chat.reply."
	stopsPrefix         = "parley.stop."
)

// Stream is a stream's name and the subjects that it keeps.
type Stream struct {
	Name     string
	Subjects []string
	// Partitioned says that the order of its messages matters by key only, so that several readers may share them.
	Partitioned bool
	// LastOnly keeps the last message of each subject, for [RevocationAge] instead of the configured age.
	LastOnly bool
	// Short keeps messages for [PartsAge] instead of the configured age, and drops the oldest where others refuse the newest.
	Short bool
}

// PartsAge is how long a part of a message is kept: longer than a bot may be silent in the middle of one.
const PartsAge = time.Minute

// RevocationAge is how long a revocation is kept: no token lives longer.
const RevocationAge = 400 * 24 * time.Hour

// Streams returns every stream of Parley.
func Streams() []Stream {
	return []Stream{
		{Name: Inbound, Subjects: []string{AllInbound, AllControls}, Partitioned: true},
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

// StreamOf returns the name of the stream that keeps a subject, or the empty string.
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

// CompanyMessage is where the Client API publishes a message into a chat.
func CompanyMessage(companyID, chatID string) string {
	return "chat.in.message." + companyID + "." + chatID
}

// Push is where the Client API publishes a template message to a phone number.
func Push(companyID, templateID string) string { return "chat.in.push." + companyID + "." + templateID }

// VisitorRegistered is where the Widget API publishes a registration.
func VisitorRegistered(appID, chatUserID string) string {
	return "chat.in.visitor.registered." + appID + "." + chatUserID
}

// VisitorMessage is where the Widget API publishes what a visitor wrote.
func VisitorMessage(appID, chatUserID string) string {
	return "chat.in.visitor.message." + appID + "." + chatUserID
}

// ChatRated is where the Widget API publishes that a visitor has rated a chat.
func ChatRated(appID, chatUserID string) string {
	return "chat.in.visitor.rated." + appID + "." + chatUserID
}

// ControlChanged is where it is published who answers a chat.
func ControlChanged(companyID, chatID string) string {
	return "chat.in.control." + companyID + "." + chatID
}

// PanelNotice is where replicas of the panel tell each other about a company's agents (core NATS): who is looking, who is typing.
func PanelNotice(companyID string) string { return "parley.panel." + companyID }

// Reply is where the processing layer publishes what a widget visitor is to see.
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

// Part is where a bot publishes what it has written of a message for a widget visitor.
func Part(appID, chatUserID string) string { return "chat.part." + appID + "." + chatUserID }

// Stop is where the bot that writes a message for a visitor is asked to stop (core NATS, request and reply).
func Stop(appID, chatUserID, messageID string) string {
	return stopsPrefix + appID + "." + chatUserID + "." + messageID
}

// ParseStop returns the ids in the subject of a request to stop.
func ParseStop(s string) (appID, chatUserID, messageID string, ok bool) {
	tokens := strings.Split(s, ".")
	if len(tokens) != 5 || !strings.HasPrefix(s, stopsPrefix) {
		return "", "", "", false
	}
	return tokens[2], tokens[3], tokens[4], Valid(tokens[2]) && Valid(tokens[3]) && Valid(tokens[4])
}

// CompanyOf returns the company in the subject of what it sent: a message, a push, or what became of either for a channel.
func CompanyOf(s string) (companyID string, ok bool) {
	tokens := strings.Split(s, ".")
	switch {
	case len(tokens) == 5 && strings.HasPrefix(s, "chat.in.message."), len(tokens) == 5 && strings.HasPrefix(s, "chat.in.push."):
		return tokens[3], Valid(tokens[3])
	case len(tokens) == 4 && strings.HasPrefix(s, "chat.out."):
		return tokens[3], Valid(tokens[3])
	}
	return "", false
}

// ChatOf returns the chat in the subject of a company's message.
func ChatOf(s string) (chatID string, ok bool) {
	tokens := strings.Split(s, ".")
	if len(tokens) != 5 || !strings.HasPrefix(s, "chat.in.message.") {
		return "", false
	}
	return tokens[4], Valid(tokens[4])
}

// OutboundMessage is where the processing layer publishes what a channel connector is to deliver.
func OutboundMessage(channel, companyID string) string {
	return "chat.out." + channel + "." + companyID
}

// MessageStatus is where whoever brings a company's message to its reader reports what became of it.
func MessageStatus(companyID, messageID string) string {
	return "chat.status." + companyID + "." + messageID
}

// DeadLetter is where a consumer of a stream publishes what it gave up on.
func DeadLetter(stream, consumer string) string { return "chat.dead." + stream + "." + consumer }

// Invalidation tells all services to forget what they cached of kind under key.
func Invalidation(kind, key string) string { return invalidationsPrefix + kind + "." + key }

// Revocation is where it is kept from when on a visitor's tokens hold.
func Revocation(chatUserID string) string { return revocationsPrefix + chatUserID }

// ParseRevocation returns the visitor in the subject of a revocation.
func ParseRevocation(s string) (chatUserID string, ok bool) {
	chatUserID, ok = strings.CutPrefix(s, revocationsPrefix)
	return chatUserID, ok && Valid(chatUserID)
}

// Progress is where the processes of a consumer are asked what has become of a delivery (core NATS, request and reply).
func Progress(stream, consumer string) string { return "parley.progress." + stream + "." + consumer }

// Skip is where the processes of a consumer are told to give up on a delivery (core NATS, request and reply).
func Skip(stream, consumer string) string { return "parley.skip." + stream + "." + consumer }

// Members is where the replicas of a consumer tell each other that they live (core NATS).
func Members(stream, consumer string) string { return "parley.members." + stream + "." + consumer }

// Position is where it is kept how far a group has handled a partition of a stream.
func Position(stream, group string, partition int) string {
	return "parley.position." + stream + "." + group + "." + strconv.Itoa(partition)
}

// AllPositions is the filter of [Position] for all partitions of a stream; group may be "*".
func AllPositions(stream, group string) string {
	return "parley.position." + stream + "." + group + ".*"
}

// ParseInvalidation returns the kind and the key in the subject of an invalidation.
func ParseInvalidation(s string) (kind, key string, ok bool) {
	rest, ok := strings.CutPrefix(s, invalidationsPrefix)
	if !ok {
		return "", "", false
	}
	kind, key, ok = strings.Cut(rest, ".")
	return kind, key, ok && Valid(kind) && Valid(key)
}

// Hello is the core NATS subject on which the replicas of a service announce themselves to each other.
func Hello(service string) string { return "parley.hello." + service }

// AskOrigins is where a gateway asks the Widget API which origins an application allows.
func AskOrigins(appID string) string { return "parley.ask.origins." + appID }

// Valid reports whether token may stand as one token of a subject.
func Valid(token string) bool {
	return token != "" && !strings.ContainsAny(token, ".*> \t\r\n\x00")
}

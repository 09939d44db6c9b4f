package subject

// NoApplication replaces the application in the subjects of a chat without one.
const NoApplication = "-"

// Sides of a chat.
const (
	SideVisitor = "visitor"
	SideSupport = "support" // bots, agents and company systems
)

// Live events use core NATS: no stream stores them.
const (
	AllVisitorTyping = "chat.typing.visitor.>"
	AllSupportTyping = "chat.typing.support.>"
	AllReadCursors   = "chat.read.*.*.*"
)

// Typing returns the subject of typing indicators in a visitor's chat.
func Typing(side, appID, chatUserID string) string {
	return "chat.typing." + side + "." + appID + "." + chatUserID
}

// ReadCursor returns the subject of read cursor changes in a visitor's chat.
func ReadCursor(side, appID, chatUserID string) string {
	return "chat.read." + side + "." + appID + "." + chatUserID
}

// ReadingRequest returns the subject on which a gateway reads or sets a visitor's read cursor at the Widget
// API (core NATS request).
func ReadingRequest(appID, chatUserID string) string {
	return ReadingRequestPrefix + appID + "." + chatUserID
}

// ReadingRequestPrefix precedes the application and the visitor in [ReadingRequest]; AllReadingRequests matches all of
// its subjects.
const (
	ReadingRequestPrefix = "parley.ask.reading."
	AllReadingRequests   = ReadingRequestPrefix + "*.*"
)

package subject

// NoApplication stands for the application in the subjects of a chat that has none.
const NoApplication = "-"

// Sides of a chat.
const (
	SideVisitor = "visitor"
	SideSupport = "support" // bots, agents and company systems
)

// What happens at this moment passes over core NATS: no stream keeps it.
const (
	AllVisitorTyping = "chat.typing.visitor.>"
	AllSupportTyping = "chat.typing.support.>"
	AllReadCursors   = "chat.read.*.*.*"
)

// Typing is where it is published that somebody writes in a visitor's chat.
func Typing(side, appID, chatUserID string) string {
	return "chat.typing." + side + "." + appID + "." + chatUserID
}

// ReadCursor is where it is published that a side of a visitor's chat has read further.
func ReadCursor(side, appID, chatUserID string) string {
	return "chat.read." + side + "." + appID + "." + chatUserID
}

// AskReading is where a gateway asks the Widget API how far a visitor has read, or tells it (core NATS, a question with an answer).
func AskReading(appID, chatUserID string) string {
	return "parley.ask.reading." + appID + "." + chatUserID
}

// AllReadingQuestions are the subjects of [AskReading].
const AllReadingQuestions = "parley.ask.reading.*.*"

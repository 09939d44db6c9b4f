package nemesis

// Violation is a promise that a record breaks.
type Violation struct {
	Rule      string // the name of a rule of [Rules]
	ChatID    string
	MessageID string // empty: it is about no single message
	Detail    string
	History   []string // what the record has of the message or the chat, by time; only for the first few of each rule
}

// Rule is a promise that a record is checked for.
type Rule struct {
	Name     string
	Sentence string // what holds
}

// Rules returns all rules, in the order in which they are checked.
func Rules() []Rule { return nil }

// Check returns what the record breaks, in the order of [Rules]. It returns none if all promises were kept.
func Check(r *Record) []Violation { return nil }

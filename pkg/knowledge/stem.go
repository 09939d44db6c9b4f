package knowledge

import (
	"strings"
	"unicode/utf8"
)

// stem removes the inflection of a word of English, German, French or Spanish. It does not know which language a word
// has, and need not return a word: it is enough that the forms of a word have one stem, and that words of other
// meanings rarely share it.
func stem(word string) string {
	// Keys, versions and numbers have no inflection.
	if strings.ContainsAny(word, "0123456789") {
		return word
	}
	if base, found := irregular[word]; found {
		word = base
	}
	for _, step := range steps {
		word = removeEnding(word, step)
	}
	return word
}

// ending is an inflection.
type ending struct {
	suffix string
	with   string // what takes its place
	least  int    // characters of what must remain
	notIn  string // letters after which it belongs to the word
	undo   bool   // a consonant was doubled before it
}

// steps are the endings that a word may have one after the other, from its end. At most one of each step is removed.
var steps = [][]ending{
	{
		{suffix: "eaux", with: "eau", least: 2}, // French: bateaux, bateau
		{suffix: "aux", with: "al", least: 4},   // French: journaux, journal
		{suffix: "ies", with: "y", least: 3},    // retries, retry
		{suffix: "s", least: 3, notIn: "sui"},   // status and Redis are no plurals
	},
	{
		{suffix: "ation", with: "at", least: 3}, // rotation, rotate
		{suffix: "ction", with: "ct", least: 2}, // connection, connect
		{suffix: "ption", with: "pt", least: 2},
		{suffix: "etion", with: "et", least: 3},
		{suffix: "ssion", with: "ss", least: 2},
		{suffix: "ied", with: "y", least: 2}, // retried, retry
		{suffix: "ing", least: 3, undo: true},
		{suffix: "eed", with: "eed"},
		{suffix: "ed", least: 3, undo: true},
		{suffix: "en", least: 3, notIn: "aeou"}, // German: Kunden
	},
	{
		{suffix: "e", least: 3},
		{suffix: "y", with: "i", least: 2, notIn: "aeou"}, // with the French and German forms of such words
		{suffix: "ie", with: "i", least: 2},
	},
}

func removeEnding(word string, endings []ending) string {
	for _, e := range endings {
		rest, found := strings.CutSuffix(word, e.suffix)
		if !found {
			continue
		}
		if utf8.RuneCountInString(rest) < e.least || !hasVowel(rest) || strings.ContainsAny(rest[len(rest)-1:], e.notIn) {
			continue
		}
		if e.undo {
			rest = single(rest)
		}
		return rest + e.with
	}
	return word
}

// single removes the doubled consonant of "stopped". Words such as "call", "pass" and "buzz" have theirs of themselves.
func single(word string) string {
	size := len(word)
	if size < 3 || word[size-1] != word[size-2] || strings.IndexByte("aeioulsz", word[size-1]) >= 0 {
		return word
	}
	return word[:size-1]
}

func hasVowel(word string) bool { return strings.ContainsAny(word, "aeiouy") }

// irregular are forms that no rule leads to their base.
var irregular = map[string]string{
	"used": "use", "using": "use", "uses": "use", "lost": "lose", "losing": "lose", "sent": "send", "built": "build",
	"kept": "keep", "chose": "choose", "chosen": "choose", "wrote": "write", "written": "write", "writing": "write",
	"began": "begin", "begun": "begin", "beginning": "begin", "found": "find", "paid": "pay", "bought": "buy",
	"sold": "sell", "forgot": "forget", "forgotten": "forget", "broken": "break", "broke": "break", "came": "come",
	"coming": "come", "went": "go", "gone": "go", "goes": "go", "given": "give", "gave": "give", "took": "take",
	"taken": "take", "said": "say", "saw": "see", "seen": "see", "people": "person", "children": "child", "men": "man",
	"women": "woman", "indices": "index",
}

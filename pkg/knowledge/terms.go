package knowledge

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTerm bounds a term, in bytes. Longer words are keys and hashes, which nobody types.
const maxTerm = 64

// Query is what passages are searched by.
type Query struct {
	Question string
	Words    string // besides the question: synonyms, and the terms of the field
}

// Terms returns the terms of the question and the words.
func (q Query) Terms() []string { return Terms(q.Question + "\n" + q.Words) }

// Terms returns the words of a text as they are searched: in lower case, without accents and inflection, and without
// those that are in every text. The same word of a question and of a passage gives the same term. A term that is in the
// text more than once is returned as often. Terms consist of letters and digits only.
//
// An identifier gives itself, without its separators, and its parts: BOT_WEBHOOK_URL gives "botwebhookurl", "bot",
// "webhook" and "url". A script without spaces between words gives each pair of adjacent characters.
func Terms(text string) []string {
	t := termList{}
	text = fold(text)
	for {
		begin := strings.IndexFunc(text, isLetter)
		if begin < 0 {
			return t.terms
		}
		text = text[begin:]
		first, _ := utf8.DecodeRuneInString(text)
		if isUnspaced(first) {
			end := endOf(text, isUnspaced)
			t.addPairs(text[:end])
			text = text[end:]
		} else {
			end := endOf(text, isIdentifierRune)
			t.addIdentifier(text[:end])
			text = text[end:]
		}
	}
}

// endOf returns the length of the run of runes of one kind that a text begins with.
func endOf(text string, isKind func(rune) bool) int {
	end := strings.IndexFunc(text, func(r rune) bool { return !isKind(r) })
	if end < 0 {
		return len(text)
	}
	return end
}

// fold returns a text without accents and variants of letters. Capitals stay, since they separate parts of identifiers.
func fold(text string) string {
	text = norm.NFKD.String(strings.ToValidUTF8(text, " "))
	text = strings.Map(dropAccent, text)
	// Decomposed letters that have no accent, such as those of Korean, are put together again.
	return letters.Replace(norm.NFC.String(text))
}

// dropAccent removes the marks that people leave out. Those of Thai and of the scripts of India stay: they are vowels.
func dropAccent(r rune) rune {
	switch {
	case r >= 0x0300 && r <= 0x036F, r >= 0x20D0 && r <= 0x20FF, r == 0x3099, r == 0x309A: // accents, Japanese voicing
		return -1
	case r >= 0x0591 && r <= 0x05C7, r >= 0x064B && r <= 0x065F, r == 0x0670: // Hebrew and Arabic points
		return -1
	case r >= 0xFE00 && r <= 0xFE0F, r == 0x200C, r == 0x200D: // variation selectors, joiners
		return -1
	}
	return r
}

// letters are those that have no decomposition in Unicode, and are written with others on a keyboard without them.
var letters = strings.NewReplacer("ß", "ss", "ẞ", "ss", "æ", "ae", "Æ", "ae", "œ", "oe", "Œ", "oe", "ø", "o", "Ø", "o",
	"ł", "l", "Ł", "l", "đ", "d", "Đ", "d", "ð", "d", "Ð", "d", "þ", "th", "Þ", "th", "ı", "i", "ς", "σ", "’", "'")

// isUnspaced reports whether a rune is of a script that has no spaces between words, or, as Korean, adds endings to
// them.
func isUnspaced(r rune) bool {
	if r < 0x0E00 { // Thai is the first of them
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar) && isLetter(r)
}

// isLetter reports whether a rune is part of a word: numbers and the marks of letters are, too.
func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// isIdentifierRune reports whether a rune belongs to a word or joins its parts.
func isIdentifierRune(r rune) bool {
	return isJoiner(r) || (isLetter(r) && !isUnspaced(r))
}

func isJoiner(r rune) bool { return r == '_' || r == '-' || r == '\'' }

type termList struct {
	terms []string
}

// addIdentifier adds a word, or an identifier as a whole and its parts.
func (t *termList) addIdentifier(text string) {
	var whole strings.Builder
	parts := 0
	for part := range strings.FieldsFuncSeq(text, isJoiner) {
		parts++
		whole.WriteString(part)
	}
	if strings.Contains(text, "'") {
		// A contraction or an elision, as in "don't" and "l'adresse": the whole is no word.
		parts = 0
	}
	if parts > 1 {
		t.addWord(whole.String())
	}
	for part := range strings.FieldsFuncSeq(text, isJoiner) {
		t.addCamelCase(part, parts != 1)
	}
}

// addCamelCase adds a word, and its parts if it has capitals inside, such as "isFromSupport" and "HTTPServer".
func (t *termList) addCamelCase(text string, isPart bool) {
	words := humps(text)
	if len(words) > 1 || !isPart || utf8.RuneCountInString(text) > 1 {
		t.addWord(text)
	}
	if len(words) == 1 {
		return
	}
	for _, word := range words {
		if len(word) > 1 {
			t.addWord(word)
		}
	}
}

// humps splits a word before its capitals: each after a small letter, and the last of several.
func humps(text string) []string {
	var words []string
	begin := 0
	runes := []rune(text)
	at := 0
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			afterSmall := unicode.IsLower(runes[i-1])
			beforeSmall := i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])
			if afterSmall || beforeSmall {
				words = append(words, text[begin:at])
				begin = at
			}
		}
		at += utf8.RuneLen(r)
	}
	return append(words, text[begin:])
}

func (t *termList) addWord(word string) {
	word = truncate(strings.ToLower(word), maxTerm)
	if word == "" || stopWords[word] {
		return
	}
	t.terms = append(t.terms, stem(word))
}

// addPairs adds each pair of adjacent characters, or the only one.
func (t *termList) addPairs(text string) {
	runes := []rune(text)
	if len(runes) == 1 {
		t.terms = append(t.terms, text)
		return
	}
	for i := range len(runes) - 1 {
		t.terms = append(t.terms, string(runes[i:i+2]))
	}
}

// words makes a set from words that are separated by spaces.
func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// stopWords are those of English, German, French and Spanish that have no meaning of their own. Words that mean
// something in one of the other languages or in a product are left out.
var stopWords = words(`
a about am an and any are as at be been being but by can cannot could did didn do does doesn doing don for from had
has hasn have haven having he her here hers him his how i if in into is isn it its ll me mine my no nor not of on or
our ours shall she should shouldn so some such than that the their theirs them then there these they this those to too
ve very was wasn we were weren what when where which while who whom whose why will with won would wouldn you your
yours re
aber als am auch auf aus bei bin bis da damit das dass dein deine dem den denn der des dich die dir doch du durch ein
eine einem einen einer eines er es euch euer fur hab habe haben hat hatte ich ihm ihn ihnen ihr ihre ihren im ist ja
kann kein keine mein meine mich mir mit nach nicht noch nur ob oder sich sie sind so uber um und uns unser unsere vom
von vor wann warum was wegen weil welche welcher welches wenn wer wie wieso wir wird wo wurde zu zum zur
au aux avec ce ces cet cette comment dans de des du elle elles en est et eu il ils je la le les leur leurs lui ma mais
me mes moi mon ne nos notre nous ont ou par pas pour pourquoi quand que quel quelle quelles quels qui sa se ses si son
sont sur ta te tes toi ton tu un une vos votre vous
al como con cual cuales cuando cuanto de del donde el ella ellas ellos en es esa ese eso esta estan este esto estoy
fue ha hay la las le lo los me mi mis muy nos o para pero por porque puede puedo que quien se ser si sin sobre son soy
su sus te tengo tiene tu tus un una y ya yo`)

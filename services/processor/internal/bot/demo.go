package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// Demo is the built-in bot. It shows every message type that a bot is likely to use. It has no state: the
// same message has the same answer.
type Demo struct {
	picture *picture      // nil: not served
	pause   time.Duration // between two words of a streamed answer
}

// demoPause is the typing speed of the demo bot.
const demoPause = 70 * time.Millisecond

// NewDemo returns the demo bot. assetsURL is the address under which [Assets] are served; if it is empty, the
// bot answers that it has no picture.
func NewDemo(assetsURL string) *Demo {
	if assetsURL == "" {
		return &Demo{pause: demoPause}
	}
	p := newPicture(assetsURL)
	return &Demo{picture: &p, pause: demoPause}
}

// Forget implements [Answerer]. The demo bot has no state.
func (d *Demo) Forget(string) {}

// input holds the members of a visitor's data that the demo bot reads.
type input struct {
	Text     string `json:"text"`
	Payload  string `json:"payload"`
	FileName string `json:"fileName"`
	Size     int64  `json:"size"`
	Caption  string `json:"caption"`
}

// Answer implements [Answerer].
func (d *Demo) Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) (Result, error) {
	var s input
	if err := json.Unmarshal(e.Message.Data, &s); err != nil {
		return Result{}, apperr.New(apperr.Invalid, "MALFORMED_DATA", "The message's data is malformed").Wrap(err)
	}
	switch {
	case s.Payload == choiceStream, s.Payload == "" && keyword(s.Text) == "stream":
		return d.stream(ctx, begin)
	case s.Payload != "":
		return says(d.choice(s, e)), nil
	case s.Text != "":
		return d.text(s.Text, e), nil
	}
	return says(text(describeFile(s, e.Message.Type)), d.menu("What would you like to see next?")), nil
}

// text answers a typed text.
func (d *Demo) text(typed string, e event.VisitorMessageAccepted) Result {
	switch keyword(typed) {
	case "menu", "help", "start", "?":
		return says(d.menu("Here is what I can show you."))
	case "hello", "hi", "hey", "hallo", "good morning", "good evening":
		return says(text(greeting(e.Message.NameOfSender)), d.menu("Here is what I can show you."))
	case "picture", "image", "photo":
		return says(d.showPicture())
	case "cards", "carousel":
		return says(d.showCards())
	case "time":
		return says(tellTime(e))
	case "agent", "human", "person":
		result := says(text("I will ask a colleague to take over."))
		result.Handover = byBot("Asked for a person", "The visitor wrote: "+shorten(strings.TrimSpace(typed), 200))
		return result
	case "thanks", "thank you":
		return says(text("You are welcome."))
	case "bye", "goodbye":
		return says(text("Goodbye! This chat stays here for when you come back."))
	}
	return says(text(describeText(typed)))
}

// The payloads of the demo bot's choices and buttons.
const (
	choicePicture = "show-picture"
	choiceCards   = "show-cards"
	choiceTime    = "tell-time"
	choiceMenu    = "show-menu"
	choiceStream  = "show-stream"
	cardCompany   = "card-company"
	cardPush      = "card-push"
	cardBot       = "card-bot"
)

// choice answers a choice or button by its payload; its title is only a label.
func (d *Demo) choice(s input, e event.VisitorMessageAccepted) Answer {
	switch s.Payload {
	case choicePicture:
		return d.showPicture()
	case choiceCards:
		return d.showCards()
	case choiceTime:
		return tellTime(e)
	case choiceMenu:
		return d.menu("Here is what I can show you.")
	case cardCompany:
		return text("A company's own system writes into this chat with POST /message/send of the Client API.")
	case cardPush:
		return text("Outside of the 24-hour window a company reaches a phone number with POST /push-message.")
	case cardBot:
		return text("Set BOT=webhook to let a server of yours answer in my place, or read the stream INBOUND yourself.")
	}
	return d.menu(fmt.Sprintf("I do not know the choice %q. Here is what I can show you.", shorten(s.Payload, 60)))
}

func (d *Demo) showPicture() Answer {
	if d.picture == nil {
		return text("I have no picture here: ASSETS_URL is not set.")
	}
	return newAnswer(chat.Image, d.picture)
}

// demoText is the Markdown that the demo bot streams word by word.
const demoText = "This answer comes **word by word**, as that of a *language model* would: " +
	"the bot publishes what it has so far some sixteen times a second, " +
	"and the gateway passes it on as the event `message.part`. " +
	"You can **stop me** at any time, and what I have written until then stays. " +
	"When I am done, the whole text follows as an ordinary message, and only that is kept in the history. 👋"

// stream streams [demoText].
func (d *Demo) stream(ctx context.Context, begin Begin) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	words := strings.SplitAfter(demoText, " ")
	return show(ctx, cancel, begin, defaultSilence, func() (piece, error) {
		if len(words) == 0 {
			return piece{}, io.EOF
		}
		select {
		case <-ctx.Done():
			return piece{}, ctx.Err()
		case <-time.After(d.pause):
		}
		word := words[0]
		words = words[1:]
		return piece{text: word}, nil
	})
}

type choiceData struct {
	Title   string `json:"title"`
	Payload string `json:"payload"`
}

type menuData struct {
	Text    string       `json:"text"`
	Choices []choiceData `json:"choices"`
}

func (d *Demo) menu(text string) Answer {
	choices := []choiceData{
		{Title: "Show me cards", Payload: choiceCards},
		{Title: "What time is it?", Payload: choiceTime},
		{Title: "Write while you think", Payload: choiceStream},
	}
	if d.picture != nil {
		choices = append([]choiceData{{Title: "Show me a picture", Payload: choicePicture}}, choices...)
	}
	return newAnswer(chat.MultipleChoice, menuData{Text: text, Choices: choices})
}

type cardsData struct {
	Cards []cardData `json:"cards"`
}

type cardData struct {
	Title    string       `json:"title"`
	Subtitle string       `json:"subtitle,omitempty"`
	ImageURL string       `json:"imageUrl,omitempty"`
	Buttons  []buttonData `json:"buttons"`
}

type buttonData struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Payload string `json:"payload"`
}

func (d *Demo) showCards() Answer {
	more := func(payload string) []buttonData {
		return []buttonData{
			{Type: "reply", Title: "Tell me more", Payload: payload},
			{Type: "reply", Title: "Menu", Payload: choiceMenu},
		}
	}
	var imageURL string
	if d.picture != nil {
		imageURL = d.picture.URL
	}
	return newAnswer(chat.Carousel, cardsData{Cards: []cardData{
		{
			Title:    "Company messages",
			Subtitle: "Into a chat that is open",
			ImageURL: imageURL,
			Buttons:  more(cardCompany),
		},
		{Title: "Push messages", Subtitle: "Through an approved template", Buttons: more(cardPush)},
		{Title: "Your own bot", Subtitle: "A webhook, or a reader of the stream", Buttons: more(cardBot)},
	}})
}

func tellTime(e event.VisitorMessageAccepted) Answer {
	return text("Your message came at " + e.Message.CreatedAt.UTC().Format("15:04:05") + " UTC.")
}

func greeting(name string) string {
	if name == "" || name == (chat.Visitor{}).Name() {
		return "Hello! Nice to meet you."
	}
	return "Hello " + shorten(name, 60) + "! Nice to meet you."
}

// describeText describes a text, which proves that the bot has read it.
func describeText(typed string) string {
	words := len(strings.Fields(typed))
	noun := "words"
	if words == 1 {
		noun = "word"
	}
	kind := "You wrote"
	if strings.HasSuffix(strings.TrimSpace(typed), "?") {
		kind = "You asked"
	}
	return fmt.Sprintf(
		"%s “%s” (%d %s). Write “menu” to see what I can show you.", kind,
		shorten(strings.TrimSpace(typed), 200), words, noun,
	)
}

func describeFile(s input, t chat.MessageType) string {
	name := s.FileName
	if name == "" {
		name = "your " + strings.ToLower(string(t))
	}
	if s.Caption != "" {
		return fmt.Sprintf("I got %s (%d bytes): “%s”.", shorten(name, 100), s.Size, shorten(s.Caption, 100))
	}
	return fmt.Sprintf("I got %s (%d bytes).", shorten(name, 100), s.Size)
}

// keyword normalises a text for comparison: lower case, without surrounding punctuation.
func keyword(typed string) string {
	trimmed := strings.ToLower(strings.TrimSpace(typed))
	punctuation := func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) }
	if bare := strings.TrimFunc(trimmed, punctuation); bare != "" {
		return bare
	}
	return trimmed
}

// shorten returns s, cut after limit runes.
func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}

func text(s string) Answer {
	return newAnswer(chat.Text, struct {
		Text string `json:"text"`
	}{s})
}

// TextData is the data of a TEXT message.
func TextData(s string) json.RawMessage { return text(s).Data }

// newAnswer encodes data, which is always a struct of this package.
func newAnswer(t chat.MessageType, data any) Answer {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic("bot: an answer does not encode: " + err.Error())
	}
	return Answer{Type: t, Data: encoded}
}

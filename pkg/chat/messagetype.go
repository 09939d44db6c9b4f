package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// This file holds what differs between the types of messages: which sides send them, the rules for their data, and
// what of the data is text. data.go applies the rules.

// MessageType is the type of a message (spec, "Message type enumeration").
type MessageType string

const (
	Text                MessageType = "TEXT"
	Image               MessageType = "IMAGE"
	Video               MessageType = "VIDEO"
	Audio               MessageType = "AUDIO"
	File                MessageType = "FILE"
	MultipleChoice      MessageType = "MULTIPLE_CHOICE"
	MultipleChoiceReply MessageType = "MULTIPLE_CHOICE_REPLY"
	Interactive         MessageType = "INTERACTIVE"
	Carousel            MessageType = "CAROUSEL"
	Template            MessageType = "TEMPLATE"
)

// CompanyTypes returns the types that a company may send with POST /message/send.
func CompanyTypes() []MessageType {
	return []MessageType{Text, Image, Video, Audio, File, MultipleChoice, Interactive, Carousel}
}

// VisitorTypes returns the types that a visitor may send as JSON with POST /message.
func VisitorTypes() []MessageType { return []MessageType{Text, MultipleChoiceReply} }

// JoinTypes lists the types, separated by commas, in an error message.
func JoinTypes(types []MessageType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// FromSupport reports whether a bot, an agent or a company system may send a message of type t to a visitor.
func (t MessageType) FromSupport() bool {
	return t == Template || t.In(CompanyTypes())
}

// IsFile reports whether t is the type of a file.
func (t MessageType) IsFile() bool { return t.In([]MessageType{Image, Video, Audio, File}) }

// In reports whether t is one of types.
func (t MessageType) In(types []MessageType) bool { return slices.Contains(types, t) }

// TextOf returns what a person reads of a message's data: its text, caption or body, or the titles of its cards. It is
// empty if there is none, as in a file without a caption. Models, searches and operators see messages by it.
func TextOf(data json.RawMessage) string {
	var d struct {
		Text, Caption, Body string
		Cards               []struct{ Title string }
	}
	_ = json.Unmarshal(data, &d) // a member of another form than that of the rules stays empty
	var titles []string
	for _, card := range d.Cards {
		titles = append(titles, card.Title)
	}
	return cmp.Or(d.Text, d.Caption, d.Body, strings.Join(titles, ", "))
}

// rulesOf returns the rules for the data of a type; nil: unknown type, or any data.
func rulesOf(t MessageType) []rule {
	switch t {
	case Text:
		return []rule{
			{name: "text", required: true, shape: fullText, max: MaxTextLength},
			{name: "payload", max: MaxPayloadLength},
			{name: "format", shape: textFormat, max: MaxLabelLength},
		}
	case Image, Video, Audio, File:
		return mediaRules()
	case MultipleChoice:
		return []rule{
			{name: "text", required: true, shape: fullText, max: MaxTextLength},
			{name: "choices", required: true, shape: objects, max: MaxChoices, items: choiceRules},
		}
	case MultipleChoiceReply:
		return []rule{
			{name: "text", required: true, shape: fullText, max: MaxTextLength},
			{name: "payload", required: true, shape: fullText, max: MaxPayloadLength},
			{name: "replyTo", max: MaxLabelLength},
		}
	case Interactive:
		return []rule{
			{name: "header", max: MaxLabelLength},
			{name: "body", required: true, shape: fullText, max: MaxTextLength},
			{name: "footer", max: MaxLabelLength},
			buttonsRule(),
		}
	case Carousel:
		return []rule{{name: "cards", required: true, shape: objects, max: MaxCards, items: cardRules}}
	case Template:
		return []rule{
			{name: "templateId", required: true, shape: fullText, max: MaxLabelLength},
			{name: "name", required: true, max: MaxLabelLength},
			{name: "text", required: true, max: MaxTextLength},
			{name: "parameters", shape: anyObject},
		}
	}
	return nil
}

func mediaRules() []rule {
	return []rule{
		{name: "url", required: true, shape: webURL, max: MaxURLLength},
		{name: "mime", max: MaxLabelLength},
		{name: "path", max: MaxURLLength},
		{name: "size", shape: wholeNumber},
		{name: "caption", max: MaxTextLength},
		{name: "fileName", max: MaxLabelLength},
		{name: "extension", max: MaxLabelLength},
	}
}

func titleRule() rule {
	return rule{name: "title", required: true, shape: fullText, max: MaxLabelLength}
}

func payloadRule() rule {
	return rule{name: "payload", required: true, shape: fullText, max: MaxPayloadLength}
}

func choiceRules() []rule { return []rule{titleRule(), payloadRule()} }

func cardRules() []rule {
	return []rule{
		titleRule(),
		{name: "subtitle", max: MaxLabelLength},
		{name: "imageUrl", shape: webURL, max: MaxURLLength},
		buttonsRule(),
	}
}

func buttonsRule() rule {
	return rule{name: "buttons", shape: objects, max: MaxButtons, variants: buttonRules}
}

func buttonRules(kind string) []rule {
	switch kind {
	case "reply":
		return []rule{titleRule(), payloadRule()}
	case "url":
		return []rule{titleRule(), {name: "url", required: true, shape: webURL, max: MaxURLLength}}
	case "phone":
		return []rule{titleRule(), {name: "phone", required: true, shape: phoneNumber, max: MaxPhoneLength}}
	}
	return nil
}

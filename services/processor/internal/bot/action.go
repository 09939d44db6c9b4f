package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// Actions stores the calls of tools that visitors are asked about; see [store.BotActions].
type Actions interface {
	AddBotAction(ctx context.Context, a bots.Action) (bots.Action, error)
	BotAction(ctx context.Context, id string) (bots.Action, error)
	MoveBotAction(ctx context.Context, a bots.Action, from bots.ActionState) error
}

// questionIndex gives a question an id that no answer and no failure text has.
const questionIndex = failureIndex + 1

// Payloads of the buttons below a question, before the id of the action.
const (
	agreePayload   = "parley/agree/"
	declinePayload = "parley/decline/"
)

// What the model is told of an action, instead of a result.
const (
	toldDeclined  = "The visitor has declined. Nothing was done."
	toldLate      = "The visitor has agreed too late. Nothing was done."
	toldForbidden = "The company does not allow this any more. Nothing was done."
	toldTest      = "This is a test: nothing was done."
	toldUnknown   = "It is not known whether this was done, because the call broke off. It is not repeated. Tell the visitor " +
		"so, and offer a person."
	toldRepeat = "This was done when the visitor agreed the first time, and is not repeated. "
)

// askVisitor asks the visitor whether a tool may change something. A redelivery asks what was asked first.
func (b *toolbox) askVisitor(ctx context.Context, o offer, arguments string) (refused string, err error) {
	began := b.llm.now()
	object, _ := objectOf(arguments)
	text, ok := questionOf(o.allowed.Question, object)
	if !ok {
		return "The arguments are too long to be shown to the visitor, so this cannot be done.", nil
	}
	e := b.event
	a := bots.Action{
		ID: chat.AnswerID(e.Message.ID, questionIndex), CompanyID: e.CompanyID, AppID: e.AppID, ChatID: e.ChatID,
		ChatUserID: e.ChatUserID, ConnectionID: o.connectionID, Tool: o.allowed.Name, Arguments: arguments,
		Question: text, AskedAt: began.UTC(), State: bots.ActionAsked,
	}
	if !b.x.target.test {
		a, err = b.llm.cfg.Actions.AddBotAction(ctx, a)
		if err != nil {
			return "", fmt.Errorf("storing what the visitor is asked: %w", err)
		}
	}
	b.x.asked = &a
	b.log(bots.ToolUse{Name: a.Tool, Arguments: a.Arguments, Outcome: bots.ToolAsked, Result: a.Question}, began)
	return "", nil
}

// questionOf returns a question with the arguments of its call: those that it names in their places, the others below
// it, so that the visitor agrees to nothing unseen. It reports false if it is longer than a message.
func questionOf(question string, arguments map[string]any) (string, bool) {
	var below strings.Builder
	var places []string
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		value := shownValue(arguments[name])
		place := "{" + name + "}"
		if strings.Contains(question, place) {
			places = append(places, place, value)
			continue
		}
		fmt.Fprintf(&below, "\n%s: %s", shownValue(name), value)
	}
	text := strings.NewReplacer(places...).Replace(question)
	if below.Len() > 0 {
		text += "\n" + below.String()
	}
	return text, utf8.RuneCountInString(text) <= chat.MaxTextLength
}

// shownValue returns a value of JSON on one line.
func shownValue(value any) string {
	text, ok := value.(string)
	if !ok {
		encoded, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		text = string(encoded)
	}
	visible := func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}
	return strings.Join(strings.Fields(strings.Map(visible, text)), " ")
}

// asking returns the message that asks about an action.
func asking(a bots.Action, s bots.ToolSettings) Answer {
	type button struct {
		Type    string `json:"type"`
		Title   string `json:"title"`
		Payload string `json:"payload"`
	}
	question := newAnswer(chat.Interactive, struct {
		Body    string   `json:"body"`
		Buttons []button `json:"buttons"`
	}{a.Question, []button{
		{"reply", cmp.Or(s.Agree, bots.DefaultAgree), agreePayload + a.ID},
		{"reply", cmp.Or(s.Decline, bots.DefaultDecline), declinePayload + a.ID},
	}})
	question.number = questionIndex
	return question
}

// decision is what a visitor has decided about an action.
type decision struct {
	id     string
	agreed bool
}

// decisionOf returns the decision that a message is; ok is false if it is another message.
func decisionOf(m chat.Message) (d decision, ok bool) {
	if m.Type != chat.MultipleChoiceReply {
		return d, false
	}
	var reply struct{ Payload string }
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return d, false
	}
	d.id, d.agreed = strings.CutPrefix(reply.Payload, agreePayload)
	if d.agreed {
		return d, true
	}
	d.id, ok = strings.CutPrefix(reply.Payload, declinePayload)
	return d, ok
}

// decide carries out what the visitor has agreed to, once, and tells the model what came of it.
func (b *toolbox) decide(ctx context.Context) error {
	d, ok := decisionOf(b.event.Message)
	if !ok || b.x.decided {
		return nil
	}
	a, err := b.llm.cfg.Actions.BotAction(ctx, d.id)
	if apperr.Is(err, apperr.NotFound) || err == nil && !isOf(a, b.event) {
		return nil // a button of somebody else, or an old one: the model reads its title
	}
	if err != nil {
		return fmt.Errorf("finding what the visitor was asked: %w", err)
	}
	told, err := b.carryOut(ctx, a, d.agreed)
	if err != nil {
		return err
	}
	call := functionCall{ID: "call_" + a.ID, Type: "function"}
	call.Function.Name = functionName(a.Tool)
	call.Function.Arguments = a.Arguments
	b.x.messages = append(b.x.messages,
		completionMessage{Role: bots.RoleAssistant, ToolCalls: []functionCall{call}},
		completionMessage{Role: roleTool, Content: told, ToolCallID: call.ID},
	)
	b.x.decided = true
	return nil
}

// isOf reports whether an action was asked in the chat of a message.
func isOf(a bots.Action, e event.VisitorMessageAccepted) bool {
	return a.CompanyID == e.CompanyID && a.AppID == e.AppID && a.ChatID == e.ChatID && a.ChatUserID == e.ChatUserID
}

// carryOut calls the tool of an action that the visitor has agreed to, and returns what the model is told. The state in
// the store decides, before the call, which message and which process makes it: a call that broke off is not repeated.
func (b *toolbox) carryOut(ctx context.Context, a bots.Action, agreed bool) (told string, err error) {
	refuse := func(told string) (string, error) {
		b.log(bots.ToolUse{Name: a.Tool, Arguments: a.Arguments, Outcome: bots.ToolRefused, Result: told}, b.llm.now())
		return told, nil
	}
	allowed, ok := b.x.target.model.Tools.Allows(a.ConnectionID, a.Tool)
	isLate := b.event.Message.CreatedAt.Sub(a.AskedAt) > bots.ActionValid
	switch {
	case b.x.target.test:
		return refuse(toldTest)
	case a.State == bots.ActionRunning:
		b.log(bots.ToolUse{Name: a.Tool, Arguments: a.Arguments, Outcome: bots.ToolUnknown}, b.llm.now())
		return toldUnknown, nil
	case a.State == bots.ActionDone && a.By == b.event.Message.ID:
		return a.Result, nil
	case a.State == bots.ActionDone:
		return toldRepeat + a.Result, nil
	case a.State == bots.ActionDeclined, !agreed:
		if err := b.move(ctx, a, bots.ActionDeclined); err != nil {
			return "", err
		}
		return refuse(toldDeclined)
	case isLate:
		return refuse(toldLate)
	case !ok || allowed.Effect != bots.Changes:
		return refuse(toldForbidden)
	}
	if err := b.move(ctx, a, bots.ActionRunning); err != nil {
		return "", err
	}
	a.State, a.By = bots.ActionDone, b.event.Message.ID
	a.Result, a.Failed = b.call(ctx, a.ConnectionID, a.Tool, a.Arguments)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = b.llm.cfg.Actions.MoveBotAction(ending, a, bots.ActionRunning) // if it is not stored, a repeat says "not known"
	return a.Result, nil
}

// move moves an action from the state in which the visitor was asked. An error lets the message be tried again.
func (b *toolbox) move(ctx context.Context, a bots.Action, to bots.ActionState) error {
	if a.State == to {
		return nil
	}
	a.State, a.By = to, b.event.Message.ID
	if err := b.llm.cfg.Actions.MoveBotAction(ctx, a, bots.ActionAsked); err != nil {
		return fmt.Errorf("storing what the visitor has decided: %w", err)
	}
	return nil
}

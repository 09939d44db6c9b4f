package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// actionRotateBot changes nothing that the audit log shows.
const actionRotateBot = "bot.rotate"

// settingsFields are settings of a bot in the audit log. They have no secrets: those belong to the bot and to the
// connection.
func settingsFields(s bots.Settings) fields {
	f := fields{"kind": s.Kind, "failureText": s.FailureText, "handover": s.Handover}
	switch s.Kind {
	case bots.Webhook:
		f["url"] = shownURL(s.Webhook.URL)
		f["deadlineSeconds"] = s.Webhook.DeadlineSeconds
	case bots.Model:
		f["model"] = s.Model
	}
	return f
}

// Bot returns the bot of an application: an unchanged one if it has none. Errors: NotFound (no such application).
func (s *Service) Bot(ctx context.Context, appID string) (bots.Bot, error) {
	b, err := s.store.Bot(ctx, appID)
	if !apperr.Is(err, apperr.NotFound) {
		return b, err
	}
	a, err := s.store.Application(ctx, appID)
	return bots.Bot{AppID: a.ID, CompanyID: a.CompanyID, Draft: bots.Settings{Kind: bots.Default}}, err
}

// AnyRevision is the revision for changes that do not depend on the current one.
const AnyRevision int64 = -1

// changeBot applies a change to the stored bot of an application and returns the result. PRECONDITION_FAILED if the
// bot has another revision than the given one.
func (s *Service) changeBot(
	ctx context.Context, by Actor, appID, action string, revision int64,
	apply func(*bots.Bot) (before, after fields, err error),
) (b bots.Bot, err error) {
	for range changeAttempts {
		b, err = s.Bot(ctx, appID)
		if err != nil {
			return b, err
		}
		if revision != AnyRevision && revision != b.Revision {
			return b, apperr.PreconditionFailed.WithMessage("Somebody else has changed the bot meanwhile")
		}
		before, after, err := apply(&b)
		if err != nil {
			return b, err
		}
		err = s.store.PutBot(ctx, b)
		if apperr.Is(err, apperr.Conflict) {
			continue
		}
		if err != nil {
			return b, err
		}
		b.Revision++
		if err := s.bus.RPC().Invalidate(ctx, store.CachedBot, appID); err != nil {
			return b, err
		}
		return b, s.audit(ctx, by, change{
			companyID: b.CompanyID, action: action, target: "application", id: appID, before: before, after: after,
			hidden: action == actionRotateBot,
		})
	}
	return b, err
}

// SetBotDraft replaces the draft of an application's bot that has the revision, or [AnyRevision]. It answers nobody
// before it is published. Errors: Invalid; PRECONDITION_FAILED for another revision.
func (s *Service) SetBotDraft(
	ctx context.Context, by Actor, appID string, revision int64, draft bots.Settings,
) (bots.Bot, error) {
	return s.changeBot(ctx, by, appID, "bot.draft", revision, func(b *bots.Bot) (before, after fields, err error) {
		before = settingsFields(b.Draft)
		b.Draft = draft
		return before, settingsFields(draft), s.checkSettings(ctx, b.CompanyID, draft)
	})
}

// checkSettings returns Invalid for settings that an application of the company cannot have.
func (s *Service) checkSettings(ctx context.Context, companyID string, settings bots.Settings) error {
	if err := settings.Check(); err != nil {
		return err
	}
	if settings.Kind != bots.Model {
		return nil
	}
	var f apperr.Fields
	for i, id := range settings.Model.Connections() {
		c, err := s.store.ModelConnection(ctx, id)
		switch {
		case apperr.Is(err, apperr.NotFound), err == nil && c.CompanyID != companyID:
			f.Add(connectionField(i), "must be a connection of the company")
		case err != nil:
			return err
		}
	}
	return f.Err()
}

// connectionField returns the field of a connection of [bots.ModelSettings.Connections].
func connectionField(i int) string {
	if i == 0 {
		return "model.connectionId"
	}
	return fmt.Sprintf("model.tools.servers[%d].connectionId", i-1)
}

// Publication is what [Service.PublishBot] puts in force.
type Publication struct {
	Revision  int64 // of the bot, or [AnyRevision]
	Number    int   // of an earlier version; 0: the draft
	Unchecked bool  // its server is not asked whether it answers
}

// settings returns what is put in force of a bot.
func (p Publication) settings(b bots.Bot) (bots.Settings, error) {
	if p.Number == 0 {
		return b.Draft, nil
	}
	v, found := b.Version(p.Number)
	if !found {
		return bots.Settings{}, apperr.BotVersionNotFound.New()
	}
	return v.Settings, nil
}

// PublishBot puts the draft in force, or an earlier version. Questions that are being answered end with the version that
// they began with. It returns the secret of a bot that calls the company's server for the first time, which is shown
// once; else nil. Errors: Invalid, also if the server does not answer; NotFound with the reason BOT_VERSION_NOT_FOUND;
// PRECONDITION_FAILED for another revision; Unavailable if no processor can ask the server.
func (s *Service) PublishBot(
	ctx context.Context, by Actor, appID string, p Publication,
) (b bots.Bot, fresh *webhook.Secret, err error) {
	b, err = s.changeBot(ctx, by, appID, "bot.publish", p.Revision, func(b *bots.Bot) (before, after fields, err error) {
		next, err := p.settings(*b)
		if err != nil {
			return nil, nil, err
		}
		if err := s.checkSettings(ctx, b.CompanyID, next); err != nil {
			return nil, nil, err
		}
		if !p.Unchecked {
			if err := s.probe(ctx, *b, next); err != nil {
				return nil, nil, err
			}
		}
		before = versionFields(b.InForce())
		fresh = b.Publish(next, by.Name, store.UTC(s.now()))
		return before, versionFields(b.InForce()), nil
	})
	return b, fresh, err
}

// probe returns Invalid if the company's server of the settings does not answer.
func (s *Service) probe(ctx context.Context, b bots.Bot, next bots.Settings) error {
	if next.Kind != bots.Webhook && next.Kind != bots.Model {
		return nil
	}
	call, err := s.bus.RPC().TestBot(ctx, bots.Test{
		CompanyID: b.CompanyID, AppID: b.AppID, ChatUserID: chat.NewID(), Settings: next, Probe: true,
	})
	if err != nil || call.Failure == nil {
		return err
	}
	if call.Failure.Field != "" {
		return apperr.Fields{{Name: call.Failure.Field, Message: "did not pass the test. " + call.Failure.Message}}.Err()
	}
	f := apperr.Fields{{Name: "webhook.url", Message: "did not pass the test. " + call.Failure.Message}}
	if next.Kind == bots.Model {
		f[0].Name = "model.connectionId"
		if slices.Contains([]string{"LLM_NOT_FOUND", "LLM_REFUSED"}, call.Failure.Reason) {
			f[0].Name = "model.model"
		}
	}
	return f.Err()
}

// BotQuestion is a question of [Service.TestBot].
type BotQuestion struct {
	Settings bots.Settings `json:"settings"`
	// Conversation is made up and ends with a turn of the user; or MessageID is a visitor's message of the application.
	Conversation []bots.Turn `json:"conversation"`
	MessageID    string      `json:"messageId"`
}

// maxTurns bounds the conversation of a [BotQuestion].
const maxTurns = 40

// TestBot asks settings, which need not be stored, a question, and returns the call, also one that has failed. No
// visitor sees anything. Errors: Invalid; NotFound with the reason MESSAGE_NOT_FOUND; Unavailable.
func (s *Service) TestBot(
	ctx context.Context, by Actor, app chat.Application, q BotQuestion,
) (c bots.Call, err error) {
	if err := q.check(); err != nil {
		return c, err
	}
	if err := s.checkSettings(ctx, app.CompanyID, q.Settings); err != nil {
		return c, err
	}
	t := bots.Test{CompanyID: app.CompanyID, AppID: app.ID, Settings: q.Settings}
	if q.MessageID != "" {
		err = s.askAgain(ctx, &t, q.MessageID)
	} else {
		err = s.makeUp(&t, by, q.Conversation)
	}
	if err != nil {
		return c, err
	}
	return s.bus.RPC().TestBot(ctx, t)
}

func (q BotQuestion) check() error {
	var f apperr.Fields
	turns := len(q.Conversation)
	if (turns == 0) == (q.MessageID == "") {
		f.Add("conversation", "must be given, or messageId, and not both")
	}
	if turns > maxTurns || turns > 0 && q.Conversation[turns-1].Role != bots.RoleUser {
		f.Add("conversation", "must have at most 40 turns, and end with one of the user")
	}
	for i, turn := range q.Conversation {
		if turn.Role != bots.RoleUser && turn.Role != bots.RoleAssistant {
			f.Add(fmt.Sprintf("conversation[%d].role", i), "must be user or assistant")
		}
	}
	return f.Err()
}

// askAgain takes the question of a visitor's message.
func (s *Service) askAgain(ctx context.Context, t *bots.Test, messageID string) error {
	chatID, m, err := s.store.FindMessage(ctx, messageID)
	if err != nil {
		return err
	}
	of, err := s.store.Chat(ctx, chatID)
	if err != nil {
		return err
	}
	if of.AppID != t.AppID || m.IsFromSupport {
		return apperr.MessageNotFound.New()
	}
	t.ChatID, t.ChatUserID, t.Message = of.ID, of.ChatUserID, m
	return nil
}

// makeUp takes the question of a conversation.
func (s *Service) makeUp(t *bots.Test, by Actor, conversation []bots.Turn) error {
	last := len(conversation) - 1
	data, err := json.Marshal(map[string]string{"text": conversation[last].Text})
	if err != nil {
		return err
	}
	if faults := chat.ValidateData(chat.Text, data); len(faults) > 0 {
		return apperr.Fields{{Name: fmt.Sprintf("conversation[%d].text", last), Message: faults[0].Message}}.Err()
	}
	t.Made = true
	t.Before = conversation[:last]
	t.ChatID, t.ChatUserID = chat.NewID(), cmp.Or(by.UserID, chat.NewID())
	t.Message = chat.Message{ID: chat.NewID(), CreatedAt: store.UTC(s.now()), Type: chat.Text, Data: data}
	return nil
}

func versionFields(v bots.Version) fields {
	f := settingsFields(v.Settings)
	f["version"] = v.Number
	return f
}

// RotateBotSecret creates a new secret for the requests to the company's server, and returns it. Earlier secrets also
// sign during the overlap.
func (s *Service) RotateBotSecret(
	ctx context.Context, by Actor, appID string, overlap time.Duration,
) (fresh webhook.Secret, b bots.Bot, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return fresh, b, apperr.Fields{{Name: "overlapSeconds", Message: "must be 0 to 2592000"}}.Err()
	}
	b, err = s.changeBot(ctx, by, appID, actionRotateBot, AnyRevision, func(b *bots.Bot) (before, after fields, err error) {
		fresh = b.Rotate(store.UTC(s.now()), overlap)
		return nil, nil, nil
	})
	return fresh, b, err
}

// connectionFields omits the key.
func connectionFields(c bots.Connection) fields { return fields{"name": c.Name, "baseUrl": c.BaseURL} }

// CreateModelConnection adds a connection of a company. Errors: Invalid, NotFound (no such company), Conflict with the
// reason TOO_MANY_MODEL_CONNECTIONS.
func (s *Service) CreateModelConnection(ctx context.Context, by Actor, c bots.Connection) (bots.Connection, error) {
	if _, err := s.store.Company(ctx, c.CompanyID); err != nil {
		return c, err
	}
	existing, err := s.store.ModelConnections(ctx, c.CompanyID, store.Page{Limit: bots.MaxConnections})
	if err != nil {
		return c, err
	}
	if len(existing) == bots.MaxConnections {
		return c, apperr.TooManyModelConnections.New()
	}
	c.ID = chat.NewID()
	c.CreatedAt = store.UTC(s.now())
	if err := s.putConnection(ctx, &c); err != nil {
		return c, err
	}
	return c, s.changedConnection(ctx, by, c, change{action: "connection.create", after: connectionFields(c)})
}

func (s *Service) putConnection(ctx context.Context, c *bots.Connection) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := s.store.PutModelConnection(ctx, *c); err != nil {
		return err
	}
	c.Revision++
	return nil
}

// changedConnection notifies the services and writes the audit log.
func (s *Service) changedConnection(ctx context.Context, by Actor, of bots.Connection, c change) error {
	if err := s.bus.RPC().Invalidate(ctx, store.CachedModelConnection, of.ID); err != nil {
		return err
	}
	c.companyID, c.target, c.id = of.CompanyID, "connection", of.ID
	return s.audit(ctx, by, c)
}

// ConnectionChange lists changes of a connection; nil leaves a field unchanged.
type ConnectionChange struct {
	Name    *string `json:"name"`
	BaseURL *string `json:"baseUrl"`
	APIKey  *string `json:"apiKey"`
}

// keyOfOrigin is the error for a change of the origin that would take the stored key to another server.
const keyOfOrigin = "must be given again, or removed, when the scheme, host or port of the address changes: " +
	"the current key is not sent to another server"

// UpdateModelConnection changes a connection. A change of the address's origin also needs the key: Invalid.
func (s *Service) UpdateModelConnection(
	ctx context.Context, by Actor, id string, c ConnectionChange,
) (updated bots.Connection, err error) {
	for range changeAttempts {
		updated, err = s.store.ModelConnection(ctx, id)
		if err != nil {
			return updated, err
		}
		before := updated
		set(&updated.Name, c.Name)
		set(&updated.BaseURL, c.BaseURL)
		set(&updated.APIKey, c.APIKey)
		if c.APIKey == nil && before.APIKey != "" && !webhook.SameOrigin(before.BaseURL, updated.BaseURL) {
			return updated, apperr.Fields{{Name: "apiKey", Message: keyOfOrigin}}.Err()
		}
		err = s.putConnection(ctx, &updated)
		if apperr.Is(err, apperr.Conflict) {
			continue
		}
		if err != nil {
			return updated, err
		}
		return updated, s.changedConnection(ctx, by, updated, change{
			action: "connection.update", before: connectionFields(before), after: connectionFields(updated),
			hidden: before.APIKey != updated.APIKey,
		})
	}
	return updated, err
}

// DeleteModelConnection removes a connection. Errors: Conflict with the reason CONNECTION_IN_USE, with the names of the
// applications whose draft or version in force uses it. The ranking of documents may use it, too.
func (s *Service) DeleteModelConnection(ctx context.Context, by Actor, id string) error {
	c, err := s.store.ModelConnection(ctx, id)
	if err != nil {
		return err
	}
	var users []string
	read := func(ctx context.Context, p store.Page) ([]bots.Bot, error) { return s.store.Bots(ctx, c.CompanyID, p) }
	for b, err := range store.All(ctx, read, func(b bots.Bot) string { return b.AppID }) {
		if err != nil {
			return err
		}
		if !b.Uses(id) {
			continue
		}
		a, err := s.store.Application(ctx, b.AppID)
		if err != nil {
			return err
		}
		users = append(users, a.Name)
	}
	ranking, err := s.store.KnowledgeSettings(ctx, c.CompanyID)
	if err != nil {
		return err
	}
	if ranking.ConnectionID == id {
		users = append(users, "the ranking of documents")
	}
	if len(users) > 0 {
		slices.Sort(users)
		return apperr.ConnectionInUse.WithMessage("The connection is used by " + strings.Join(users, ", "))
	}
	if err := s.store.DeleteModelConnection(ctx, id); err != nil {
		return err
	}
	return s.changedConnection(ctx, by, c, change{action: "connection.delete", before: connectionFields(c)})
}

// ListTools asks the server of a connection for its tools. A server that does not answer is no error. Unavailable if no
// processor can ask it.
func (s *Service) ListTools(ctx context.Context, c bots.Connection) (bots.ToolList, error) {
	return s.bus.RPC().ListTools(ctx, bots.ToolsOf{CompanyID: c.CompanyID, ConnectionID: c.ID})
}

package parleyctl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

type sentView struct {
	MessageID       string           `json:"messageId"`
	ChatID          string           `json:"chatId"`
	Channel         chat.Channel     `json:"channel"`
	Type            chat.MessageType `json:"type"`
	CreatedAt       timestamp        `json:"createdAt"`
	WindowExpiresAt timestamp        `json:"windowExpiresAt"`
}

// draft is a reply on the command line.
type draft struct{ kind, file, sender string }

func (a *app) reply() *cobra.Command {
	var d draft
	c := &cobra.Command{
		Use: "reply CHAT [TEXT]", Short: "Write into a chat as an agent",
		Long: `Write into a chat as an agent. The visitor gets it like any reply: over the socket, and in the history. Pass a text, or a type of the
Client API with its data in a file. An agent may also write after the 24-hour window; a phone channel may reject that.`,
		Example: `  parleyctl reply CHAT "I am looking into it." --name Grace
  parleyctl reply CHAT --type IMAGE --data image.json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || (len(args) == 2) == (d.file != "") {
				return usage("want CHAT and a TEXT, or CHAT with --type and --data; see " + c.CommandPath() + " --help")
			}
			return nil
		},
	}
	addChoiceFlag(c, &d.kind, "type", string(chat.Text), "type of the message", chat.CompanyTypes()...)
	c.Flags().StringVar(&d.file, "data", "", "file with the message's data, a JSON object; - is standard input")
	c.Flags().StringVar(&d.sender, "name", "Support", "the agent's name")
	var m chat.Message
	checkFirst(c, func() (err error) {
		m, err = a.compose(d, c.Flags().Arg(1))
		return err
	})
	return a.chat().on(c, a.cached, func(ctx context.Context, o operations, found chat.Chat) error {
		return a.sendReply(ctx, o, found, m)
	})
}

// compose builds the message, and rejects what the Client API would reject.
func (a *app) compose(d draft, text string) (chat.Message, error) {
	kind := chat.MessageType(d.kind)
	if !kind.In(chat.CompanyTypes()) {
		return chat.Message{}, usage("--type must be one of " + strings.Trim(fmt.Sprint(chat.CompanyTypes()), "[]"))
	}
	if strings.TrimSpace(d.sender) == "" {
		return chat.Message{}, usage("--name must not be empty")
	}
	data, err := json.Marshal(map[string]string{"text": text})
	if d.file != "" {
		data, err = a.readFile("--data", d.file)
	}
	if err != nil {
		return chat.Message{}, err
	}
	data = []byte(strings.TrimSpace(string(data)))
	if err := (admin.Draft{Type: kind, Data: data}).Check(); err != nil {
		return chat.Message{}, err
	}
	identity := chat.NewMessageIdentity(a.Now())
	return chat.Message{
		ID:            identity.ID,
		CreatedAt:     identity.At,
		Type:          kind,
		Data:          slices.Clone(data),
		NameOfSender:  d.sender,
		IsFromSupport: true,
	}, nil
}

func (a *app) sendReply(ctx context.Context, o operations, c chat.Chat, m chat.Message) error {
	if !c.Open(a.Now()) {
		return apperr.AgentChatClosed.New()
	}
	m, err := o.Send(ctx, self(), c, m, false)
	if err != nil {
		return err
	}
	if !c.InWindow(a.Now()) {
		a.note("The window expired at %s.", timestamp(c.WindowExpiresAt()))
	}
	v := sentView{m.ID, c.ID, c.Channel, m.Type, timestamp(m.CreatedAt), timestamp(c.WindowExpiresAt())}
	return printOne(
		a, v,
		row{"message", v.MessageID},
		row{"chat", v.ChatID},
		row{"channel", string(v.Channel)},
		row{"type", string(v.Type)},
		row{"created", v.CreatedAt.String()},
		row{"windowExpiresAt", v.WindowExpiresAt.String()},
	)
}

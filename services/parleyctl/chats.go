package parleyctl

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/inspect"
	"github.com/parley-chat/parley/pkg/store"
)

type chatView struct {
	ID              string       `json:"id"`
	CompanyID       string       `json:"companyId"`
	AppID           string       `json:"appId,omitempty"`
	ChatUserID      string       `json:"chatUserId"`
	Channel         chat.Channel `json:"channel"`
	Status          chat.Status  `json:"status"`
	CreatedAt       timestamp    `json:"createdAt"`
	VisitorWroteAt  timestamp    `json:"visitorWroteAt,omitzero"`
	WindowExpiresAt timestamp    `json:"windowExpiresAt"`
	InWindow        bool         `json:"inWindow"`
	IdleClosesAt    timestamp    `json:"idleClosesAt,omitzero"`
	ClosedAt        timestamp    `json:"closedAt,omitzero"`
}

func (a *app) viewOfChat(c chat.Chat) chatView {
	now := a.Now()
	return chatView{
		ID: c.ID, CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, Channel: c.Channel, Status: c.Status(now),
		CreatedAt:       timestamp(c.CreatedAt),
		VisitorWroteAt:  timestamp(c.VisitorWroteAt),
		WindowExpiresAt: timestamp(c.WindowExpiresAt()),
		InWindow:        c.InWindow(now), IdleClosesAt: timestamp(c.IdleClosesAt), ClosedAt: timestamp(c.ClosedAt),
	}
}

func chatColumns() []column[chatView] {
	return []column[chatView]{
		{"id", func(v chatView) string { return v.ID }},
		{"status", func(v chatView) string { return string(v.Status) }},
		{"channel", func(v chatView) string { return string(v.Channel) }},
		{"application", func(v chatView) string { return v.AppID }},
		{"visitor", func(v chatView) string { return v.ChatUserID }},
		{"created", func(v chatView) string { return v.CreatedAt.String() }},
		{"window", func(v chatView) string { return describeWindow(v) }},
	}
}

// describeWindow describes until when a company may write.
func describeWindow(v chatView) string {
	if v.InWindow {
		return "open until " + v.WindowExpiresAt.String()
	}
	if v.Status == chat.Closed {
		return "closed"
	}
	return "expired " + v.WindowExpiresAt.String()
}

func (a *app) chats() *cobra.Command {
	return commandGroup(
		"chats", "List, show and close chats", []string{"chat"}, a.chatsList(), a.chatsShow(), a.chatsClose(),
	)
}

// chatFilter is the filter of chats on the command line.
type chatFilter struct {
	store.ChatFilter
	status               string
	email, phone, userID string
}

func (f *chatFilter) add(a *app, c *cobra.Command) {
	a.addCompanyFlag(c, &f.CompanyID, "only this company's")
	c.Flags().StringVar(&f.AppID, "app", "", "only this application's")
	c.Flags().StringVar(&f.ChatUserID, "visitor", "", "only this visitor's (chatUserId)")
	c.Flags().StringVar(&f.email, "email", "", "only those of the visitor of --app with this e-mail")
	c.Flags().StringVar(&f.phone, "phone", "", "only those of the visitor of --app with this phone number")
	c.Flags().StringVar(&f.userID, "user-id", "", "only those of the visitor of --app with this userId")
	c.Flags().StringVar(&f.status, "status", "", "only pending, active or closed ones")
	_ = c.RegisterFlagCompletionFunc("app", a.completeApplications) // the flags exist
	_ = c.RegisterFlagCompletionFunc("status", fixed(string(chat.Pending), string(chat.Active), string(chat.Closed)))
}

func (f *chatFilter) check(c *cobra.Command) error {
	f.Status = chat.Status(f.status)
	if !slices.Contains([]chat.Status{"", chat.Pending, chat.Active, chat.Closed}, f.Status) {
		return usage("--status must be pending, active or closed")
	}
	if (f.email != "" || f.phone != "" || f.userID != "") && f.AppID == "" {
		return usage("--email, --phone and --user-id need --app; see " + c.CommandPath() + " --help")
	}
	return cmp.Or(
		optionalID("--company", &f.CompanyID),
		optionalID("--app", &f.AppID),
		optionalID("--visitor", &f.ChatUserID),
	)
}

// resolve finds the visitor with an identity.
func (f *chatFilter) resolve(ctx context.Context, s store.Store) (err error) {
	for _, i := range []store.Identity{{Kind: store.KindUserID, Value: f.userID}, {Kind: store.KindEmail, Value: f.email}, {Kind: store.KindPhone, Value: f.phone}} {
		if i.Value == "" {
			continue
		}
		i.Scope = f.AppID
		if f.ChatUserID, err = s.FindVisitor(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) chatsList() *cobra.Command {
	var filter chatFilter
	c := pagedList(a, &cobra.Command{
		Use: "list", Short: "List chats, the newest first", Aliases: []string{"ls"}, Args: exactArgs(),
		Example: "  parleyctl chats list --app APPLICATION --status active\n  parleyctl chats list --app APPLICATION --email ada@example.com",
		PreRunE: func(c *cobra.Command, _ []string) error { return filter.check(c) },
	}, func(ctx context.Context, s store.Store, page store.Page) ([]chat.Chat, error) {
		if err := filter.resolve(ctx, s); err != nil {
			return nil, err
		}
		filter.Now = a.Now()
		return s.Chats(ctx, filter.ChatFilter, page)
	}, a.viewOfChat, chatColumns())
	filter.add(a, c)
	return c
}

// chat finds a chat by its id.
func (a *app) chat(ctx context.Context, arg string) (chat.Chat, error) {
	id, err := parseID("CHAT", arg)
	if err != nil {
		return chat.Chat{}, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return chat.Chat{}, err
	}
	return s.Chat(ctx, id)
}

type visitorView struct {
	FirstName string `json:"firstName,omitempty"`
	LastName  string `json:"lastName,omitempty"`
	Email     string `json:"email,omitempty"`
	Phone     string `json:"phone,omitempty"`
	UserID    string `json:"userId,omitempty"`
}

type chatDetail struct {
	chatView
	Visitor      visitorView    `json:"visitor"`
	MessageCount int            `json:"messageCount"`
	Messages     []chat.Message `json:"messages"`
}

func (a *app) chatsShow() *cobra.Command {
	var last int
	c := &cobra.Command{
		Use:               "show CHAT",
		Short:             "Show a chat: its visitor, its window, its last messages",
		Args:              exactArgs("CHAT"),
		ValidArgsFunction: a.completeChats,
		Example:           "  parleyctl chats show CHAT --messages 0",
		RunE: func(c *cobra.Command, args []string) error {
			if last < 0 {
				return usage("--messages must not be negative")
			}
			found, err := a.chat(c.Context(), args[0])
			if err != nil {
				return err
			}
			detail, err := a.detail(c.Context(), found, last)
			if err != nil {
				return err
			}
			return a.printChat(detail)
		},
	}
	c.Flags().IntVar(&last, "messages", 50, "number of the last messages; 0: all")
	return c
}

func (a *app) detail(ctx context.Context, c chat.Chat, last int) (chatDetail, error) {
	d := chatDetail{chatView: a.viewOfChat(c)}
	v, err := a.connections.store.Visitor(ctx, c.ChatUserID)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return d, err
	}
	d.Visitor = visitorView{FirstName: v.FirstName, LastName: v.LastName, Email: v.Email, Phone: v.Phone, UserID: v.UserID}
	for q := (store.HistoryQuery{}); ; {
		messages, more, err := a.connections.store.History(ctx, c.ID, q)
		if err != nil {
			return d, err
		}
		d.MessageCount += len(messages)
		if more {
			q.Before = messages[0].ID
		}
		if last > 0 {
			messages = messages[max(0, len(messages)-(last-len(d.Messages))):]
		}
		d.Messages = slices.Concat(messages, d.Messages)
		if !more {
			return d, nil
		}
	}
}

func (a *app) printChat(d chatDetail) error {
	if a.wantsJSON() {
		return a.printJSON(d)
	}
	text := func(s string) func(chatDetail) string { return func(chatDetail) string { return s } }
	err := printOne(a, d,
		column[chatDetail]{"id", text(d.ID)},
		column[chatDetail]{"status", text(string(d.Status))},
		column[chatDetail]{"channel", text(string(d.Channel))},
		column[chatDetail]{"company", text(d.CompanyID)},
		column[chatDetail]{"application", text(d.AppID)},
		column[chatDetail]{"visitor", text(d.ChatUserID)},
		column[chatDetail]{"name", text(chat.Visitor{FirstName: d.Visitor.FirstName, LastName: d.Visitor.LastName}.Name())},
		column[chatDetail]{"email", text(d.Visitor.Email)},
		column[chatDetail]{"phone", text(d.Visitor.Phone)},
		column[chatDetail]{"userId", text(d.Visitor.UserID)},
		column[chatDetail]{"created", text(d.CreatedAt.String())},
		column[chatDetail]{"visitor wrote", text(d.VisitorWroteAt.String())},
		column[chatDetail]{"windowExpiresAt", text(d.WindowExpiresAt.String())},
		column[chatDetail]{"in window", text(yesNo(d.InWindow))},
		column[chatDetail]{"idle closes", text(d.IdleClosesAt.String())},
		column[chatDetail]{"closed", text(d.ClosedAt.String())},
	)
	if err != nil || len(d.Messages) == 0 {
		return err
	}
	if d.MessageCount > len(d.Messages) {
		a.note("The last %d of %d messages:", len(d.Messages), d.MessageCount)
	}
	if _, err := a.Out.Write([]byte("\n")); err != nil {
		return err
	}
	return printList(a, d.Messages, messageColumns()...)
}

func messageColumns() []column[chat.Message] {
	return []column[chat.Message]{
		{"time", func(m chat.Message) string { return timestamp(m.CreatedAt).String() }},
		{"id", func(m chat.Message) string { return m.ID }},
		{"from", func(m chat.Message) string { return inspect.SenderOf(m) }},
		{"type", func(m chat.Message) string { return string(m.Type) }},
		{"text", func(m chat.Message) string { return shorten(inspect.Summary(m.Data), 80) }},
	}
}

func (a *app) chatsClose() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "close CHAT", Short: "Close a chat", Args: exactArgs("CHAT"), ValidArgsFunction: a.completeChats,
		Long: "Close a chat for good. Within a second companies cannot write into it any more; the visitor's next message opens another one.",
		RunE: func(c *cobra.Command, args []string) error {
			b, err := a.openBus(c.Context())
			if err != nil {
				return err
			}
			found, err := a.chat(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Close the %s chat %s of visitor %s?", found.Status(a.Now()), found.ID, found.ChatUserID); err != nil {
				return err
			}
			if found, err = admin.New(a.connections.store, b, a.Now).CloseChat(c.Context(), self(), found); err != nil {
				return err
			}
			return printOne(a, a.viewOfChat(found), append(chatColumns(),
				column[chatView]{"closed", func(v chatView) string { return v.ClosedAt.String() }})...)
		},
	}
	addYesFlag(c, &yes)
	return c
}

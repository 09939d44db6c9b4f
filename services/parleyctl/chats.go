package parleyctl

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin/view"
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
		ID:              c.ID,
		CompanyID:       c.CompanyID,
		AppID:           c.AppID,
		ChatUserID:      c.ChatUserID,
		Channel:         c.Channel,
		Status:          c.Status(now),
		CreatedAt:       timestamp(c.CreatedAt),
		VisitorWroteAt:  timestamp(c.VisitorWroteAt),
		WindowExpiresAt: timestamp(c.WindowExpiresAt()),
		InWindow:        c.InWindow(now),
		IdleClosesAt:    timestamp(c.IdleClosesAt),
		ClosedAt:        timestamp(c.ClosedAt),
	}
}

func (a *app) chat() resource[chat.Chat, chatView] {
	columns := chatColumns()
	return resource[chat.Chat, chatView]{
		app:      a,
		argument: "CHAT",
		find:     store.Store.Chat,
		complete: a.completeChats,
		open:     a.cached,
		view:     a.viewOfChat,
		id:       func(v chatView) string { return v.ID },
		columns:  columns,
		rows:     func(v chatView) []row { return append(rowsOf(v, columns), row{"closed", v.ClosedAt.String()}) },
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
	addIDFlag(c, &f.AppID, "app", "only this application's")
	addIDFlag(c, &f.ChatUserID, "visitor", "only this visitor's (chatUserId)")
	c.Flags().StringVar(&f.email, "email", "", "only those of the visitor of --app with this e-mail")
	c.Flags().StringVar(&f.phone, "phone", "", "only those of the visitor of --app with this phone number")
	c.Flags().StringVar(&f.userID, "user-id", "", "only those of the visitor of --app with this userId")
	addChoiceFlag(c, &f.status, "status", "", "only pending, active or closed ones",
		chat.Pending, chat.Active, chat.Closed)
	_ = c.RegisterFlagCompletionFunc("app", a.completeApplications) // the flag exists
	checkFirst(c, func() error { return f.check(c) })
}

func (f *chatFilter) check(c *cobra.Command) error {
	f.Status = chat.Status(f.status)
	if !slices.Contains([]chat.Status{"", chat.Pending, chat.Active, chat.Closed}, f.Status) {
		return usage("--status must be pending, active or closed")
	}
	if (f.email != "" || f.phone != "" || f.userID != "") && f.AppID == "" {
		return usage("--email, --phone and --user-id need --app; see " + c.CommandPath() + " --help")
	}
	return nil
}

// resolve finds the visitor with an identity.
func (f *chatFilter) resolve(ctx context.Context, s store.Store) (err error) {
	profile := store.Profile{UserID: f.userID, Email: f.email, Phone: f.phone}
	for _, i := range store.Identities(f.AppID, profile) {
		f.ChatUserID, err = s.FindVisitor(ctx, i)
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) chatsList() *cobra.Command {
	var filter chatFilter
	c := &cobra.Command{
		Use: "list", Short: "List chats, the newest first",
		Example: "  parleyctl chats list --app APPLICATION --status active\n" +
			"  parleyctl chats list --app APPLICATION --email ada@example.com",
	}
	filter.add(a, c)
	return a.chat().list(c, defaultLimit, func(
		ctx context.Context, s store.Store, page store.Page,
	) ([]chat.Chat, error) {
		if err := filter.resolve(ctx, s); err != nil {
			return nil, err
		}
		filter.Now = a.Now()
		return s.Chats(ctx, filter.ChatFilter, page)
	})
}

// chatDetail is a chat with its visitor and its last messages.
type chatDetail struct {
	chatView
	Visitor      view.Profile   `json:"visitor"`
	MessageCount int            `json:"messageCount"`
	Messages     []chat.Message `json:"messages"`
}

func (a *app) chatsShow() *cobra.Command {
	var last int
	c := &cobra.Command{
		Use:     "show CHAT",
		Short:   "Show a chat: its visitor, its window, its last messages",
		Example: "  parleyctl chats show CHAT --messages 0",
	}
	c.Flags().IntVar(&last, "messages", 50, "number of the last messages; 0: all")
	checkFirst(c, func() error { return notNegative("--messages", last) })
	return a.chat().on(c, a.stored, func(ctx context.Context, o operations, found chat.Chat) error {
		v, err := o.store.Visitor(ctx, found.ChatUserID)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return err
		}
		messages, count, err := o.LastMessages(ctx, found.ID, last)
		if err != nil {
			return err
		}
		return a.printChat(chatDetail{a.viewOfChat(found), view.ProfileOf(v), count, messages})
	})
}

func (a *app) printChat(d chatDetail) error {
	if a.wantsJSON() {
		return a.printJSON(d)
	}
	err := printOne(
		a, d,
		row{"id", d.ID},
		row{"status", string(d.Status)},
		row{"channel", string(d.Channel)},
		row{"company", d.CompanyID},
		row{"application", d.AppID},
		row{"visitor", d.ChatUserID},
		row{"name", chat.Visitor{FirstName: d.Visitor.FirstName, LastName: d.Visitor.LastName}.Name()},
		row{"email", d.Visitor.Email},
		row{"phone", d.Visitor.Phone},
		row{"userId", d.Visitor.UserID},
		row{"created", d.CreatedAt.String()},
		row{"visitor wrote", d.VisitorWroteAt.String()},
		row{"windowExpiresAt", d.WindowExpiresAt.String()},
		row{"in window", yesNo(d.InWindow)},
		row{"idle closes", d.IdleClosesAt.String()},
		row{"closed", d.ClosedAt.String()},
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
	c := &cobra.Command{
		Use: "close CHAT", Short: "Close a chat",
		Long: "Close a chat for good. Within a second companies cannot write into it any more; the visitor's next " +
			"message opens another one.",
	}
	question := func(found chat.Chat) string {
		return fmt.Sprintf("Close the %s chat %s of visitor %s?", found.Status(a.Now()), found.ID, found.ChatUserID)
	}
	return a.chat().confirmed(c, question, func(ctx context.Context, o operations, found chat.Chat) (chat.Chat, error) {
		return o.CloseChat(ctx, self(), found)
	})
}

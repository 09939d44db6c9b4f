package parleyctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// visitorDetail is a visitor's profile with what concerns operators.
type visitorDetail struct {
	view.Profile
	Chats           int       `json:"chats"`
	TokensValidFrom timestamp `json:"tokensValidFrom,omitzero"`

	name string
}

func (a *app) visitor() resource[chat.Visitor, visitorDetail] {
	return resource[chat.Visitor, visitorDetail]{
		app:      a,
		argument: "VISITOR",
		find:     store.Store.Visitor,
		open:     a.cached,
		id:       func(v visitorDetail) string { return v.ID },
		view: func(v chat.Visitor) visitorDetail {
			return visitorDetail{view.ProfileOf(v), v.ChatNumber, timestamp(v.TokensValidFrom), v.Name()}
		},
		rows: func(v visitorDetail) []row {
			return []row{
				{"id", v.ID},
				{"company", v.CompanyID},
				{"application", v.AppID},
				{"name", v.name},
				{"email", v.Email},
				{"phone", v.Phone},
				{"userId", v.UserID},
				{"verified by", v.VerifiedBy},
				{"tokens valid from", v.TokensValidFrom.String()},
			}
		},
	}
}

func (a *app) visitors() *cobra.Command {
	return commandGroup(
		"visitors", "Show visitors and revoke their tokens", []string{"visitor"}, a.visitorsShow(),
		a.visitorsRevoke(),
	)
}

func (a *app) visitorsShow() *cobra.Command {
	return a.visitor().show(&cobra.Command{
		Use: "show VISITOR", Short: "Show a visitor",
		Long: `Show a visitor, named by the chatUserId ("parleyctl chats list --app APPLICATION --email EMAIL" finds it).`,
	})
}

func (a *app) visitorsRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke VISITOR", Short: "Revoke all tokens of a visitor and close the sockets",
		Long: `Revoke all tokens of a visitor, and close the sockets that use them. It takes effect everywhere within a second, for good. The visitor
must register again, with a proof if the application verifies identities. If the command fails, run it again.`,
		Example: "  parleyctl visitors revoke VISITOR --yes",
	}
	question := func(v chat.Visitor) string {
		return fmt.Sprintf("Revoke all tokens of the visitor %s (%s)?", v.ID, v.Name())
	}
	return a.visitor().confirmed(c, question, a.visitor().byID((*admin.Service).RevokeVisitor))
}

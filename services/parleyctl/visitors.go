package parleyctl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/chat"
)

func (a *app) visitors() *cobra.Command {
	return commandGroup(
		"visitors", "Show visitors and revoke their tokens", []string{"visitor"}, a.visitorsShow(),
		a.visitorsRevoke(),
	)
}

// visitorDetail is the data of a visitor.
type visitorDetail struct {
	ID        string `json:"id"`
	CompanyID string `json:"companyId"`
	AppID     string `json:"appId,omitempty"`
	visitorView
	VerifiedBy      string    `json:"verifiedBy,omitempty"`
	Chats           int       `json:"chats"`
	TokensValidFrom timestamp `json:"tokensValidFrom,omitzero"`
}

func (a *app) printVisitor(v chat.Visitor) error {
	detail := visitorDetail{
		ID:              v.ID,
		CompanyID:       v.CompanyID,
		AppID:           v.AppID,
		VerifiedBy:      v.VerifiedBy,
		Chats:           v.ChatNumber,
		TokensValidFrom: timestamp(v.TokensValidFrom),
		visitorView: visitorView{
			FirstName: v.FirstName,
			LastName:  v.LastName,
			Email:     v.Email,
			Phone:     v.Phone,
			UserID:    v.UserID,
		},
	}
	return printOne(a, detail,
		column[visitorDetail]{"id", func(v visitorDetail) string { return v.ID }},
		column[visitorDetail]{"company", func(v visitorDetail) string { return v.CompanyID }},
		column[visitorDetail]{"application", func(v visitorDetail) string { return v.AppID }},
		column[visitorDetail]{"name", func(visitorDetail) string { return v.Name() }},
		column[visitorDetail]{"email", func(v visitorDetail) string { return v.Email }},
		column[visitorDetail]{"phone", func(v visitorDetail) string { return v.Phone }},
		column[visitorDetail]{"userId", func(v visitorDetail) string { return v.UserID }},
		column[visitorDetail]{"verified by", func(v visitorDetail) string { return v.VerifiedBy }},
		column[visitorDetail]{"tokens valid from", func(v visitorDetail) string { return v.TokensValidFrom.String() }},
	)
}

// visitor finds a visitor by chatUserId.
func (a *app) visitor(ctx context.Context, arg string) (chat.Visitor, error) {
	id, err := parseID("VISITOR", arg)
	if err != nil {
		return chat.Visitor{}, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return chat.Visitor{}, err
	}
	return s.Visitor(ctx, id)
}

func (a *app) visitorsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show VISITOR", Short: "Show a visitor", Args: exactArgs("VISITOR"),
		Long: `Show a visitor, named by the chatUserId ("parleyctl chats list --app APPLICATION --email EMAIL" finds it).`,
		RunE: func(c *cobra.Command, args []string) error {
			v, err := a.visitor(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printVisitor(v)
		},
	}
}

func (a *app) visitorsRevoke() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "revoke VISITOR", Short: "Revoke all tokens of a visitor and close the sockets", Args: exactArgs("VISITOR"),
		Long: `Revoke all tokens of a visitor, and close the sockets that use them. It takes effect everywhere within a second, for good. The visitor
must register again, with a proof if the application verifies identities. If the command fails, run it again.`,
		Example: "  parleyctl visitors revoke VISITOR --yes",
		RunE: func(c *cobra.Command, args []string) error {
			s, b, err := a.openBoth(c.Context())
			if err != nil {
				return err
			}
			v, err := a.visitor(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, "Revoke all tokens of the visitor %s (%s)?", v.ID, v.Name()); err != nil {
				return err
			}
			if v, err = admin.New(s, b, a.Now).RevokeVisitor(c.Context(), self(), v.ID); err != nil {
				return err
			}
			return a.printVisitor(v)
		},
	}
	addYesFlag(c, &yes)
	return c
}

package parleyctl

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
)

func (a *app) ranking() *cobra.Command {
	return commandGroup(
		"ranking", "Show and change how the passages of a company's documents are ranked", nil,
		a.rankingShow(), a.rankingSet(),
	)
}

func (a *app) printRanking(r admin.Ranking) error {
	v := view.RankingOf(r.Settings, r.Progress)
	return printOne(
		a, v,
		row{"company", v.CompanyID},
		row{"connection", v.ConnectionID},
		row{"model", v.Model},
		row{"passages", strconv.Itoa(v.Passages)},
		row{"embedded", strconv.Itoa(v.Embedded)},
		row{"failure", v.Failure},
	)
}

func (a *app) rankingShow() *cobra.Command {
	var companyID string
	c := &cobra.Command{Use: "show", Short: "Show how passages are ranked, and how far the embeddings are", Args: exactArgs()}
	require(c, "company")
	a.addCompanyFlag(c, &companyID, "the company")
	return withOperations(c, a.stored, func(ctx context.Context, o operations) error {
		if _, err := o.store.Company(ctx, companyID); err != nil {
			return err
		}
		r, err := o.Ranking(ctx, companyID)
		if err != nil {
			return err
		}
		return a.printRanking(r)
	})
}

func (a *app) rankingSet() *cobra.Command {
	var companyID string
	var change admin.RankingChange
	c := &cobra.Command{
		Use: "set", Short: "Rank by meaning with a model; without one, by words alone", Args: exactArgs(),
		Example: "  parleyctl ranking set --company COMPANY --connection CONNECTION --model text-embedding-3-small",
	}
	require(c, "company")
	a.addCompanyFlag(c, &companyID, "the company")
	c.Flags().StringVar(&change.ConnectionID, "connection", "", "connection whose server makes embeddings; default: none")
	c.Flags().StringVar(&change.Model, "model", "", "its model")
	c.Flags().BoolVar(&change.Unchecked, "unchecked", false, "do not ask the server for an embedding first")
	checkFirst(c, func() error { return optionalID("--connection", &change.ConnectionID) })
	return withOperations(c, a.cached, func(ctx context.Context, o operations) error {
		r, err := o.SetRanking(ctx, self(), companyID, admin.AnyRevision, change)
		if err != nil {
			return err
		}
		return a.printRanking(r)
	})
}

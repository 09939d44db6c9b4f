package view

import "github.com/parley-chat/parley/pkg/knowledge"

// Ranking is how the passages of a company are ranked: by meaning with a connection, else by words alone.
type Ranking struct {
	CompanyID    string `json:"companyId"`
	ConnectionID string `json:"connectionId,omitempty"`
	Model        string `json:"model,omitempty"`
	Passages     int    `json:"passages"`
	Embedded     int    `json:"embedded"`          // those of them that are ranked by meaning
	Failure      string `json:"failure,omitempty"` // the last one; absent: none since the last success
	Revision     int64  `json:"revision"`
}

// RankingOf returns the view of settings and of how many passages have their embeddings.
func RankingOf(s knowledge.Settings, p knowledge.Progress) Ranking {
	return Ranking{
		CompanyID: s.CompanyID, ConnectionID: s.ConnectionID, Model: s.Model,
		Passages: p.Passages, Embedded: p.Embedded, Failure: s.Work.Failure, Revision: s.Revision,
	}
}

package parleyctl

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
)

// tracedStatus is what a company can see of its message, with the times at which each status was reached first.
type tracedStatus struct {
	Status      string `json:"status"`
	AcceptedAt  stamp  `json:"acceptedAt,omitzero"`
	StoredAt    stamp  `json:"storedAt,omitzero"`
	DeliveredAt stamp  `json:"deliveredAt,omitzero"`
	ReadAt      stamp  `json:"readAt,omitzero"`
	FailedAt    stamp  `json:"failedAt,omitzero"`
	Failure     string `json:"failure,omitempty"`
}

// status is there for a message that a company sent.
func (t *tracer) status(ctx context.Context) error {
	if t.view.CompanyID == "" {
		return nil
	}
	s, err := t.app.connections.store.MessageStatus(ctx, t.view.CompanyID, t.id)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	t.view.Status = &tracedStatus{
		Status: s.Status(), AcceptedAt: stamp(s.AcceptedAt), StoredAt: stamp(s.StoredAt), DeliveredAt: stamp(s.Delivered()),
		ReadAt: stamp(s.ReadAt), FailedAt: stamp(s.Failure.At), Failure: s.Failure.Reason,
	}
	t.learn("", s.ChatID)
	return nil
}

func (v traceView) storedTime() string {
	if v.Status == nil {
		return ""
	}
	return v.Status.StoredAt.String()
}

func (s *tracedStatus) steps() (steps []step) {
	if s == nil {
		return nil
	}
	for _, reached := range []struct {
		at     stamp
		what   string
		detail string
	}{{s.DeliveredAt, "delivered", ""}, {s.ReadAt, "read", ""}, {s.FailedAt, "failed", s.Failure}} {
		if !reached.at.IsZero() {
			steps = append(steps, step{reached.at.String(), reached.what, reached.detail})
		}
	}
	return steps
}

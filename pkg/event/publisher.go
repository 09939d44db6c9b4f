package event

import "context"

// Publisher publishes an event at the expense of an account; nil means that its stream has stored it.
type Publisher interface {
	Publish(ctx context.Context, a Account, e Event) error
}

// MeteredPublisher is a [Publisher] for callers that write something else before they publish.
type MeteredPublisher interface {
	Publisher
	// Charge charges an event of about that many bytes in advance. It returns the account that has paid for it.
	Charge(ctx context.Context, a Account, bytes int) (Account, error)
}

package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/proto-events/subject"
)

// embeddingTimeout is that of a test: a server may load its model first.
const embeddingTimeout = 30 * time.Second

// Embed makes a processor ask a company's server for the embedding of a text. The answer has the failure of a server
// that gives none. It returns Unavailable if no processor with a bot runs.
func (c *Conn) Embed(ctx context.Context, r knowledge.EmbeddingRequest) (knowledge.EmbeddingAnswer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return knowledge.EmbeddingAnswer{}, fmt.Errorf("encoding a request for an embedding: %w", err)
	}
	q := Question{Subject: subject.Embedding, Body: body, Service: processor, Timeout: embeddingTimeout}
	return Ask[knowledge.EmbeddingAnswer](ctx, c, q)
}

// HandleEmbeddings responds to [Conn.Embed] with the result of embed until stop is called; stop waits for running calls.
func (c *Conn) HandleEmbeddings(
	embed func(context.Context, knowledge.EmbeddingRequest) (knowledge.EmbeddingAnswer, error),
) (stop func(), err error) {
	answer := func(ctx context.Context, _ string, body []byte) (any, error) {
		var r knowledge.EmbeddingRequest
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err
		}
		return embed(ctx, r)
	}
	return c.answer(subject.Embedding, processorGroup, embeddingTimeout-subscribeTimeout, answer)
}

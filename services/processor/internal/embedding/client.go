package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/services/processor/internal/excerpt"
	"github.com/parley-chat/parley/services/processor/internal/guard"
	"github.com/parley-chat/parley/services/processor/internal/retryafter"
)

const (
	// maxAnswer bounds an answer in bytes: 32 vectors of 4,096 numbers have some 3 MiB.
	maxAnswer = 16 << 20
	// maxPause bounds a pause that a server asks for.
	maxPause = time.Hour
)

// failure is why a server gave no vectors. The company reads its message, which has no secret and no resolved address.
type failure struct {
	message string
	pause   time.Duration // asked for with Retry-After; 0: none
	refused bool          // the server answers, but takes the model or the texts for invalid
}

func (f *failure) Error() string { return f.message }

// asFailure returns the failure of an error of [client.embed].
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return &failure{message: "No answer: " + guard.Reason(err)}
}

// client calls servers that speak OpenAI's embeddings.
type client struct {
	http *http.Client
	now  func() time.Time
	used func(tokens int)
}

type request struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

type response struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
	Usage struct {
		Tokens int `json:"total_tokens"`
	} `json:"usage"`
}

// embed returns the vectors of texts, in their order and of one length. It makes one call. Its errors are those of
// [asFailure].
func (c *client) embed(
	ctx context.Context, server bots.Connection, model string, texts []string,
) ([][]byte, error) {
	body, err := json.Marshal(request{Model: model, Input: texts})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.EmbeddingsURL(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Parley-LLM/1.0")
	if server.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+server.APIKey)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if answer.StatusCode != http.StatusOK {
		return nil, c.refusal(server, answer, said)
	}
	if err != nil {
		return nil, err
	}
	if len(said) > maxAnswer {
		return nil, &failure{message: fmt.Sprintf("The answer is larger than %d bytes", maxAnswer)}
	}
	return c.vectors(said, len(texts))
}

// refusal returns the failure of a status, with the beginning of what the server said.
func (c *client) refusal(server bots.Connection, r *http.Response, said []byte) *failure {
	f := &failure{message: fmt.Sprintf("The server answered %d", r.StatusCode)}
	if text := excerpt.Line(string(said), excerpt.Secrets(server.BaseURL, server.APIKey)); text != "" {
		f.message += ": " + text
	}
	f.pause = retryafter.Parse(r.Header, c.now(), maxPause)
	switch r.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		f.refused = true
	}
	return f
}

// vectors reads an answer to a number of texts.
func (c *client) vectors(said []byte, texts int) ([][]byte, error) {
	var answer response
	if err := json.Unmarshal(said, &answer); err != nil {
		return nil, &failure{message: "The answer has no embeddings"}
	}
	c.used(max(0, answer.Usage.Tokens))
	vectors := make([][]byte, texts)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= texts || len(d.Embedding) > knowledge.MaxDimensions {
			return nil, &failure{message: "The answer has other embeddings than it was asked for"}
		}
		vectors[d.Index] = knowledge.Vector(d.Embedding)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, &failure{message: "The answer has other embeddings than it was asked for"}
		}
	}
	return vectors, nil
}

package bot

import (
	"io"

	"github.com/parley-chat/parley/services/processor/internal/excerpt"
)

// excerpt returns the beginning of a refusal's body as one printable line, without our secrets. It reads a
// whole small body, so that the connection can be reused.
func (t *target) excerpt(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, maxAnswer)) // what has arrived of a body that breaks off
	return t.printable(string(data))
}

func (t *target) printable(text string) string { return excerpt.Line(text, t.hidden) }

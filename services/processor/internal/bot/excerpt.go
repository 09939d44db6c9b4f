package bot

import (
	"encoding/base64"
	"io"
	"net/url"
	"strings"
	"unicode"
)

const (
	// maxExcerpt bounds, in bytes, what the dead letter and the log repeat of a server's refusal.
	maxExcerpt = 512
	// minSecretText is the length from which a value counts as a secret: a shorter one occurs in any text.
	minSecretText = 4
)

// secretsOf returns what must not be repeated of a server's address and its further credentials: the user information, also as
// the header Authorization has it, and the values of the query.
func secretsOf(address string, more ...string) []string {
	all := more
	if u, err := url.Parse(address); err == nil {
		if password, ok := u.User.Password(); ok {
			basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
			all = append(all, password, basic)
		}
		for _, values := range u.Query() {
			all = append(all, values...)
		}
	}
	var secrets []string
	for _, s := range all {
		if len(s) >= minSecretText {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// excerpt returns the beginning of a refusal's body as one printable line, without our secrets. It reads a whole small body, so
// that the connection can be reused.
func (c *caller) excerpt(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, maxAnswer)) // what has arrived of a body that breaks off
	return c.printable(string(data))
}

func (c *caller) printable(text string) string {
	for _, s := range c.secrets { // before the cut, which could leave the half of one
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "..."
	}
	return text
}

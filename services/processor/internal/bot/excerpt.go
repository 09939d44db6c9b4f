package bot

import (
	"cmp"
	"encoding/base64"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxExcerpt bounds, in bytes, what the dead letter and the log repeat of a server's refusal.
	maxExcerpt = 512
	// minSecretText is the length from which a value counts as a secret: a shorter one occurs in any text.
	minSecretText = 4
)

// secretsOf returns what must not be repeated of a server's address and its further credentials: the user
// information, also as the header Authorization has it, and the values of the query; each also as URLs and
// JSON have it. The longest is first, so that a short one inside it leaves no half of it.
func secretsOf(address string, more ...string) []string {
	all := slices.Clone(more)
	if u, err := url.Parse(address); err == nil {
		if u.User != nil {
			name := u.User.Username()
			password, ok := u.User.Password()
			if !ok {
				all = append(all, name) // a token, as no password comes with it
			}
			all = append(all, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
		}
		for _, values := range u.Query() {
			all = append(all, values...)
		}
	}
	var secrets []string
	for _, s := range all {
		if len(s) >= minSecretText {
			secrets = append(secrets, s, url.QueryEscape(s), url.PathEscape(s), strings.ReplaceAll(s, "/", `\/`))
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(secrets)
}

// excerpt returns the beginning of a refusal's body as one printable line, without our secrets. It reads a
// whole small body, so that the connection can be reused.
func (t *target) excerpt(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, maxAnswer)) // what has arrived of a body that breaks off
	return t.printable(string(data))
}

func (t *target) printable(text string) string {
	for _, s := range t.hidden { // before the cut, which could leave the half of one
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

// Package excerpt shows what the servers of companies say, without what must not be repeated.
package excerpt

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

const (
	// MaxBytes bounds what the dead letter, the log and a company's page repeat of what a server said.
	MaxBytes = 512
	// minSecretText is the length from which a value counts as a secret: a shorter one occurs in any text.
	minSecretText = 4
)

// Secrets returns what must not be repeated of a server's address and its further credentials: the user
// information, also as the header Authorization has it, and the values of the query; each also as URLs and
// JSON have it. The longest is first, so that a short one inside it leaves no half of it.
func Secrets(address string, more ...string) []string {
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

// Line returns the beginning of a text as one printable line, without the secrets ([Secrets]).
func Line(text string, secrets []string) string {
	for _, s := range secrets { // before the cut, which could leave the half of one
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > MaxBytes {
		text = strings.ToValidUTF8(text[:MaxBytes], "") + "..."
	}
	return text
}

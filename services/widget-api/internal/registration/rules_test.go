package registration

import (
	"slices"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

// The rules are those of the configuration that the application has now.
func TestRulesFollowTheConfigs(t *testing.T) {
	t.Parallel()
	var c rulesCache
	for _, test := range []struct {
		app, configs string
		want         []string // nil: an error
	}{
		{"a", `{"requiredFields":["email"]}`, []string{"email"}},
		{"b", `{"requiredFields":["phone"]}`, []string{"phone"}},
		{"a", `{"requiredFields":["email"]}`, []string{"email"}},
		{"a", `{"requiredFields":["order"]}`, []string{"order"}},
		{"a", `{"requiredFields":1}`, nil},
		{"a", `{"requiredFields":["email"]}`, []string{"email"}},
	} {
		got, err := c.of(chat.Application{ID: test.app, WidgetConfigs: []byte(test.configs)})
		if (err != nil) != (test.want == nil) || !slices.Equal(got.RequiredFields, test.want) {
			t.Errorf("%s %s: got %v, %v, want %v", test.app, test.configs, got.RequiredFields, err, test.want)
		}
	}
}

package chat_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestAllowedOrigins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		rules   []string
		allowed []string
		refused []string
	}{
		{"none: any", nil, []string{"https://anything.example", "null", "app://x", "nonsense"}, nil},
		{
			"one",
			[]string{"https://shop.example.com"},
			[]string{"https://shop.example.com", "https://shop.example.com:443", "HTTPS://Shop.Example.Com"},
			[]string{
				"http://shop.example.com", "https://shop.example.com:8443", "https://example.com", "https://a.shop.example.com",
				"https://shop.example.com.evil.example", "https://evil-shop.example.com", "https://shop.example.com/", "null", "",
				"https://shop.example.com@evil.example", "https://shop.example.com#", "https://shop.example.com https://evil.example",
				"https://shop.example.com.", "https://shop.example.com:", "//shop.example.com", "shop.example.com",
			},
		},
		{
			"a wildcard",
			[]string{"https://*.example.com"},
			[]string{"https://a.example.com", "https://a.b.example.com"},
			[]string{
				"https://example.com", "https://evilexample.com", "https://.example.com", "https://*.example.com", "http://a.example.com",
				"https://a.example.com:8443", "https://a.example.com.evil.example", "https://evil.example/.example.com", "https://evil.example#.example.com",
				"https://evil.example:1.example.com", "https://a..example.com", "null",
			},
		},
		{
			"ports and schemes",
			[]string{"http://localhost:3000", "http://*.localhost:3000", "capacitor://localhost", "http://[::1]:8080", "http://127.0.0.1"},
			[]string{"http://localhost:3000", "http://shop.localhost:3000", "capacitor://localhost", "http://[::1]:8080", "http://127.0.0.1:80"},
			[]string{"http://localhost", "https://localhost:3000", "capacitor://evil", "http://[::1]", "http://[::2]:8080", "http://127.0.0.1:8080"},
		},
		{"null", []string{"null"}, []string{"null"}, []string{"https://a.example", "NULL", ""}},
		{"what was stored before it was checked", []string{"*", "example.com", "https://a.example/x"}, nil, []string{"https://a.example", "example.com", "*"}},
	}
	for _, test := range tests {
		app := chat.Application{AllowedOrigins: test.rules}
		for _, header := range test.allowed {
			if !app.AllowsOrigin(header) {
				t.Errorf("%s: got %q rejected, want it allowed", test.name, header)
			}
		}
		for _, header := range test.refused {
			if app.AllowsOrigin(header) {
				t.Errorf("%s: got %q allowed, want it rejected", test.name, header)
			}
		}
	}
}

func TestOriginsAreStoredInCanonicalForm(t *testing.T) {
	t.Parallel()
	got, faults := chat.CheckOrigins([]string{
		"HTTPS://Shop.Example.com:443", "http://localhost:03000", "https://*.EXAMPLE.com", "null", "http://[::1]:8080", "https://xn--bcher-kva.example",
	})
	want := []string{"https://shop.example.com", "http://localhost:3000", "https://*.example.com", "null", "http://[::1]:8080", "https://xn--bcher-kva.example"}
	if faults != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, faults, want)
	}
	if got, faults := chat.CheckOrigins(nil); got != nil || faults != nil {
		t.Errorf("none: got %v, %v, want none", got, faults)
	}
}

func TestMalformedOriginsAreRefused(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{
		"", "*", "*.example.com", "example.com", "https://", "https://*", "https://*.com", "https://*.*.example.com", "https://a.*.example.com",
		"https://*example.com", "https://*.127.0.0.1", "https://*.[::1]", "https://example.com/", "https://example.com/widget", "https://example.com?x", "https://example.com#x",
		"https://user@example.com", "https://user:pw@example.com", "https://example.com:0", "https://example.com:65536", "https://example.com:http", "https://example.com:",
		"https://example.com:*", "https://exa mple.com", " https://example.com", "https://bücher.example", "https://example..com", "https://example.com.", "1https://example.com",
		"https://[::1", "https://[1.2.3.4]", "https://[fe80::1%25eth0]", "Null", "https://" + strings.Repeat("a", 64) + ".example", "https://" + strings.Repeat("a.", 200) + "example",
	} {
		if _, faults := chat.CheckOrigins([]string{"https://fine.example", rule}); len(faults) != 1 || faults[0].Field != "allowedOrigins[1]" {
			t.Errorf("%q: got %v, want allowedOrigins[1] rejected", rule, faults)
		}
	}
	if _, faults := chat.CheckOrigins(make([]string, 101)); len(faults) != 1 || faults[0].Field != "allowedOrigins" {
		t.Errorf("too many: got %v, want allowedOrigins rejected", faults)
	}
}

func FuzzCheckOrigins(f *testing.F) {
	for _, seed := range []string{"https://a.example", "https://*.a.example:8443", "null", "http://[::1]:1", "*", "app://x", "https://a.example\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rule string) {
		checked, faults := chat.CheckOrigins([]string{rule})
		if faults != nil {
			return
		}
		again, faults := chat.CheckOrigins(checked)
		if faults != nil || !slices.Equal(again, checked) {
			t.Errorf("%q is stored as %q, which becomes %q, %v", rule, checked, again, faults)
		}
		o := chat.Origins(checked)
		switch {
		case strings.Contains(checked[0], "://*."):
			if sub := strings.Replace(checked[0], "*", "a", 1); !o.Allow(sub) || o.Allow(strings.Replace(checked[0], "*.", "", 1)) {
				t.Errorf("%q: want %q allowed and nothing without a label before it", checked[0], sub)
			}
		case !o.Allow(checked[0]):
			t.Errorf("%q does not allow itself", checked[0])
		}
		if strings.ContainsAny(checked[0], "/ \n\t@?#\\") && strings.Count(checked[0], "/") != 2 {
			t.Errorf("%q was accepted", rule)
		}
	})
}

func BenchmarkAllowsOrigin(b *testing.B) {
	app := chat.Application{AllowedOrigins: []string{"https://www.example.com", "https://*.example.org"}}
	b.ReportAllocs()
	for b.Loop() {
		app.AllowsOrigin("https://shop.example.org")
	}
}

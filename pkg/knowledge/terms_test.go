package knowledge_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/knowledge"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                             nil,
		"... \"'-_":                    nil,
		"How do I return an order?":    {"return", "order"},
		"Orders, ORDERS and orders":    {"order", "order", "order"},
		"BOT_WEBHOOK_URL":              {"botwebhookurl", "bot", "webhook", "url"},
		"isFromSupport":                {"isfromsupport", "support"},
		"HTTPServer2":                  {"httpserver2", "http", "server2"},
		"e-mail":                       {"email", "mail"},
		"don't; l’école; Ada's":        {"ecol", "ada"},
		"POST /message/send 404 v1.24": {"post", "messag", "send", "404", "v1", "24"},
		"Größe Straße Øre Łódź æon":    {"gross", "strass", "ore", "lodz", "aeon"},
		"café CAFÉ cafe\u0301":         {"caf", "caf", "caf"},
		"ﬁle １２":                       {"fil", "12"},
		"返品できますか":                      {"返品", "品て", "てき", "きま", "ます", "すか"},
		"本":                            {"本"},
		"반품 정책":                        {"반품", "정책"},
		"คืนสินค้า 5":                  {"คื", "ืน", "นส", "สิ", "ิน", "นค", "ค้", "้า", "5"},
		"iPhone 15を返品":                 {"iphon", "phon", "15", "を返", "返品"},
		strings.Repeat("a1", 100):      {strings.Repeat("a1", 32)},
	} {
		if got := knowledge.Terms(text); !slices.Equal(got, want) {
			t.Errorf("Terms(%q): got %q, want %q", text, got, want)
		}
	}
}

// TestFormsOfAWord checks that the forms of a word have one term.
func TestFormsOfAWord(t *testing.T) {
	t.Parallel()
	for _, forms := range []string{
		"order orders ordered ordering", "message messages messaged messaging", "retry retries retried retrying",
		"stop stops stopped stopping", "call calls called calling", "address addresses addressed", "use used uses using",
		"rotate rotates rotated rotating rotation", "connect connects connected connection connections",
		"delete deletes deleted deletion", "encrypt encrypted encryption", "write writes writing wrote written",
		"policy policies", "box boxes", "match matches", "status", "process processes processing", "send sent sends",
		"Kunde Kunden", "Bestellung Bestellungen", "Rechnung Rechnungen", "Paket Pakete Paketen Pakets", "Auto Autos",
		"facture factures", "journal journaux", "bateau bateaux", "client clients",
		"pedido pedidos", "error errores", "pagina página páginas",
	} {
		terms := knowledge.Terms(forms)
		if len(slices.Compact(slices.Clone(terms))) != 1 {
			t.Errorf("got %q for %q, want one term", terms, forms)
		}
	}
}

// TestOtherWords checks that words of different meanings keep different terms.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"format form", "string str", "status state", "king kings ring", "process proceed", "database data base",
		"need feed seed", "message massage", "bus business", "note not",
	} {
		parts := strings.Fields(words)
		first, second := knowledge.Terms(parts[0]), knowledge.Terms(parts[len(parts)-1])
		if slices.Equal(first, second) {
			t.Errorf("got %q for both %q and %q", first, parts[0], parts[len(parts)-1])
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, text := range []string{
		"How do I set BOT_WEBHOOK_URL?", "isFromSupport e-mail don't", "Größe café ﬁle", "返品できますか 반품 คืน", "\xff\u0301\u200d",
		strings.Repeat("longword", 20), "İstanbul ΌΔΟΣ",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := knowledge.Terms(text)
		if again := knowledge.Terms(text); !slices.Equal(terms, again) {
			t.Fatalf("got %q, then %q", terms, again)
		}
		for _, term := range terms {
			if term == "" || len(term) > 64 || !utf8.ValidString(term) {
				t.Errorf("got the term %q", term)
			}
			if strings.ContainsFunc(term, isSeparator) {
				t.Errorf("got %q, want letters and digits only", term)
			}
			if strings.ToLower(term) != term {
				t.Errorf("got %q, want small letters", term)
			}
		}
	})
}

func isSeparator(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}

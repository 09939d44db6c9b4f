package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// seen is what page.mjs says about the demo page.
type seen struct {
	Kind      string   `json:"kind"`
	Greetings int      `json:"greetings"`
	Complaint string   `json:"complaint"`
	Image     int      `json:"image"`
	Carousel  int      `json:"carousel"`
	Lines     string   `json:"lines"`
	Same      bool     `json:"same"`
	Before    []string `json:"before"`
	After     []string `json:"after"`
	Title     string   `json:"title"`
	Overflow  bool     `json:"overflow"`
	Faults    []string `json:"faults"`
}

// A visitor uses the demo page in a real browser, and the company answers with the very lines that the page shows.
func TestDemoPage(t *testing.T) {
	node, chromium, sh := need(t, "node"), need(t, "chromium"), need(t, "sh")
	need(t, "curl")
	s := commonStandalone(t)
	shots := cmp.Or(os.Getenv("PARLEY_SHOTS"), t.TempDir()) // set it to look at the page
	config, err := json.Marshal(map[string]string{"url": s.WidgetBaseURL + "/demo", "executable": chromium, "shots": shots})
	check(t, err)
	page, err := spawn("page.mjs", nil, node, "page.mjs", string(config))
	check(t, err)
	page.stopAtEnd(t)

	if got := nextSeen(t, page, "registered"); got.Greetings == 0 || !strings.HasPrefix(got.Complaint, "Missing required fields:") {
		t.Errorf("form: got %d greetings after the complaint %q, want greetings after Missing required fields", got.Greetings, got.Complaint)
	}
	if got := nextSeen(t, page, "shapes"); got.Image == 0 || got.Carousel == 0 {
		t.Errorf("got %d images and %d carousels, want both", got.Image, got.Carousel)
	}
	lines := nextSeen(t, page, "company").Lines
	if out, err := exec.CommandContext(t.Context(), sh, "-c", lines).CombinedOutput(); err != nil || !strings.Contains(string(out), "Message sent successfully") {
		t.Errorf("the page's lines for the company: got %s, %v\n%s", out, err, lines)
	}
	if got := nextSeen(t, page, "reloaded"); !got.Same || got.Title != "Demo Chat" {
		t.Errorf("after a reload: got %q with %v, want Demo Chat with %v", got.Title, got.After, got.Before)
	}
	if got := nextSeen(t, page, "phone"); got.Overflow {
		t.Error("on a phone the page is wider than the screen")
	}
	if got := nextSeen(t, page, "end"); len(got.Faults) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(got.Faults, "\n"))
	}
}

// nextSeen returns what the script says next, which must be of that kind, or the faults with which it ended.
func nextSeen(t *testing.T, page *child, kind string) seen {
	t.Helper()
	lines, err := page.await("{")
	check(t, err)
	var s seen
	check(t, json.Unmarshal([]byte(lines[len(lines)-1]), &s))
	if s.Kind != kind {
		t.Fatalf("page: got %s, want %s; faults: %s", s.Kind, kind, strings.Join(s.Faults, "\n"))
	}
	return s
}

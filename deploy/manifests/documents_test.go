package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	heading = regexp.MustCompile("(?m)^#+ (.*)$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	silent  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocumentsLeadSomewhere checks that every link of the documents has an existing file or heading as target.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(read(t, document)), ""), -1) {
			to, anchor, hasAnchor := strings.Cut(match[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			target := document
			if to != "" {
				target = filepath.Join(filepath.Dir(document), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: broken link %s", document, match[1])
				continue
			}
			if hasAnchor && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: %s has no such heading", document, match[1])
			}
		}
	}
}

// The table of the operators' guide has every secret of the pods.
func TestOperatorsDocumentsAreComplete(t *testing.T) {
	t.Parallel()
	operations := string(read(t, "docs/operations.md"))
	expected := regexp.MustCompile(`secretKeyRef: \{name: (parley-[a-z-]+), key: ([A-Z_]+)`)
	for _, deployment := range []string{"client-api", "widget-api", "socket-gateway", "processor", "panel"} {
		for _, ref := range expected.FindAllStringSubmatch(string(read(t, "k8s/base/"+deployment+"/deployment.yaml")), -1) {
			row := regexp.MustCompile("(?m)^\\| `" + ref[1] + "` \\|.*`" + ref[2] + "`")
			if !row.MatchString(operations) {
				t.Errorf("docs/operations.md: got no row of the secret %s with %s", ref[1], ref[2])
			}
		}
	}
}

// Each setting of the example edge is described.
func TestEdgeSettingsAreDescribed(t *testing.T) {
	t.Parallel()
	operations, described := string(read(t, "docs/operations.md")), 0
	for _, name := range []string{"Caddyfile", "tls.Caddyfile", "routes.Caddyfile"} {
		for _, variable := range regexp.MustCompile(`\{\$([A-Z_]+)`).FindAllStringSubmatch(string(read(t, "deploy/edge/"+name)), -1) {
			described++
			if !regexp.MustCompile("(?m)^\\|.*`" + variable[1] + "`").MatchString(operations) {
				t.Errorf("docs/operations.md: got no row of %s of deploy/edge/%s", variable[1], name)
			}
		}
	}
	if described < 10 {
		t.Errorf("got %d settings, want those of the three files", described)
	}
}

var (
	repositoryPath = regexp.MustCompile("`((?:deploy|docs|k8s|pkg|proto-events|services|testkit|web)/[^`\\s]+)`")
	step           = regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\| `([A-Za-z]+)` \\|")
)

// TestDocumentsNameWhatExists checks every path in the guides. Decisions and the changelog may name removed files.
func TestDocumentPathsExist(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t) {
		if strings.HasPrefix(document, "docs/decisions/") || document == "CHANGELOG.md" {
			continue
		}
		for _, match := range repositoryPath.FindAllStringSubmatch(string(read(t, document)), -1) {
			if found, err := filepath.Glob(filepath.Join(root, match[1])); err != nil || len(found) == 0 {
				t.Errorf("%s: %s does not exist", document, match[1])
			}
		}
	}
}

// TestArchitectureNamesFunctions checks that every function in docs/architecture.md exists in its file.
func TestArchitectureNamesFunctions(t *testing.T) {
	t.Parallel()
	steps := step.FindAllStringSubmatch(string(read(t, "docs/architecture.md")), -1)
	if len(steps) < 15 {
		t.Fatalf("got %d functions, want those of the page", len(steps))
	}
	for _, match := range steps {
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + match[2] + `\(`).Match(read(t, match[1])) {
			t.Errorf("%s has no function %s", match[1], match[2])
		}
	}
}

// documents returns README and similar files, and the files in docs.
func documents(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// anchors returns the anchors of a document's headings.
func anchors(t *testing.T, document string) []string {
	t.Helper()
	var names []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(read(t, document)), ""), -1) {
		names = append(names, strings.ReplaceAll(silent.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}

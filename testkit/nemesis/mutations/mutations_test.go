package mutations_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/testkit/needs"
)

const (
	// root is the repository's folder.
	root = "../../.."
	// wanted is how many mutations there are.
	wanted = 31
)

// mutation is a patch with its introduction.
type mutation struct {
	name, path string
	text       string
}

// mutations returns all patches, by their numbers.
func mutations(t *testing.T) (all []mutation) {
	t.Helper()
	files, err := filepath.Glob("*.patch")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		absolute, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, mutation{name: strings.TrimSuffix(file, ".patch"), path: absolute, text: string(text)})
	}
	return all
}

// files returns the files that a mutation changes.
func (m mutation) files() (changed []string) {
	for _, found := range regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`).FindAllStringSubmatch(m.text, -1) {
		changed = append(changed, found[1])
	}
	return changed
}

// packages returns the packages that a mutation changes, as arguments of go build.
func (m mutation) packages() (changed []string) {
	for _, file := range m.files() {
		changed = append(changed, "./"+path.Dir(file))
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

func TestNames(t *testing.T) {
	t.Parallel()
	all := mutations(t)
	if len(all) != wanted {
		t.Errorf("got %d mutations, want %d", len(all), wanted)
	}
	form := regexp.MustCompile(`^[0-9]{2}-([a-z-]+)$`)
	seen := map[string]bool{}
	for n, m := range all {
		found := form.FindStringSubmatch(m.name)
		number := fmt.Sprintf("%02d-", n+1)
		if found == nil || !strings.HasPrefix(m.name, number) {
			t.Errorf("got %q, want %s and words", m.name, number)
			continue
		}
		if seen[found[1]] {
			t.Errorf("two mutations are called %q", found[1])
		}
		seen[found[1]] = true
	}
}

// TestIntroductions checks that each patch says what it plants, which rules find it, and what that takes.
func TestIntroductions(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^Plants: (?s:.+?)\nRule: [a-z-]+(, [a-z-]+)*\nFault: (?s:.+?)\n\ndiff --git a/`)
	for _, m := range mutations(t) {
		if !form.MatchString(m.text) {
			t.Errorf("%s: got no Plants, Rule and Fault before the diff", m.name)
		}
		for _, file := range m.files() {
			production := strings.HasPrefix(file, "pkg/") || strings.HasPrefix(file, "services/")
			if !production || strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: got a change of %s, want production code", m.name, file)
			}
		}
	}
}

// TestPatchesApply checks the patches against the files as they are now.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	inRepository(t)
	for _, m := range mutations(t) {
		if out, err := git(root, "apply", "--check", m.path); err != nil {
			t.Errorf("%s does not apply: %v\n%s", m.name, err, out)
		}
	}
}

// TestMutationsCompile plants each mutation into copies of the files that it changes, and builds their packages with
// these files instead of the repository's.
func TestMutationsCompile(t *testing.T) {
	needs.Long(t)
	inRepository(t)
	for _, m := range mutations(t) {
		dir := t.TempDir()
		for _, file := range m.files() {
			copyFile(t, file, dir)
		}
		if out, err := git(dir, "apply", m.path); err != nil {
			t.Errorf("%s does not apply: %v\n%s", m.name, err, out)
			continue
		}
		build := exec.Command("go", append([]string{"build", "-overlay=" + m.overlay(t, dir)}, m.packages()...)...)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Errorf("%s does not compile: %v\n%s", m.name, err, out)
		}
	}
}

// overlay writes the file that makes go build read the changed files from a folder.
func (m mutation) overlay(t *testing.T, dir string) (path string) {
	t.Helper()
	replaced := map[string]string{}
	for _, file := range m.files() {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replaced[original] = filepath.Join(dir, file)
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inRepository skips a test in a tree without a git repository.
func inRepository(t *testing.T) {
	t.Helper()
	if _, err := git(root, "rev-parse"); err != nil {
		t.Skip("needs git and the repository: the patches are compared with its files")
	}
}

// git runs a command in a folder and returns what it writes.
func git(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// copyFile copies a file of the repository into another folder.
func copyFile(t *testing.T, file, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

package manifests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"github.com/parley-chat/parley/testkit/needs"
)

// images returns the services that the Dockerfile builds.
func images() []string {
	return []string{"client-api", "widget-api", "socket-gateway", "processor", "panel", "parleyctl"}
}

func dockerfile(t *testing.T) []instructions.Stage {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(read(t, "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("got warnings %v, want none", parsed.Warnings)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// stage returns the stage with that name.
func stage(t *testing.T, name string) instructions.Stage {
	t.Helper()
	for _, s := range dockerfile(t) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("the Dockerfile has no stage %s", name)
	return instructions.Stage{}
}

// every returns the commands of one type.
func every[T instructions.Command](s instructions.Stage) (found []T) {
	for _, c := range s.Commands {
		if c, ok := c.(T); ok {
			found = append(found, c)
		}
	}
	return found
}

// The image contains only a binary, runs it as an unprivileged user, and has a health check.
func TestImageContainsOnlyTheBinary(t *testing.T) {
	t.Parallel()
	stages := dockerfile(t)
	final := stages[len(stages)-1]
	if final.BaseName != "scratch" {
		t.Errorf("got base %s, want scratch", final.BaseName)
	}
	if runs := every[*instructions.RunCommand](final); len(runs) > 0 {
		t.Errorf("got %d RUN in an image without a shell", len(runs))
	}
	users := every[*instructions.UserCommand](final)
	if len(users) != 1 || users[0].User != "65532:65532" {
		t.Errorf("got USER %v, want 65532:65532", users)
	}
	checks := every[*instructions.HealthCheckCommand](final)
	if len(checks) != 1 || !slices.Equal(checks[0].Health.Test, []string{"CMD", "/service", "healthcheck"}) {
		t.Errorf("got HEALTHCHECK %+v, want the service's own", checks)
	}
	entries := every[*instructions.EntrypointCommand](final)
	if len(entries) != 1 || entries[0].PrependShell || !slices.Equal(entries[0].CmdLine, []string{"/service"}) {
		t.Errorf("got ENTRYPOINT %+v, want /service without a shell", entries)
	}
}

// The files that the Dockerfile copies exist, and are not excluded by .dockerignore.
func TestImageSourcesExist(t *testing.T) {
	t.Parallel()
	sent := strings.Split(string(read(t, ".dockerignore")), "\n")
	for _, image := range images() {
		for _, c := range append(every[*instructions.CopyCommand](stage(t, "web")), every[*instructions.CopyCommand](stage(t, "build"))...) {
			if c.From != "" { // created by another stage
				continue
			}
			for _, source := range c.SourcePaths {
				source = strings.ReplaceAll(source, "${SERVICE}", image)
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Errorf("%s: %v", image, err)
				}
				if top, _, _ := strings.Cut(source, "/"); !slices.Contains(sent, "!"+top) && !slices.Contains(sent, "!"+source) {
					t.Errorf("%s: .dockerignore excludes %s", image, source)
				}
			}
		}
	}
}

// The Dockerfile's build command creates one static binary with build information.
func TestImageBinaryIsStatic(t *testing.T) {
	t.Parallel()
	needs.Long(t)
	var build string
	for _, run := range every[*instructions.RunCommand](stage(t, "build")) {
		if line := strings.Join(run.CmdLine, " "); strings.Contains(line, "go build") {
			build = line
		}
	}
	for _, image := range images() {
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(build, "/out/", out+"/"))
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "SERVICE="+image, "VERSION=v1.2.3", "COMMIT=abc", "DATE=2026-01-02T03:04:05Z")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", image, err, text)
		}
		text, err := exec.CommandContext(t.Context(), filepath.Join(out, "service"), "--version").CombinedOutput()
		if err != nil || !strings.Contains(string(text), "v1.2.3") {
			t.Errorf("%s --version: got %q and %v, want the version", image, text, err)
		}
		if text, _ = exec.CommandContext(t.Context(), "ldd", filepath.Join(out, "service")).CombinedOutput(); !strings.Contains(string(text), "not a dynamic executable") {
			t.Errorf("%s: got %q, want a static binary", image, text)
		}
		info, err := os.Stat(filepath.Join(out, "service"))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %.1f MB", image, float64(info.Size())/1e6); info.Size() > 56e6 {
			t.Errorf("%s: got %d bytes, want an image below 56 MB", image, info.Size())
		}
	}
}

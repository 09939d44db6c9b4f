package manifests

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the fields we use of GitHub's type.
type workflow struct {
	Name        string                    `json:"name"`
	On          map[string]map[string]any `json:"on"`
	Permissions map[string]string         `json:"permissions"`
	Jobs        map[string]workflowJob    `json:"jobs"`
}

type workflowJob struct {
	RunsOn         string                     `json:"runs-on"`
	TimeoutMinutes int                        `json:"timeout-minutes"`
	Services       map[string]workflowService `json:"services,omitempty"`
	Steps          []workflowStep             `json:"steps"`
}

type workflowService struct {
	Image   string   `json:"image"`
	Ports   []string `json:"ports"`
	Options string   `json:"options"`
}

type workflowStep struct {
	Name string            `json:"name,omitempty"`
	If   string            `json:"if,omitempty"`
	Uses string            `json:"uses,omitempty"`
	Run  string            `json:"run,omitempty"`
	With map[string]any    `json:"with,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
}

// The workflow uses existing make targets, like contributors, and runs the store's tests on MongoDB itself.
func TestWorkflowRunsTheTargets(t *testing.T) {
	t.Parallel()
	var w workflow
	// YAML 1.1 parses on as true
	text := strings.Replace(string(read(t, ".github/workflows/ci.yml")), "\non:", "\n\"on\":", 1)
	if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	makefile := string(read(t, "Makefile"))
	var runs, tested string
	for name, job := range w.Jobs {
		if job.TimeoutMinutes == 0 {
			t.Errorf("%s has no timeout", name)
		}
		for _, step := range job.Steps {
			runs += step.Run + "\n"
			if uri := step.Env["MONGODB_URI"]; uri != "" && job.Services["mongodb"].Image != "" {
				tested = step.Run
			}
		}
	}
	for _, found := range regexp.MustCompile(`\bmake ([a-z-]+)`).FindAllStringSubmatch(runs+string(read(t, ".ci/run")), -1) {
		if !strings.Contains(makefile, "\n"+found[1]+":") {
			t.Errorf("there is no make %s", found[1])
		}
	}
	for name, job := range w.Jobs {
		for _, step := range job.Steps {
			if step.Uses != "" && !fullVersion.MatchString(step.Uses) {
				t.Errorf("%s uses %s, want a full version", name, step.Uses)
			}
		}
		for _, s := range job.Services {
			if !fullVersion.MatchString(s.Image) {
				t.Errorf("%s runs %s, want a full version", name, s.Image)
			}
		}
	}
	if !strings.Contains(runs, "make audit") || !strings.Contains(makefile, "/cmd/govulncheck)") || !strings.Contains(makefile, "\tnpm audit\n") {
		t.Error("no check for known vulnerabilities in Go and npm packages")
	}
	if !strings.Contains(runs, "make test-kubernetes") || !strings.Contains(runs, "scripts/cluster-chat") {
		t.Error("no job applies the manifests to a Kubernetes API server, or tests a chat in a cluster")
	}
	if !strings.Contains(runs, ".ci/run") || tested != "make test-mongodb" {
		t.Errorf("got %q on MongoDB, want .ci/run and make test-mongodb", tested)
	}
}

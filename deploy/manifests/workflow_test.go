package manifests

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow has the fields of GitHub's type that name something outside of the workflow.
type workflow struct {
	Jobs map[string]struct {
		Services map[string]struct {
			Image string `json:"image"`
		} `json:"services"`
		Steps []struct {
			Uses string `json:"uses"`
			Run  string `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

// The make targets of the workflow and of .ci/run exist, and what the workflow downloads has a full version.
func TestWorkflowNamesWhatExists(t *testing.T) {
	t.Parallel()
	var w workflow
	if err := yaml.Unmarshal(read(t, ".github/workflows/ci.yml"), &w); err != nil {
		t.Fatal(err)
	}
	commands := string(read(t, ".ci/run"))
	for name, job := range w.Jobs {
		for _, step := range job.Steps {
			commands += "\n" + step.Run
			if step.Uses != "" && !fullVersion.MatchString(step.Uses) {
				t.Errorf("%s: got %s, want a full version", name, step.Uses)
			}
		}
		for _, s := range job.Services {
			if !fullVersion.MatchString(s.Image) {
				t.Errorf("%s: got %s, want a full version", name, s.Image)
			}
		}
	}
	makefile := string(read(t, "Makefile"))
	targets := regexp.MustCompile(`\bmake ([a-z-]+)`).FindAllStringSubmatch(commands, -1)
	if len(targets) < 5 {
		t.Errorf("got the targets %v, want those of CI", targets)
	}
	for _, found := range targets {
		if !strings.Contains(makefile, "\n"+found[1]+":") {
			t.Errorf("there is no make %s", found[1])
		}
	}
}

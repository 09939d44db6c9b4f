package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// renderings caches results: rendering takes half a second, and many tests use the same objects.
var renderings sync.Map // by overlay and components: func() (map[string]string, error)

// rendered runs kustomize (the library used by kubectl) on an overlay with components, and returns its objects in YAML
// by kind and name.
func rendered(t *testing.T, overlay string, components ...string) map[string]string {
	t.Helper()
	once, _ := renderings.LoadOrStore(fmt.Sprint(overlay, components), sync.OnceValues(func() (map[string]string, error) {
		if len(components) == 0 {
			return kustomize(filepath.Join(root, "k8s/overlays", overlay))
		}
		return kustomizeWith(overlay, components)
	}))
	objects, err := once.(func() (map[string]string, error))()
	if err != nil {
		t.Fatalf("%s with %v: %v", overlay, components, err)
	}
	return objects
}

// rendering is held while kustomize runs: its runs share a schema that is not protected by a lock.
var rendering sync.Mutex

func kustomize(folder string) (map[string]string, error) {
	rendering.Lock()
	defer rendering.Unlock()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	objects := make(map[string]string)
	for _, r := range made.Resources() {
		objects[r.GetKind()+" "+r.GetName()] = r.MustYaml()
	}
	return objects, nil
}

// kustomizeWith renders a copy of an overlay with components, like an operator's overlay.
func kustomizeWith(overlay string, components []string) (objects map[string]string, err error) {
	dir, err := os.MkdirTemp("", "kustomize")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, part := range []string{"k8s", "deploy/grafana/dashboards"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(dir, "k8s/overlays", overlay, "kustomization.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := "\ncomponents:"
	for _, c := range components {
		list += "\n  - ../../components/" + c
	}
	if err := os.WriteFile(path, append(text, list+"\n"...), 0o600); err != nil {
		return nil, err
	}
	return kustomize(filepath.Dir(path))
}

// components returns all components.
func components(t *testing.T) (names []string) {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(root, "k8s/components"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		names = append(names, f.Name())
	}
	return names
}

// exclusive lists the two alternatives for scaling gateways on their connections.
var exclusive = []string{"connections", "keda-connections"}

// sets returns the combinations of components that are rendered: each alone, and as many as are compatible.
func sets(t *testing.T) [][]string {
	t.Helper()
	var found [][]string
	for _, c := range components(t) {
		found = append(found, []string{c})
	}
	for _, one := range exclusive {
		found = append(found, slices.DeleteFunc(components(t), func(c string) bool { return slices.Contains(exclusive, c) && c != one }))
	}
	return found
}

func setName(components []string) string {
	if len(components) > 1 {
		return fmt.Sprintf("%d with %s", len(components), components[slices.IndexFunc(components, func(c string) bool { return slices.Contains(exclusive, c) })])
	}
	return strings.Join(components, ",")
}

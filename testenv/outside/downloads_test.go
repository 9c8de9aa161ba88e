package outside

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

// TestDownloads: a module that imports the library for plugins downloads no module of Kubernetes but k8s.io/cri-api, although the
// root module requires many for the controller. The go command lists packages with an empty module cache, and takes what it
// downloads from the cache of this machine.
func TestDownloads(t *testing.T) {
	t.Parallel()
	needs.Linux(t)
	needs.Tier(t, needs.System) // it unpacks the libraries of Kubernetes
	const ours = "github.com/machineadm/machineadm/"
	modules := downloads(t, ours+"sdk", ours+"sdk/machine", ours+"sdk/machinetest")
	assert.Contains(t, modules, "google.golang.org/grpc", "the modules are those that were downloaded")
	assert.Subset(t, []string{"k8s.io/cri-api"}, kubernetes(modules))
	// The same way finds them where they are.
	assert.Contains(t, kubernetes(downloads(t, ours+"host/controller/api/bootstrap/v1alpha1")), "k8s.io/apimachinery")
}

// downloads returns the modules whose content a module with these imports needs.
func downloads(t *testing.T, imports ...string) []string {
	t.Helper()
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	dir, cache := t.TempDir(), t.TempDir()
	program := "package main\n\nimport (\n\t_ \"" + strings.Join(imports, "\"\n\t_ \"") + "\"\n)\n\nfunc main() {}\n"
	module := "module example.com/importer\n\ngo 1.26.0\n\nrequire github.com/machineadm/machineadm v0.0.0\n\n" +
		"replace github.com/machineadm/machineadm => " + checkout + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600))
	proxy := filepath.ToSlash(filepath.Join(strings.TrimSpace(run(t, root, nil, "go", "env", "GOMODCACHE")), "cache", "download"))
	run(t, dir, []string{
		"GOMODCACHE=" + cache, "GOPROXY=file://" + proxy, "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw",
	}, "go", "list", "-deps", "./...")
	var modules []string
	below := filepath.Join(cache, "cache", "download")
	require.NoError(t, filepath.WalkDir(below, func(name string, _ fs.DirEntry, err error) error {
		if module, found := strings.CutSuffix(filepath.ToSlash(filepath.Dir(name)), "/@v"); found && filepath.Ext(name) == ".zip" {
			modules = append(modules, strings.TrimPrefix(module, filepath.ToSlash(below)+"/"))
		}
		return err
	}))
	return modules
}

// kubernetes are the modules that belong to Kubernetes.
func kubernetes(modules []string) []string {
	var all []string
	for _, m := range modules {
		if strings.HasPrefix(m, "k8s.io/") || strings.HasPrefix(m, "sigs.k8s.io/") {
			all = append(all, m)
		}
	}
	return all
}

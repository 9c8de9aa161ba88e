// Package law checks the rules of this repository: imports, on every platform and through the
// whole dependency tree, file sizes and contents, and the words that the tree does not use. Every rule is a pure function.
package law

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/machineadm/machineadm"

// Package has the fields of the go command's description of a package that the rules use.
type Package struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

// Load describes every package of the checkout at root as the go command sees it on the named platform.
func Load(ctx context.Context, root, goos string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w: %s", goos, err, &complaint)
	}
	var all []Package
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		all = append(all, p)
	}
}

// Imports checks the imports of packages and of their tests, and returns every breach of the rules.
func Imports(packages []Package) []string {
	var breaches []string
	for _, p := range packages {
		for _, to := range p.Imports {
			breaches = breach(breaches, p.ImportPath, to, Import(p.ImportPath, to))
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			breaches = breach(breaches, p.ImportPath+" (test)", to, TestImport(p.ImportPath, to))
		}
		for _, to := range p.Deps {
			breaches = breach(breaches, p.ImportPath, to, dependency(p.ImportPath, to))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(breaches)))
}

func breach(all []string, from, to, why string) []string {
	if why == "" {
		return all
	}
	return append(all, fmt.Sprintf("%s imports %s: %s", from, to, why))
}

// Import returns why one package may not import the other; empty when it may.
func Import(from, to string) string {
	if why := TestImport(from, to); why != "" {
		return why
	}
	if to == "os/exec" && !under(from, "testenv", "sdk/machine", "internal", "contract/launch", "contract/conformance", "host/launch", "installer/release") {
		return "commands are started by sdk/machine and installer/release, plugins by host/launch and by the conformance kit"
	}
	return ""
}

// TestImport is Import for a package's tests, which may also start processes.
func TestImport(from, to string) string {
	if why := arrow(from, to); why != "" {
		return why
	}
	switch {
	case isYAML(to) && !under(from, "contract/document"):
		return "yaml is read and written by contract/document alone"
	case under(to, "contract/pluginv1/pb") && !under(from, "contract/pluginv1", "contract/conformance", "testenv"):
		return "generated code is used behind its adapter contract/pluginv1"
	case isKubernetes(to) && isPureController(from):
		return "what the controller decides is decided without Kubernetes"
	case isKubernetes(to) && isForNodes(from) && (!under(from, "internal/cri") || !isCRI(to)):
		return "no node binary imports Kubernetes, except k8s.io/cri-api in internal/cri"
	}
	return ""
}

// arrow checks the layers: 0 contract, internal; 1 sdk; 2 plugins, host; 3 installer; 4 testenv. Imports point down only.
func arrow(from, to string) string {
	if !under(to, "") || !under(from, "") || under(from, "testenv") {
		return ""
	}
	switch {
	case under(to, "testenv"):
		return "nothing imports testenv"
	case under(to, "installer") && !under(from, "installer") && (!under(from, "host/cmd/machineadm") || !isInstalling(to)):
		return "installer is for host/cmd/machineadm alone, and its release for no program"
	case under(from, "installer") && !under(to, "contract", "internal", "installer"):
		return "installer imports only contract and internal"
	case under(from, "internal") && !under(to, "internal"):
		return "internal has no domain words and imports only internal"
	case under(from, "contract") && !under(to, "contract", "internal"):
		return "the base imports nothing above it"
	case under(from, "sdk") && !under(to, "contract", "internal", "sdk"):
		return "sdk imports only contract and internal"
	case under(from, "host") && under(to, "sdk", "plugins"), under(from, "plugins") && under(to, "host"):
		return "host and plugins share only the wire protocol"
	case under(from, "plugins") && under(to, "plugins") && pluginType(from) != pluginType(to) && !under(to, "plugins/internal/cloud", "plugins/internal/form"):
		return "a plugin never imports another type's plugin"
	case under(to, "host/controller") && !isForManagement(from):
		return "the controller is for host/cmd/manager alone"
	}
	return ""
}

// dependency checks indirect imports: a library can add what may not be imported.
func dependency(from, to string) string {
	if isForNodes(from) && isKubernetes(to) && !isCRI(to) {
		return "no node binary depends on Kubernetes"
	}
	if isPureController(from) && isKubernetes(to) {
		return "what the controller decides is decided without Kubernetes"
	}
	if strings.HasPrefix(to, "github.com/containerd/") {
		return "containerd's code is for the nested module testenv/containerd/loader alone"
	}
	if strings.HasPrefix(to, "github.com/coreos/") || strings.HasPrefix(to, "github.com/siderolabs/") {
		return "the parsers of Ignition and Talos are for the nested module testenv/bootstrapdata/parsers alone"
	}
	return ""
}

// under reports whether a package of this module is in one of the folders; "" is the whole module.
func under(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		at := strings.TrimSuffix(module+"/"+folder, "/")
		return path == at || strings.HasPrefix(path, at+"/")
	})
}

func isForNodes(path string) bool {
	return under(path, "") && !under(path, "testenv") && !isForManagement(path)
}

// isForManagement reports whether a package is for the management cluster, and so may import Kubernetes.
func isForManagement(path string) bool { return under(path, "host/controller", "host/cmd/manager") }

// isInstalling reports whether a package installs releases on a node.
func isInstalling(path string) bool { return under(path, "installer/manifest", "installer/install") }

// isPureController reports whether a package of the controller does without Kubernetes.
func isPureController(path string) bool {
	return under(path, "host/controller/emit", "host/controller/wrap", "host/controller/kubernetesnode", "host/controller/token")
}

func isKubernetes(path string) bool {
	return strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "sigs.k8s.io/")
}

func isCRI(path string) bool {
	return path == "k8s.io/cri-api" || strings.HasPrefix(path, "k8s.io/cri-api/")
}

func isYAML(path string) bool {
	return slices.ContainsFunc([]string{"go.yaml.in/", "gopkg.in/yaml", "sigs.k8s.io/yaml", "github.com/goccy/go-yaml"},
		func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func pluginType(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, module+"/plugins/"), "/")
	return name
}

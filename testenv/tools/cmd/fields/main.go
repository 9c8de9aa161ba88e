// Command fields prints the fields of the configurations of the kubelet and of kube-proxy, with their types, or the feature gates, or the
// command line arguments, of the releases of Kubernetes that the plugin kubeadm supports. It reads the sources of Kubernetes from the module
// cache, into which it downloads them.
//
//	go run ./testenv/tools/cmd/fields > plugins/kubernetes-node/kubeadm/internal/settings/fields.txt
//	go run ./testenv/tools/cmd/fields gates > plugins/kubernetes-node/kubeadm/internal/settings/gates.txt
//	go run ./testenv/tools/cmd/fields arguments > plugins/kubernetes-node/kubeadm/internal/settings/arguments.txt
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"reflect"
	"slices"
	"strings"
)

const heading = `# The fields of KubeletConfiguration, KubeProxyConfiguration and PodSpec: kind, path, type, and the first minor version of Kubernetes that has it.
# {} is any key of a mapping, [] for an item of a list. Made by testenv/tools/cmd/fields from k8s.io/kubelet, k8s.io/kube-proxy
# and k8s.io/api.
`

// release is a release of the modules of Kubernetes.
type release struct {
	minor int
	// version is that of most modules, proxy that of k8s.io/kube-proxy. Any patch of a minor version has the same fields.
	version, proxy string
}

func releases() []release {
	return []release{
		{30, "v0.30.14", "v0.30.14"},
		{31, "v0.31.14", "v0.31.10"},
		{32, "v0.32.13", "v0.32.13"},
		{33, "v0.33.12", "v0.33.4"},
		{34, "v0.34.8", "v0.34.1"},
		{35, "v0.35.4", "v0.35.4"},
		{36, "v0.36.3", "v0.36.3"},
		{37, "v0.37.1", "v0.37.1"},
	}
}

func main() {
	run := fields
	switch {
	case slices.Equal(os.Args[1:], []string{"gates"}):
		run = gates
	case slices.Equal(os.Args[1:], []string{"arguments"}):
		run = arguments
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fields:", err)
		os.Exit(1)
	}
}

func fields() error {
	since, last := map[string]int{}, map[string]int{} // by kind, path and type
	for _, r := range releases() {
		s := source{release: r, packages: map[string]map[string]ast.Expr{}}
		for kind, in := range map[string]string{
			"KubeletConfiguration": "kubelet/config/v1beta1", "KubeProxyConfiguration": "kube-proxy/config/v1alpha1", "PodSpec": "api/core/v1",
		} {
			err := s.fields(in, ast.NewIdent(kind), "", func(at, what string) {
				line := kind + " " + strings.TrimPrefix(at, ".") + " " + what
				if since[line] == 0 {
					since[line] = r.minor
				}
				last[line] = r.minor
			})
			if err != nil {
				return fmt.Errorf("%s of %s: %w", kind, r.version, err)
			}
		}
	}
	fmt.Print(heading)
	for _, line := range slices.Sorted(maps.Keys(since)) {
		if newest := releases()[len(releases())-1].minor; last[line] != newest && !strings.HasPrefix(line, "PodSpec ") {
			return fmt.Errorf("%s: 1.%d does not have it, and the table has no field that ends", line, newest)
		}
		fmt.Println(line, since[line])
	}
	return nil
}

// source reads the types of a release.
type source struct {
	release
	packages map[string]map[string]ast.Expr
}

// types returns the types of a package, by their names.
func (s source) types(in string) (map[string]ast.Expr, error) {
	if known := s.packages[in]; known != nil {
		return known, nil
	}
	module, dir, _ := strings.Cut(in, "/")
	version := s.version
	if module == "kube-proxy" {
		version = s.proxy
	}
	files, err := parse(module, version, dir)
	if err != nil {
		return nil, err
	}
	types := map[string]ast.Expr{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				types[t.Name.Name] = t.Type
			}
			return true
		})
	}
	s.packages[in] = types
	return types, nil
}

// parse returns the files of a package of a module of Kubernetes, or of the server of etcd, without its tests.
func parse(module, version, dir string) ([]*ast.File, error) {
	if module = "k8s.io/" + module; module == "k8s.io/etcd" {
		module = "go.etcd.io/etcd/server/v3"
	}
	command := exec.CommandContext(context.Background(), "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = os.TempDir()
	out, err := command.Output()
	var found struct{ Dir string }
	if err = errors.Join(err, json.Unmarshal(out, &found)); err != nil {
		return nil, err
	}
	names := []string{dir}
	if path.Ext(dir) != ".go" {
		entries, err := os.ReadDir(path.Join(found.Dir, dir))
		if err != nil {
			return nil, err
		}
		names = nil
		for _, entry := range entries {
			if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				names = append(names, path.Join(dir, name))
			}
		}
	}
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), path.Join(found.Dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// special are types with a form of their own in JSON, and those whose rules are not of a configuration.
func special() map[string]string {
	return map[string]string{
		"metav1.Duration": "duration", "v1.Duration": "duration", "resource.QuantityValue": "quantity", "QuantityValue": "quantity",
		"TimeOrMetaDuration": "any", "v1.Taint": "any", "VModuleConfiguration": "any",
		// of pods: what a static pod does not have, or rarely
		"ResourceList": "any", "resource.Quantity": "quantity", "intstr.IntOrString": "any", "metav1.LabelSelector": "any", "Affinity": "any",
		"EphemeralContainer": "any", "PodResourceClaim": "any", "ResourceClaim": "any", "TopologySpreadConstraint": "any", "WindowsSecurityContextOptions": "any",
		"Lifecycle": "any", "EnvVarSource": "any", "EnvFromSource": "any", "PodSchedulingGroup": "any", "WorkloadReference": "any",
	}
}

// isSource reports whether a type is a source of volumes that a static pod does not have, or rarely.
func isSource(name string) bool {
	return strings.HasSuffix(name, "VolumeSource") && name != "VolumeSource" && name != "HostPathVolumeSource" && name != "EmptyDirVolumeSource"
}

// elsewhere are the packages of a selector.
func elsewhere() map[string]string {
	return map[string]string{
		"logsapi": "component-base/logs/api/v1", "tracingapi": "component-base/tracing/api/v1", "componentbaseconfigv1alpha1": "component-base/config/v1alpha1",
	}
}

// fields calls add for what of a type has a value.
func (s source) fields(in string, of ast.Expr, at string, add func(at, what string)) error {
	switch t := of.(type) {
	case *ast.StarExpr:
		return s.fields(in, t.X, at, add)
	case *ast.ArrayType:
		return s.fields(in, t.Elt, at+"[]", add)
	case *ast.MapType:
		return s.fields(in, t.Value, at+"{}", add)
	case *ast.SelectorExpr:
		name := fmt.Sprint(t.X)
		if t.Sel.Name == "ResourceList" {
			add(at+"{}", "quantity")
			return nil
		}
		if what := special()[name+"."+t.Sel.Name]; what != "" {
			add(at, what)
			return nil
		}
		if elsewhere()[name] == "" {
			return fmt.Errorf("%s: the type %s.%s is not known", at, name, t.Sel.Name)
		}
		return s.fields(elsewhere()[name], t.Sel, at, add)
	case *ast.StructType:
		return s.members(in, t, at, add)
	case *ast.Ident:
		if what := special()[t.Name]; what != "" {
			add(at, what)
			return nil
		}
		if isSource(t.Name) || strings.HasPrefix(at, ".initContainers") { // which are as containers
			add(strings.TrimSuffix(at, "[]"), "any")
			return nil
		}
		if slices.Contains([]string{"string", "bool", "int32", "int64", "uint32", "float32", "float64"}, t.Name) {
			add(at, t.Name)
			return nil
		}
		types, err := s.types(in)
		if err != nil {
			return err
		}
		if types[t.Name] == nil {
			return fmt.Errorf("%s: %s does not have the type %s", at, in, t.Name)
		}
		return s.fields(in, types[t.Name], at, add)
	}
	return fmt.Errorf("%s: %T is not known", at, of)
}

func (s source) members(in string, of *ast.StructType, at string, add func(at, what string)) error {
	for _, f := range of.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag = reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		next := at + "." + name
		switch {
		case len(f.Names) == 0 && strings.Contains(fmt.Sprint(f.Type), "TypeMeta"):
			continue
		case len(f.Names) == 0 || strings.Contains(options, "inline"):
			next = at
		case name == "" || name == "-":
			return fmt.Errorf("%s: %s has no name", at, f.Names[0].Name)
		}
		if err := s.fields(in, f.Type, next, add); err != nil {
			return err
		}
	}
	return nil
}

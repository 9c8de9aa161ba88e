package main

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const argumentsHeading = `# The command line arguments of the kubelet, of the components of the control plane and of the etcd of kubeadm: whose, name, type, the first
# and the last minor version of Kubernetes that has it. Texts that all versions have are left out.
# Made by testenv/tools/cmd/fields from the modules of Kubernetes and etcd.
`

// argumentPackages are the packages that declare arguments, whose they are, and the module of each.
func argumentPackages() [][3]string {
	all := [][3]string{
		{"kubelet", "kubernetes", "cmd/kubelet/app/options"},
		{"kubelet", "kubernetes", "pkg/kubelet/config"},
		{"kube-apiserver", "kubernetes", "cmd/kube-apiserver/app/options"},
		{"kube-apiserver", "kubernetes", "pkg/controlplane/apiserver/options"},
		{"kube-apiserver", "kubernetes", "pkg/kubeapiserver/options"},
		{"kube-controller-manager", "kubernetes", "cmd/kube-controller-manager/app/options"},
		{"kube-controller-manager", "controller-manager", "options"},
		{"kube-controller-manager", "controller-manager", "pkg/leadermigration/options"},
		{"kube-controller-manager", "cloud-provider", "options"},
		{"kube-controller-manager", "component-base", "config/options"},
		{"kube-scheduler", "kubernetes", "cmd/kube-scheduler/app/options"},
		{"kube-scheduler", "component-base", "config/options"},
		{"etcd", "etcd", "embed"},
		{"etcd", "etcd", "etcdmain"},
	}
	for _, server := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all = append(all, [3]string{server, "apiserver", "pkg/server/options"})
	}
	return all
}

// etcdOf returns the version of etcd that kubeadm of a minor version has. Source: DefaultEtcdVersion of its constants.
func etcdOf(minor int) string {
	switch {
	case minor < 34:
		return "v3.5.24"
	case minor < 37:
		return "v3.6.8"
	}
	return "v3.7.0"
}

// argument is an argument over the releases.
type argument struct {
	what        string
	first, last int
}

var declares = regexp.MustCompile(`^(?:Var|(Bool|Duration|String|Int|Int32|Int64|Uint|Uint16|Uint32|Uint64|Float32|Float64|IP)Var|[A-Za-z0-9]+Var)P?$`)

func arguments() error {
	all := map[string]*argument{}
	for _, r := range releases() {
		for _, p := range argumentPackages() {
			files, err := parse(p[1], argumentVersion(p[1], r), p[2])
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package of other releases
				return fmt.Errorf("%s of 1.%d: %w", p[2], r.minor, err)
			}
			for _, f := range files {
				for name, what := range argumentsOf(f) {
					key := p[0] + " " + name
					if all[key] == nil {
						all[key] = &argument{first: r.minor}
					}
					all[key].what, all[key].last = what, r.minor
				}
			}
		}
	}
	fmt.Print(argumentsHeading)
	newest, oldest := releases()[len(releases())-1].minor, releases()[0].minor
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a := all[name]; a.what != "text" || a.first > oldest || a.last < newest {
			fmt.Println(name, a.what, a.first, a.last)
		}
	}
	return nil
}

func argumentVersion(module string, r release) string {
	switch module {
	case "kubernetes":
		return "v1" + strings.TrimPrefix(r.version, "v0")
	case "etcd":
		return etcdOf(r.minor)
	}
	return r.version
}

// argumentsOf returns the types of the arguments that a file declares, text for those that any text is valid of as far as the declaration
// says.
func argumentsOf(f *ast.File) map[string]string {
	all := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		name, isText := call.Args[1].(*ast.BasicLit)
		if !ok || !isText {
			return true
		}
		text, err := strconv.Unquote(name.Value)
		if m := declares.FindStringSubmatch(function.Sel.Name); m != nil && err == nil && text != "" {
			if all[text] = strings.ToLower(m[1]); all[text] == "" || all[text] == "string" {
				all[text] = "text"
			}
		}
		return true
	})
	return all
}

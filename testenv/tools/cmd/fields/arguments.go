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
# and the last minor version of Kubernetes that has it. A list is of texts with commas between them. What is of controllers are the names of
# controllers that kube-controller-manager takes in its argument of that name.
# Made by testenv/tools/cmd/fields from the modules of Kubernetes and etcd.
`

// argumentPackages are the packages, or files of packages, that declare arguments, whose they are, and the module of each.
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
		{"kube-controller-manager", "cloud-provider", "options/cloudprovider.go"},
		{"kube-controller-manager", "cloud-provider", "options/kubecloudshared.go"},
		{"kube-controller-manager", "cloud-provider", "options/servicecontroller.go"},
		{"kube-controller-manager", "component-base", "config/options"},
		{"kube-scheduler", "kubernetes", "cmd/kube-scheduler/app/options"},
		{"kube-scheduler", "component-base", "config/options"},
		{"etcd", "etcd", "embed"},
		{"etcd", "etcd", "etcdmain/config.go"},
	}
	for _, server := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		for _, file := range []string{"serving.go", "serving_unix.go", "authentication.go", "authorization.go"} {
			if server == "kube-apiserver" && file == "authorization.go" {
				continue // it has its own
			}
			all = append(all, [3]string{server, "apiserver", "pkg/server/options/" + file})
		}
		all = append(all, [3]string{server, "component-base", "metrics"}, [3]string{server, "component-base", "compatibility"})
	}
	for _, file := range []string{"admission.go", "api_enablement.go", "audit.go", "egress_selector.go", "etcd.go", "feature.go", "server_run_options.go", "tracing.go"} {
		all = append(all, [3]string{"kube-apiserver", "apiserver", "pkg/server/options/" + file})
	}
	for _, program := range []string{"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		for _, in := range []string{"logs", "logs/api/v1", "logs/klogflags", "featuregate", "version/verflag"} {
			all = append(all, [3]string{program, "component-base", in})
		}
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

var declares = regexp.MustCompile(`^(?:(?:Var|(Bool|Duration|String|StringSlice|Int|Int32|Int64|Uint|Uint16|Uint32|Uint64|Float32|Float64|IP)Var|[A-Za-z0-9]+Var)P?|(r)egister(?:Deprecated)?)$`)

func arguments() error {
	// What is declared in another way.
	all := map[string]*argument{
		"kube-apiserver default-not-ready-toleration-seconds":   {"int64", 30, 37},
		"kube-apiserver default-unreachable-toleration-seconds": {"int64", 30, 37},
		"etcd feature-gates": {"text", 34, 37},
	}
	for _, r := range releases() {
		names, err := controllers(argumentVersion("kubernetes", r), r.version)
		if err != nil {
			return err
		}
		for _, name := range names {
			key := "controllers " + name
			if all[key] == nil {
				all[key] = &argument{what: "name", first: r.minor}
			}
			all[key].last = r.minor
		}
		for _, p := range argumentPackages() {
			files, err := parse(p[1], argumentVersion(p[1], r), p[2])
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package of other releases
				return fmt.Errorf("%s of 1.%d: %w", p[2], r.minor, err)
			}
			for _, f := range files {
				for name, what := range argumentsOf(f, textConstants(files)) {
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
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a := all[name]
		fmt.Println(name, a.what, a.first, a.last)
	}
	return nil
}

// controllers returns the names and the aliases of the controllers of kube-controller-manager, of the versions of k8s.io/kubernetes and of
// k8s.io/cloud-provider, which has the names of the controllers of clouds.
func controllers(version, cloud string) (all []string, err error) {
	const in = "cmd/kube-controller-manager/"
	names, err := parse("kubernetes", version, in+"names")
	more, err2 := parse("cloud-provider", cloud, "names")
	files, err3 := parse("kubernetes", version, in+"app")
	constants := textConstants(append(names, more...))
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, _ := pair.Key.(*ast.Ident)
			switch value := pair.Value.(type) {
			case *ast.SelectorExpr:
				if name := constants[value.Sel.Name]; name != "" && key != nil && key.Name == "name" {
					all = append(all, name)
				}
			case *ast.CompositeLit:
				for _, alias := range value.Elts {
					if text, ok := alias.(*ast.BasicLit); ok && key != nil && key.Name == "aliases" {
						name, _ := strconv.Unquote(text.Value) // it compiles
						all = append(all, name)
					}
				}
			}
			return true
		})
	}
	return all, errors.Join(err, err2, err3)
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

// textConstants returns the texts that the constants of a package are.
func textConstants(files []*ast.File) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					if text, ok := value.(*ast.BasicLit); ok {
						all[spec.Names[i].Name], _ = strconv.Unquote(text.Value) // a number has none
					}
				}
			}
			return true
		})
	}
	return all
}

// argumentsOf returns the types of the arguments that a file declares, text for those that any text is valid of as far as the declaration
// says.
func argumentsOf(f *ast.File, constants map[string]string) map[string]string {
	all := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		function := ""
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			function = f.Sel.Name
		case *ast.Ident:
			function = f.Name
		}
		m := declares.FindStringSubmatch(function)
		if m == nil {
			return true
		}
		what, name := strings.ToLower(m[1]), call.Args[1]
		switch {
		case m[2] != "": // of a flag that a library declares
			what, name = "text", call.Args[2]
		case what == "stringslice":
			what = "list"
		case what == "" || what == "string":
			what = "text"
		}
		for _, text := range namesOf(name, constants) {
			all[strings.ReplaceAll(text, "_", "-")] = what // the components accept both
		}
		return true
	})
	return all
}

// namesOf returns the texts that the name of a flag is: one for each kind of audit backend where it is made of that.
func namesOf(name ast.Expr, constants map[string]string) []string {
	text := ""
	switch name := name.(type) {
	case *ast.BasicLit:
		text, _ = strconv.Unquote(name.Value) // it compiles
	case *ast.Ident:
		text = constants[name.Name]
	case *ast.CallExpr:
		if format, ok := name.Args[0].(*ast.BasicLit); ok && len(name.Args) == 2 {
			text, _ = strconv.Unquote(format.Value)
		}
	}
	switch {
	case text == "":
		return nil
	case strings.Count(text, "%s") == 1:
		return []string{strings.Replace(text, "%s", "log", 1), strings.Replace(text, "%s", "webhook", 1)}
	}
	return []string{text}
}

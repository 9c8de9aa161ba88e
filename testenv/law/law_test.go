package law

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestImportsOfTheTree(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			packages, err := Load(t.Context(), root, goos)
			if err != nil {
				t.Fatal(err)
			}
			if len(packages) < 3 {
				t.Fatalf("go list names %d packages: too few were checked", len(packages))
			}
			for _, breach := range Imports(packages) {
				t.Error(breach)
			}
		})
	}
}

func TestFilesOfTheTree(t *testing.T) {
	t.Parallel()
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("%d files are found: too few were checked", len(files))
	}
	breaches, err := PackageComments(files)
	if err != nil {
		t.Fatal(err)
	}
	breaches = append(breaches, TopLevel(files)...)
	for _, f := range files {
		broken, warnings, err := Source(f)
		if err != nil {
			t.Error(err)
		}
		for _, w := range warnings {
			t.Log("warning:", w)
		}
		breaches = append(append(breaches, broken...), Places(f)...)
		if strings.HasSuffix(f.Path, ".go") && !strings.HasSuffix(f.Path, "_test.go") && !strings.Contains(f.Path, "testdata/") &&
			!strings.HasPrefix(f.Path, "testenv/") && !strings.HasPrefix(f.Path, "internal/httpclient/") {
			clients, err := Clients(f.Path, f.Data)
			if err != nil {
				t.Error(err)
			}
			breaches = append(breaches, clients...)
		}
	}
	for _, b := range breaches {
		t.Error(b)
	}
}

// Each line is one import in a pretended repository, and a word of the refusal; "" is allowed.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, why string }{
		{"contract/document", "internal/atomicfile", ""},
		{"contract/document", "contract/target", ""},
		{"contract/document", "sdk", "the base"},
		{"contract/document", "host/run", "the base"},
		{"contract/document", "plugins/sysctl/procfs", "the base"},
		{"contract/document", "testenv/nodes", "testenv"},
		{"internal/atomicfile", "internal/version", ""},
		{"internal/atomicfile", "contract/target", "no domain words"},
		{"internal/atomicfile", "sdk/machine", "no domain words"},
		{"sdk", "contract/pluginv1", ""},
		{"sdk", "sdk/machine", ""},
		{"sdk", "plugins/sysctl/procfs", "sdk imports only"},
		{"sdk", "host/launch", "sdk imports only"},
		{"sdk", "testenv/nodes", "testenv"},
		{"sdk", "contract/pluginv1/pb", "adapter"},
		{"plugins/sysctl/procfs", "sdk", ""},
		{"plugins/sysctl/procfs", "contract/v1alpha1", ""},
		{"plugins/sysctl/procfs", "plugins/sysctl/internal/files", ""},
		{"plugins/sysctl/procfs", "plugins/timesync/chronyd", "another type"},
		{"plugins/sysctl/procfs", "plugins/sysctlx/procfs", "another type"},
		{"plugins/remote-config/http", "plugins/internal/cloud", ""},
		{"plugins/encrypted-config/vault", "plugins/internal/cloud", ""},
		{"plugins/encrypted-config/vault", "plugins/internal/other", "another type"},
		{"plugins/encrypted-config/file", "plugins/remote-config/file", "another type"},
		{"plugins/internal/cloud", "plugins/remote-config/http", "another type"},
		{"plugins/internal/cloud", "sdk", ""},
		{"plugins/sysctl/procfs", "host/run", "share only the wire"},
		{"plugins/sysctl/procfs", "installer/manifest", "for host/cmd/machineadm alone"},
		{"sdk", "installer/manifest", "for host/cmd/machineadm alone"},
		{"host/run", "installer/install", "for host/cmd/machineadm alone"},
		{"host/cmd/manager", "installer/install", "for host/cmd/machineadm alone"},
		{"host/cmd/machineadm/cli", "installer/install", ""},
		{"host/cmd/machineadm/cli", "installer/manifest", ""},
		{"host/cmd/machineadm/cli", "installer/release", "for no program"},
		{"host/run", "contract/report", ""},
		{"host/run", "host/launch", ""},
		{"host/run", "sdk", "share only the wire"},
		{"host/run", "sdk/machine", "share only the wire"},
		{"host/run", "plugins/sysctl/procfs", "share only the wire"},
		{"host/run", "testenv/noop", "testenv"},
		{"host/run", "contract/pluginv1/pb", "adapter"},
		{"installer/install", "host/run", "installer imports only"},
		{"installer/install", "sdk/machine", "installer imports only"},
		{"installer/release", "plugins/sysctl/procfs", "installer imports only"},
		{"installer/release", "installer/manifest", ""},
		{"installer/install", "internal/trust", ""},
		{"installer/manifest", "contract/document", ""},
		{"installer/release", "=os/exec", ""},
		{"installer/install", "=os/exec", "commands are started by"},
		{"testenv/nodes", "host/run", ""},
		{"testenv/nodes", "contract/pluginv1/pb", ""},
		{"contract/pluginv1", "contract/pluginv1/pb", ""},
		{"contract/conformance", "contract/pluginv1/pb", ""},
		{"host/run", "=os/exec", "commands are started by"},
		{"sdk", "=os/exec", "commands are started by"},
		{"plugins/sysctl/procfs", "=os/exec", "commands are started by"},
		{"sdk/machine", "=os/exec", ""},
		{"host/launch", "=os/exec", ""},
		{"contract/launch", "=os/exec", ""},
		{"internal/process", "=os/exec", ""},
		{"testenv/nodes", "=os/exec", ""},
		{"contract/document", "=go.yaml.in/yaml/v4", ""},
		{"host/run", "=go.yaml.in/yaml/v4", "yaml"},
		{"testenv/nodes", "=gopkg.in/yaml.v3", "yaml"},
		{"host/cmd/machineadm", "=k8s.io/api/core/v1", "Kubernetes"},
		{"plugins/sysctl/procfs", "=sigs.k8s.io/cluster-api/util", "Kubernetes"},
		{"host/run", "=k8s.io/cri-api/pkg/apis/runtime/v1", "Kubernetes"},
		{"internal/cri", "=k8s.io/cri-api/pkg/apis/runtime/v1", ""},
		{"internal/cri", "=k8s.io/api/core/v1", "Kubernetes"},
		{"host/controller/emit", "=k8s.io/api/core/v1", "without Kubernetes"},
		{"host/controller/wrap", "=sigs.k8s.io/cluster-api/util", "without Kubernetes"},
		{"host/controller/kubernetesnode", "=k8s.io/cri-api/pkg/apis/runtime/v1", "without Kubernetes"},
		{"host/controller/token", "=k8s.io/cluster-bootstrap/token/api", "without Kubernetes"},
		{"host/controller", "=sigs.k8s.io/controller-runtime", ""},
		{"host/controller/render", "=k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", ""},
		{"host/controller", "host/controller/emit", ""},
		{"host/cmd/manager", "host/controller", ""},
		{"host/cmd/machineadm", "host/controller/emit", "for host/cmd/manager alone"},
		{"host/run", "host/controller", "for host/cmd/manager alone"},
		{"plugins/sysctl/procfs", "host/controller/emit", "share only the wire"},
		{"sdk", "host/controller/emit", "sdk imports only"},
		{"testenv/bench", "host/controller/wrap", ""},
		{"host/cmd/manager", "=sigs.k8s.io/controller-runtime", ""},
		{"testenv/cluster", "=k8s.io/client-go", ""},
	} {
		t.Run(c.from+" "+c.to, func(t *testing.T) {
			t.Parallel()
			to, foreign := strings.CutPrefix(c.to, "=")
			if !foreign {
				to = module + "/" + to
			}
			why := Import(module+"/"+c.from, to)
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("says %q, want %q", why, c.why)
			}
		})
	}
}

func TestImportsLooksAtTestsAndDependencies(t *testing.T) {
	t.Parallel()
	got := Imports([]Package{
		{ImportPath: module + "/host/run", TestImports: []string{"os/exec", module + "/internal/require", module + "/testenv/noop"}},
		{ImportPath: module + "/host/state", XTestImports: []string{module + "/sdk"}},
		{ImportPath: module + "/host/launch", Imports: []string{"os/exec", "example.com/library"}, Deps: []string{"example.com/library", "k8s.io/klog/v2"}},
		{ImportPath: module + "/host/cmd/manager", Deps: []string{"k8s.io/klog/v2"}},
		{ImportPath: module + "/internal/cri", Deps: []string{"k8s.io/cri-api/pkg/apis"}},
		{ImportPath: module + "/testenv/bench", Deps: []string{"github.com/containerd/containerd/v2/version"}},
		{ImportPath: module + "/host/controller/wrap", Deps: []string{"k8s.io/klog/v2"}},
		{ImportPath: module + "/testenv/bootstrapdata", Deps: []string{"github.com/coreos/ignition/v2/config/v3_5", "github.com/siderolabs/talos/pkg/machinery/config"}},
	})
	const parsers = "the parsers of Ignition and Talos are for the nested module testenv/bootstrapdata/parsers alone"
	want := []string{
		module + "/host/controller/wrap imports k8s.io/klog/v2: what the controller decides is decided without Kubernetes",
		module + "/host/launch imports k8s.io/klog/v2: no node binary depends on Kubernetes",
		module + "/host/run (test) imports " + module + "/testenv/noop: nothing imports testenv",
		module + "/host/state (test) imports " + module + "/sdk: host and plugins share only the wire protocol",
		module + "/testenv/bench imports github.com/containerd/containerd/v2/version: containerd's code is for the nested module testenv/containerd/loader alone",
		module + "/testenv/bootstrapdata imports github.com/coreos/ignition/v2/config/v3_5: " + parsers,
		module + "/testenv/bootstrapdata imports github.com/siderolabs/talos/pkg/machinery/config: " + parsers,
	}
	if !slices.Equal(got, want) {
		t.Errorf("breaches:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSourceRefuses(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return "package p\n" + strings.Repeat("\n", n-1) }
	for name, c := range map[string]struct{ path, text, breach, warning string }{
		"init":                   {"a/a.go", "package a\n\nfunc init() {}\n", "func init()", ""},
		"init in a test":         {"a/a_test.go", "package a\n\nfunc init() {}\n", "func init()", ""},
		"a thread in a test":     {"a/a_test.go", "package a\n\nfunc init() { runtime.LockOSThread() }\n", "", ""},
		"a thread":               {"a/a.go", "package a\n\nfunc init() { runtime.LockOSThread() }\n", "func init()", ""},
		"a method called init":   {"a/a.go", "package a\n\ntype t int\n\nfunc (t) init() {}\n", "", ""},
		"generated":              {"a/a.go", "// Code generated by x. DO NOT EDIT.\n\n" + long(500) + "func init() {}\n", "", ""},
		"300 lines":              {"a/a.go", long(300), "", ""},
		"301 lines":              {"a/a.go", long(301), "", "301 lines"},
		"401 lines":              {"a/a.go", long(401), "401 lines", ""},
		"a long test":            {"a/a_test.go", long(401), "", "401 lines"},
		"test data is no source": {"a/testdata/a.go", "no Go at all", "", ""},
		"not Go":                 {"a/a.md", "func init() {}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			breaches, warnings, err := Source(File{c.path, []byte(c.text)})
			if err != nil {
				t.Fatal(err)
			}
			expectOne(t, "breach", breaches, c.breach)
			expectOne(t, "warning", warnings, c.warning)
		})
	}
	if _, _, err := Source(File{"a/a.go", []byte("no Go at all")}); err == nil {
		t.Error("a file that is not Go is accepted")
	}
}

func expectOne(t *testing.T, what string, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) != 0:
		t.Errorf("%s: %q, want none", what, got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("%s: %q, want one with %q", what, got, want)
	}
}

func TestPackageCommentsRefuses(t *testing.T) {
	t.Parallel()
	got, err := PackageComments([]File{
		{"said/a.go", []byte("package said\n")},
		{"said/doc.go", []byte("// Package said is explained.\npackage said\n")},
		{"silent/a.go", []byte("package silent\n")},
		{"only/test_test.go", []byte("// Package only is a test.\npackage only\n")},
		{"apart/a.go", []byte("// Something apart.\n\npackage apart\n")},
		{"pb/a.go", []byte("// Code generated by x. DO NOT EDIT.\n\npackage pb\n")},
		{"x/testdata/a.go", []byte("package x\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "apart: has no package comment,silent: has no package comment"
	if strings.Join(got, ",") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlacesRefuses(t *testing.T) {
	t.Parallel()
	host := func(labels ...string) string { return strings.Join(labels, ".") }
	for text, found := range map[string]bool{
		"deb http://" + host("deb", "debian", "org") + "/debian bookworm main": true,
		"image: " + host("registry-1", "docker", "io") + "/library/x":          true,
		"image: " + host("europe", "gcr", "io"):                                true,
		"GOPROXY=https://" + host("proxy", "golang", "org") + ",direct":        true,
		"cd /wo" + "rk/main/bin":                                               true,
		"cp x /ro" + "ot/.cache/y":                                             true,
		"server: ntp1.example.com":                                             false,
		"mygcr.iox and dockerxio":                                              false,
		"home: /root, and /work for the work":                                  false,
		"see https://www.debian.org/doc/":                                      false,
	} {
		if got := Places(File{"f", []byte("first\n" + text + "\n")}); (len(got) == 1) != found || found && !strings.HasPrefix(got[0], "f:2: ") {
			t.Errorf("%q: %q, want found: %v", text, got, found)
		}
	}
}

func TestTopLevelRefuses(t *testing.T) {
	t.Parallel()
	got := TopLevel([]File{
		{"go.mod", nil},
		{".ci/run", nil},
		{"contract/a.go", nil},
		{"notes.txt", nil},
		{"pkg/a/a.go", nil},
		{"pkg/b/b.go", nil},
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "notes.txt:") || !strings.HasPrefix(got[1], "pkg:") {
		t.Errorf("strangers: %q", got)
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`import "net/http"; var _ = http.Client{}`: 1, `import "net/http"; var _ = &http.Transport{}`: 1, `import "net/http"; var _ = http.DefaultClient`: 1,
		`import web "net/http"; var _ = web.Get`: 1, `import "net/http"; var c http.Client`: 1, `import "net/http"; var c = new(http.Client)`: 1,
		`import "net/http"; var c *http.Client`: 0, `import "net/http"; var r http.Request`: 0, `import http "example.com/x"; var _ = http.Get`: 0,
	} {
		got, err := Clients("a.go", []byte("package a; "+text))
		if err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestMapOfTests: the README of testenv names each of its folders.
func TestMapOfTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/testenv/README.md")
	folders, e := os.ReadDir(root + "/testenv")
	if err = errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.IsDir() && !strings.Contains(string(text), "`"+f.Name()+"`") {
			t.Errorf("testenv/README.md does not name %s", f.Name())
		}
	}
}

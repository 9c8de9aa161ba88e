package management

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/tools"
)

// provider is a provider of Cluster API: a program, and manifests that are in the module of its source.
type provider struct {
	program, module, directory string
	webhooks                   int // port, from the cluster's first
	arguments                  []string
}

const (
	module     = "sigs.k8s.io/cluster-api"
	testModule = "sigs.k8s.io/cluster-api/test"
	topology   = "--feature-gates=ClusterTopology=true"
)

func core() provider {
	return provider{program: "core", module: module, directory: "core", webhooks: 91, arguments: []string{topology}}
}

func kubeadmBootstrap() provider {
	return provider{program: "bootstrap-kubeadm", module: module, directory: "bootstrap/kubeadm", webhooks: 92}
}

func kubeadmControlPlane() provider {
	return provider{
		program: "controlplane-kubeadm", module: module, directory: "controlplane/kubeadm", webhooks: 93, arguments: []string{topology},
	}
}

func inMemory() provider {
	return provider{
		program: "docker", module: testModule, directory: "infrastructure/docker", webhooks: 94, arguments: []string{topology},
	}
}

// Core installs the core provider of Cluster API and runs its manager, with its webhooks.
func (c *Cluster) Core(t testing.TB) *Process { t.Helper(); return c.provide(t, core()) }

// KubeadmBootstrap installs the bootstrap provider of kubeadm and runs its manager, with its webhooks.
func (c *Cluster) KubeadmBootstrap(t testing.TB) *Process {
	t.Helper()
	return c.KubeadmBootstrapWith(t)
}

// KubeadmBootstrapWith is KubeadmBootstrap with further arguments of the manager.
func (c *Cluster) KubeadmBootstrapWith(t testing.TB, arguments ...string) *Process {
	t.Helper()
	p := kubeadmBootstrap()
	p.arguments = append(p.arguments, arguments...)
	return c.provide(t, p)
}

// KubeadmControlPlane installs the control-plane provider of kubeadm and runs its manager, with its webhooks.
func (c *Cluster) KubeadmControlPlane(t testing.TB) *Process {
	t.Helper()
	return c.provide(t, kubeadmControlPlane())
}

// InMemory installs the infrastructure provider of Cluster API's own tests and runs its manager, with its webhooks. One
// runs in a network namespace, because one of its ports is fixed.
func (c *Cluster) InMemory(t testing.TB) *Process { t.Helper(); return c.provide(t, inMemory()) }

// provide runs a provider's manager as the user that its manifests give it. To do so again after a kill changes nothing.
func (c *Cluster) provide(t testing.TB, p provider) *Process {
	t.Helper()
	components := c.components(t, p)
	c.Install(t, components)
	health := c.Address(t)
	manager := c.Run(t, c.account(t, components), cluster.Program(t, p.program), append([]string{
		"--webhook-port=" + strconv.Itoa(c.ports+p.webhooks), "--webhook-cert-dir=" + c.serving(t),
		"--health-addr=" + health, "--diagnostics-address=" + c.Address(t), "--insecure-diagnostics",
	}, p.arguments...)...)
	manager.AwaitReady(t, "http://"+health+"/readyz")
	return manager
}

// components are the manifests of a provider, with the webhooks at the port that its manager has in the test.
func (c *Cluster) components(t testing.TB, p provider) []byte {
	t.Helper()
	source, err := sources(t.Context(), p.module)
	if err != nil {
		t.Fatal(err)
	}
	localized, err := localize(Render(t, filepath.Join(source, p.directory, "config", "default")),
		fmt.Sprintf("https://127.0.0.1:%d", c.ports+p.webhooks), c.ca.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return localized
}

// account makes a kubeconfig file for the service account of the Deployment in manifests, and returns its path.
func (c *Cluster) account(t testing.TB, manifests []byte) string {
	t.Helper()
	objects, err := Objects(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		name, found, err := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
		if o.GetKind() == "Deployment" && found && err == nil {
			return c.User(t, "system:serviceaccount:"+o.GetNamespace()+":"+name, "system:serviceaccounts")
		}
	}
	t.Fatal("no Deployment with a service account is in the manifests")
	return ""
}

// Render returns the manifests of a directory with a kustomization.
func Render(t testing.TB, directory string) []byte {
	t.Helper()
	if err := require.Record("tree", "host/controller/config"); err != nil { // kustomize reads it, or that of another module
		t.Fatal(err)
	}
	kustomize := exec.CommandContext(t.Context(), tools.For(t, "kustomize"), directory)
	kustomize.Stderr = t.Output()
	rendered, err := kustomize.Output()
	if err != nil {
		t.Fatalf("render %s: %v", directory, err)
	}
	return rendered
}

// sources returns the directory with a module that the providers are built of, and downloads it when it is not there.
func sources(ctx context.Context, module string) (string, error) {
	root, err := tools.Root(".")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir, cmd.Env = filepath.Join(root, "testenv/tools", cluster.Tools), append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w", module, err)
	}
	directory := strings.TrimSpace(string(out))
	if directory != "" {
		return directory, nil
	}
	download := exec.CommandContext(ctx, "go", "mod", "download", module)
	download.Dir, download.Env = cmd.Dir, cmd.Env
	if out, err := download.CombinedOutput(); err != nil {
		return "", fmt.Errorf("download %s: %w: %s", module, err, out)
	}
	return sources(ctx, module)
}

// prepare makes what needs the machine's network: the programs, and the sources with the manifests.
func prepare(ctx context.Context) error {
	for _, name := range []string{cluster.Tools + "/core", "kustomize"} {
		if _, err := tools.Path(ctx, os.Stderr, ".", name); err != nil {
			return err
		}
	}
	for _, module := range []string{module, testModule} {
		if _, err := sources(ctx, module); err != nil {
			return err
		}
	}
	return nil
}

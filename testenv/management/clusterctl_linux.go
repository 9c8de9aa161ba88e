package management

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/cluster"
)

// Release is a version of a provider in the repository of a clusterctl.
type Release struct {
	// Provider is the provider's name for init, Type the one of clusterctl's configuration, such as BootstrapProvider.
	Provider, Type string
	// Version has the form v1.2.3.
	Version string
	// Components are the manifests. Metadata is the file metadata.yaml: the contract of each series of versions.
	Components, Metadata []byte
	// Templates are further files, such as cluster-template.yaml, by name.
	Templates map[string][]byte
}

// folder is the part of the path that clusterctl makes of the provider's type and name.
func (r Release) folder() string {
	kinds := map[string]string{
		"CoreProvider": "", "BootstrapProvider": "bootstrap-", "ControlPlaneProvider": "control-plane-",
		"InfrastructureProvider": "infrastructure-",
	}
	return kinds[r.Type] + r.Provider
}

// Clusterctl is the program with a repository of its own, in files.
type Clusterctl struct{ path, config, home string }

// Clusterctl writes a repository with releases, and what clusterctl needs of cert-manager into the cluster: the kinds that
// manifests have. The first release of a provider is the one that init finds; a test installs others later with Add.
func (c *Cluster) Clusterctl(t testing.TB, releases ...Release) *Clusterctl {
	t.Helper()
	c.Install(t, []byte(certManager))
	home := t.TempDir()
	ctl := &Clusterctl{path: cluster.Program(t, "clusterctl"), config: filepath.Join(home, "clusterctl.yaml"), home: home}
	text := "cert-manager: {externallyProvisioned: true, timeout: 20s}\nproviders:\n"
	for _, r := range releases {
		ctl.Add(t, r)
		text += fmt.Sprintf("- {name: %s, type: %s, url: %q}\n", r.Provider, r.Type,
			"file://"+filepath.Join(home, r.folder(), r.Version, "components.yaml"))
	}
	if err := os.WriteFile(ctl.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ctl
}

// Add adds a release to the repository: another version of a provider that is there.
func (ctl *Clusterctl) Add(t testing.TB, r Release) {
	t.Helper()
	files := maps.Clone(r.Templates)
	if files == nil {
		files = map[string][]byte{}
	}
	files["components.yaml"], files["metadata.yaml"] = r.Components, r.Metadata
	directory := filepath.Join(ctl.home, r.folder(), r.Version)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Run runs clusterctl as a user of a cluster and returns its standard output. Any failure ends the test.
func (ctl *Clusterctl) Run(t testing.TB, kubeconfig string, arguments ...string) string {
	t.Helper()
	out, err := ctl.Try(t, kubeconfig, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try is Run for a command that may fail. The error has what clusterctl printed.
func (ctl *Clusterctl) Try(t testing.TB, kubeconfig string, arguments ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), ctl.path, append(slices.Clone(arguments), "--config="+ctl.config)...)
	cmd.Env = append(os.Environ(), "HOME="+ctl.home, "XDG_CONFIG_HOME="+ctl.home, "KUBECONFIG="+kubeconfig, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("clusterctl %s: %w\n%s%s", strings.Join(arguments, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// Releases are the releases of Cluster API's own providers, with webhooks at the ports of the processes that Core and the others
// start. The infrastructure provider, docker, has none before InMemory runs: where another cluster has its process, they
// would be missed by each write.
func (c *Cluster) Releases(t testing.TB) []Release {
	t.Helper()
	all := []Release{
		{Provider: "cluster-api", Type: "CoreProvider", Components: c.components(t, core())},
		{Provider: "kubeadm", Type: "BootstrapProvider", Components: c.components(t, kubeadmBootstrap())},
		{Provider: "kubeadm", Type: "ControlPlaneProvider", Components: c.components(t, kubeadmControlPlane())},
		{Provider: "docker", Type: "InfrastructureProvider", Components: withoutAdmission(t, c.components(t, inMemory())), Templates: inMemoryTemplates(t)},
	}
	for i := range all {
		all[i].Version, all[i].Metadata = "v1.14.2", []byte(metadata)
	}
	return all
}

const metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 1, minor: 14, contract: v1beta2}]
`

// inMemoryTemplates are the flavor in-memory of generate cluster and its ClusterClass.
func inMemoryTemplates(t testing.TB) map[string][]byte {
	t.Helper()
	source, err := sources(t.Context(), testModule)
	if err != nil {
		t.Fatal(err)
	}
	templates := map[string][]byte{}
	for _, name := range []string{"cluster-template-in-memory.yaml", "clusterclass-in-memory.yaml"} {
		if templates[name], err = os.ReadFile(filepath.Join(source, "infrastructure/docker/templates", name)); err != nil {
			t.Fatal(err)
		}
	}
	return templates
}

func withoutAdmission(t testing.TB, manifests []byte) []byte {
	t.Helper()
	all, err := documents(manifests)
	if err != nil {
		t.Fatal(err)
	}
	kept := slices.DeleteFunc(all, func(document []byte) bool {
		return bytes.Contains(document, []byte(`"kind":"ValidatingWebhook`)) || bytes.Contains(document, []byte(`"kind":"MutatingWebhook`))
	})
	return bytes.Join(kept, []byte("\n---\n"))
}

// certManager are the kinds of cert-manager that manifests of providers have. Nothing reads their objects.
const certManager = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Issuer, plural: issuers}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Certificate, plural: certificates}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

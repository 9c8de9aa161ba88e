package clusterctl

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/contract"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/components"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	first, second = "v0.1.0", "v0.1.1"
	image         = "registry.example/machineadm/manager"
	namespace     = "machineadm-system"
	provider      = "bootstrap-machineadm"
)

// files are the files of a release.
func files(t *testing.T, version string) map[string][]byte {
	t.Helper()
	made, err := components.Release{Version: version, Image: image}.Files(t.Context(), t.Output())
	require.NoError(t, err)
	return made
}

func release(t *testing.T, version string) management.Release {
	t.Helper()
	made := files(t, version)
	return management.Release{
		Provider: components.Provider, Type: "BootstrapProvider", Version: version,
		Components: made[components.File], Metadata: made["metadata.yaml"],
	}
}

// objects are those that clusterctl installs.
func objects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all, err := management.Objects(files(t, first)[components.File])
	require.NoError(t, err)
	return all
}

// TestMetadata: the series of the version has the contract that the kinds have by their labels.
func TestMetadata(t *testing.T) {
	var metadata clusterctlv1.Metadata
	documents, err := management.Objects(files(t, first)["metadata.yaml"])
	require.NoError(t, err)
	require.Len(t, documents, 1)
	text, err := json.Marshal(documents[0].Object)
	require.NoError(t, err)
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	require.NoError(t, strict.Decode(&metadata))
	require.Equal(t, clusterctlv1.GroupVersion.WithKind("Metadata"), metadata.GroupVersionKind())
	require.NotEmpty(t, metadata.ReleaseSeries)
	kinds := 0
	for _, o := range objects(t) {
		if o.GetKind() != "CustomResourceDefinition" || !strings.HasSuffix(o.GetName(), ".bootstrap.cluster.x-k8s.io") {
			continue
		}
		kinds++
		for _, series := range metadata.ReleaseSeries {
			require.Equal(t, "v1alpha1", o.GetLabels()["cluster.x-k8s.io/"+series.Contract], o.GetName())
		}
	}
	require.Equal(t, 4, kinds)
}

// TestObjects: what clusterctl requires of each object.
func TestObjects(t *testing.T) {
	var namespaces []string
	cluster := []string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for _, o := range objects(t) {
		require.Equal(t, provider, o.GetLabels()["cluster.x-k8s.io/provider"], "%s %s", o.GetKind(), o.GetName())
		switch {
		case o.GetKind() == "Namespace":
			namespaces = append(namespaces, o.GetName())
		case !slices.Contains(cluster, o.GetKind()):
			require.Equal(t, namespace, o.GetNamespace(), "%s %s", o.GetKind(), o.GetName())
		}
		if o.GetKind() == "CustomResourceDefinition" {
			group, _, err := unstructured.NestedString(o.Object, "spec", "group")
			require.NoError(t, err)
			kind, _, err := unstructured.NestedString(o.Object, "spec", "names", "kind")
			require.NoError(t, err)
			require.Equal(t, contract.CalculateCRDName(group, kind), o.GetName())
		}
	}
	require.Equal(t, []string{namespace}, namespaces)
}

// TestDeployment: the container is one that clusterctl finds, and its program has the flags that it gets.
func TestDeployment(t *testing.T) {
	needs.Tier(t, needs.Cluster)
	built := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), built, map[string]string{"manager": "host/cmd/manager"}))
	help, err := exec.CommandContext(t.Context(), filepath.Join(built, "manager"), "--help").CombinedOutput()
	require.NoError(t, err)
	root, err := tools.Root(".")
	require.NoError(t, err)
	size := exec.CommandContext(t.Context(), filepath.Join(root, "testenv/tools/build.sh"), "size", filepath.Join(built, "manager"))
	out, err := size.CombinedOutput()
	require.NoError(t, err, "%s", out)
	d := deployment(t)
	require.Len(t, d.Spec.Template.Spec.Containers, 1)
	c := d.Spec.Template.Spec.Containers[0]
	require.Equal(t, "manager", c.Name)
	require.Equal(t, image+":"+first, c.Image, "with a registry and a tag")
	require.Equal(t, []string{"/manager"}, c.Command, "as in the image")
	require.Equal(t, int64(65532), *c.SecurityContext.RunAsUser, "as in the image")
	for _, argument := range append(c.Args, "--namespace", "--watch-filter") {
		flag, _, _ := strings.Cut(argument, "=")
		require.Regexp(t, `(?m)^ +(-\w, )?`+flag+` `, string(help))
	}
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	var d *appsv1.Deployment
	for _, o := range objects(t) {
		if o.GetKind() == "Deployment" {
			require.Nil(t, d, "one Deployment")
			d = &appsv1.Deployment{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d))
		}
	}
	require.NotNil(t, d)
	return d
}

// variables: clusterctl replaces each, without one that is set, and each belongs to us by its name.
func variables(t *testing.T, s *side) {
	t.Helper()
	rendered := files(t, first)[components.File]
	file := filepath.Join(t.TempDir(), components.File)
	require.NoError(t, os.WriteFile(file, rendered, 0o600))
	listed := s.ctl.Run(t, s.Kubeconfig, "generate", "yaml", "--list-variables", "--from="+file)
	names := regexp.MustCompile(`(?m)^ +- (\w+)`).FindAllStringSubmatch(listed, -1)
	require.Len(t, names, bytes.Count(rendered, []byte("${")), "%s", listed)
	for _, name := range names {
		require.True(t, strings.HasPrefix(name[1], "MACHINEADM_"), name[1])
	}
	text := s.ctl.Run(t, s.Kubeconfig, "generate", "yaml", "--from="+file)
	require.NotContains(t, text, "${")
	require.Contains(t, text, "--diagnostics-address=:8443\n")
}

// TestReproducible: a release that is made twice has the same bytes. A version that clusterctl does not install is refused.
func TestReproducible(t *testing.T) {
	needs.Tier(t, needs.Cluster)
	built := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), built, map[string]string{"manager": "host/cmd/manager"}))
	programs := map[string]string{"amd64": filepath.Join(built, "manager"), "arm64": filepath.Join(built, "manager")}
	one, two := t.TempDir(), t.TempDir()
	for _, into := range []string{one, two} {
		require.NoError(t, components.Release{Version: first, Image: image}.Write(t.Context(), t.Output(), into, programs))
	}
	require.NoError(t, exec.CommandContext(t.Context(), "diff", "-r", one, two).Run())
	names, err := filepath.Glob(one + "/*/*/*")
	require.NoError(t, err)
	require.Len(t, names, len(files(t, first)))
	for _, version := range []string{"", "devel", "0.1.0", "v9.9.9"} {
		_, err := components.Release{Version: version, Image: image}.Files(t.Context(), t.Output())
		require.ErrorContains(t, err, "VERSION=", version)
	}
	require.Equal(t, "x:v0.0.0-devel-abc", components.Release{Version: "v0.0.0-devel+abc", Image: "x"}.Reference())
}

// withTemplates adds our flavor and its class to the infrastructure provider, as its users do.
func withTemplates(t *testing.T, releases []management.Release) []management.Release {
	t.Helper()
	made := files(t, first)
	for i := range releases {
		if releases[i].Type != "InfrastructureProvider" {
			continue
		}
		releases[i].Templates = maps.Clone(releases[i].Templates)
		for _, name := range []string{"cluster-template-development.yaml", "clusterclass-machineadm.yaml"} {
			releases[i].Templates[name] = made[name]
		}
	}
	return releases
}

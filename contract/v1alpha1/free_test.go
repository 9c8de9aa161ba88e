package v1alpha1

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// freeFields are the fields that no schema describes, and below plugins what checks their content before a machine is changed.
var freeFields = map[string]string{
	"ContainerRuntime.spec.providerConfig":          "container-runtime/containerd/internal/settings/patchkeys.go",
	"ContainerRuntime.spec.runtimes.baseSpec.patch": "container-runtime/containerd/internal/settings/ocispec.go",
	"ContainerRuntime.spec.runtimes.options":        "container-runtime/containerd/internal/settings/runtimes.go",
	"DomainJoin.spec.providerConfig":                "domain-join/activedirectory/internal/settings/check.go",
	"EncryptedConfig.spec.providerConfig":           "encrypted-config/awskms/main.go",
	"KubernetesNode.spec.apiServer.args":            "kubernetes-node/kubeadm/internal/settings/argumentpairs.go",
	"KubernetesNode.spec.controllerManager.args":    "kubernetes-node/kubeadm/internal/settings/argumentpairs.go",
	"KubernetesNode.spec.etcd.local.args":           "kubernetes-node/kubeadm/internal/settings/argumentvalues.go",
	"KubernetesNode.spec.files.content":             "kubernetes-node/kubeadm/internal/settings/configfiles.go",
	"KubernetesNode.spec.kubeProxy.config":          "kubernetes-node/kubeadm/internal/settings/proxyvalues.go",
	"KubernetesNode.spec.kubelet.config":            "kubernetes-node/kubeadm/internal/settings/kubeletvalues.go",
	"KubernetesNode.spec.node.kubeletArgs":          "kubernetes-node/kubeadm/internal/settings/flags.go",
	"KubernetesNode.spec.patches.patch":             "kubernetes-node/kubeadm/internal/settings/inspect.go",
	"KubernetesNode.spec.providerConfig":            "kubernetes-node/kubeadm/internal/settings/gates.go",
	"KubernetesNode.spec.scheduler.args":            "kubernetes-node/kubeadm/internal/settings/argumentpairs.go",
	"KubernetesNode.spec.staticPods.manifest":       "kubernetes-node/kubeadm/internal/settings/pods.go",
	"RemoteConfig.spec.providerConfig":              "remote-config/http/config.go",
	"ReportTarget.spec.providerConfig":              "remote-config/http/store.go",
	"Sysctl.spec.parameters":                        "sysctl/procfs/values.go",
	"Sysctl.spec.providerConfig":                    "sysctl/procfs/main.go",
	"Timesync.spec.providerConfig":                  "timesync/internal/directives/manual.go",
}

// TestFreeFields: each field whose content the contract leaves open names the source that checks it.
func TestFreeFields(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	raw, arguments, values := reflect.TypeFor[json.RawMessage](), reflect.TypeFor[[]Argument](), reflect.TypeFor[IntOrString]()
	var walk func(at string, of reflect.Type)
	walk = func(at string, of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Map || of.Kind() == reflect.Slice {
			if of == raw || of == arguments {
				break
			}
			of = of.Elem()
		}
		last := at[strings.LastIndexByte(at, '.')+1:]
		switch text := of.Kind() == reflect.String && slices.Contains([]string{"content", "manifest", "patch"}, last); {
		case of == raw, of == arguments, of == values, text:
			found[at] = true
		case of.Kind() == reflect.Struct:
			for i := range of.NumField() {
				name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
				if of.Field(i).Anonymous {
					walk(at, of.Field(i).Type)
				} else if of.Field(i).IsExported() {
					walk(at+"."+name, of.Field(i).Type)
				}
			}
		}
	}
	for _, kind := range Kinds() {
		walk(kind, reflect.TypeOf(New(kind)).Elem())
	}
	assert.Equal(t, slices.Sorted(maps.Keys(freeFields)), slices.Sorted(maps.Keys(found)))
	for field, source := range freeFields {
		_, err := os.Stat(filepath.Join("..", "..", "plugins", filepath.FromSlash(source)))
		assert.NoError(t, err, field)
	}
}

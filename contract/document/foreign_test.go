package document

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestForeignDocuments: a file that is no stream gets one error, which says what it is, and a hint where it belongs.
func TestForeignDocuments(t *testing.T) {
	t.Parallel()
	const ours = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\n"
	const oneDocument = ours + "kind: Sysctl\nmetadata: {name: a}\nspec: {modules: [overlay]}\n"
	object := func(apiVersion, kind string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a, namespace: b, labels: {c: d}}\nspec: {x: 1}\nstatus: {}\n"
	}
	for text, want := range map[string][2]string{ // message and hint
		"#cloud-config\nruncmd:\n- a\n":                                   {"is a cloud-config", "give cloud-init the whole file"},
		"## template: jinja\n#cloud-config\nx: 1\n":                       {"is a cloud-config", "give cloud-init"},
		"write_files:\n- path: /x\n  content: '" + "x'\n":                 {"is a cloud-config", "give cloud-init"},
		"Content-Type: multipart/mixed; boundary=\"x\"\n\n--x\na: b: c\n": {"is a MIME message", "give cloud-init"},
		"#!/bin/sh\necho hi\n":                                            {"is a script", "beside machineadm"},
		"#!/bin/sh\nif [ x ]; then\n  echo 'a: b: c'\nfi\n":               {"is a script", "beside machineadm"},
		"<?xml version=\"1.0\"?>\n<unattend/>\n":                          {"is XML or HTML", "instead of a stream"},
		"<!DOCTYPE html>\n<html lang='en'>\n":                             {"is XML or HTML", "instead of a stream"},
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n":  {"in PEM format", "values of its fields"},
		`{"ignition": {"version": "3.3.0"}, "storage": {}}`:               {"is a configuration of Ignition", "give Ignition"},
		"variant: flatcar\nversion: 1.0.0\n":                              {"is a configuration of Butane", "translate"},
		"version: v1alpha1\nmachine: {type: worker}\n":                    {"is a configuration of Talos", "give it to Talos"},
		"network: {version: 2, ethernets: {}}\n":                          {"is a configuration of the network", "netplan"},
		"Timesync: {servers: []}\nSysctl: {}\n":                           {"has kinds as fields", "each kind as a document"},
		"net.ipv4.ip_forward = 1\nvm.swappiness = 10\n":                   {"in another format than YAML", "as a document"},
		"# a\n[Time]\nNTP=a b\n":                                          {"in another format than YAML", "as a document"},
		"version = 3\n[plugins.'io.containerd']\n  x = 1\n":               {"in another format than YAML", "as a document"},
		"server a iburst\nmakestep 1 3\n":                                 {"is text, not a document", "apiVersion, kind"},
		base64.StdEncoding.EncodeToString([]byte(oneDocument)):            {"is base64", "base64 -d"},
		"- hosts: all\n  tasks: []\n":                                     {"is a list, not a document", "apiVersion, kind"},
		"- " + strings.ReplaceAll(oneDocument, "\n", "\n  ") + "\n":       {"is a list of documents", "--- on a line before"},
		`[{"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "Sysctl", "metadata": {"name": "a"}, "spec": {}}]`: {"is a list of documents", "--- on a line before"},
		"apiVersion: v1\nkind: List\nitems:\n- a: 1\n":                                           {"is a list of objects", "each of its items"},
		ours + "kind: SysctlList\nmetadata: {resourceVersion: ''}\nitems: []\n":                  {"is a list of objects", "each of its items"},
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {value: aGk=}\n":               {"is a Secret of Kubernetes", "{.data.value} | base64 -d"},
		"apiVersion: v1\nkind: Config\nclusters: []\n":                                           {"is a kubeconfig", "name the file with the stream"},
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {}\n":                       {"is an object of Kubernetes", "kubectl"},
		object("apps/v1", "DaemonSet"):                                                           {"is an object of Kubernetes", "kubectl"},
		object("rbac.authorization.k8s.io/v1", "Role"):                                           {"is an object of Kubernetes", "kubectl"},
		"apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n":                          {"is a configuration of kubeadm", "docs/coming-from-kubeadmconfig.md"},
		"apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery: {}\n":           {"is a configuration of kubeadm", "KubernetesNode"},
		"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nx: 1\n":          {"is a configuration of the kubelet", "spec.kubelet.config"},
		"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n":           {"is a configuration of kube-proxy", "spec.kubeProxy.config"},
		"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: []\n": {"of a component of Kubernetes", "spec.files"},
		object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig"):                            {"for the bootstrap provider of kubeadm", "coming-from-kubeadmconfig"},
		object("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate"):                    {"for the bootstrap provider of kubeadm", "KubernetesNode"},
		object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane"):                   {"for the bootstrap provider of kubeadm", "KubernetesNode"},
		object("bootstrap.cluster.x-k8s.io/v1alpha1", "MachineBootstrapConfig"):                  {"is an object of the management cluster", "kubectl"},
		object("cluster.x-k8s.io/v1beta2", "Machine"):                                            {"is an object of the management cluster", "kubectl"},
		object("machineadm.cluster.x-k8s.io/v1alpha1", "SysctlTemplate"):                         {"is a template of the management cluster", "kind Sysctl, with spec.template.spec"},
		object("machineadm.cluster.x-k8s.io/v1alpha1", "Sysctl"):                                 {"is a field of an object in a cluster", "namespace, labels, annotations and status"},
		oneDocument + oneDocument:                                                                {"begins another document", "put ---"},
	} {
		stream := decode(t, text)
		require.Len(t, stream.Errors, 1, text)
		assert.Contains(t, stream.Errors[0].Message, want[0], text)
		assert.Contains(t, stream.Errors[0].Hint, want[1], text)
		assert.Positive(t, stream.Errors[0].Position.Line, text)
		assert.Empty(t, stream.Documents, text)
	}
}

// TestForeignDocumentHidesNoOther: what is recognized ends its own document alone.
func TestForeignDocumentHidesNoOther(t *testing.T) {
	t.Parallel()
	stream := decode(t, "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n---\n"+head+"spec: {}\n---\n"+strings.Replace(head, "site", "b", 1)+"spec: {}\nsepc: {}\n")
	assert.Len(t, stream.Documents, 1)
	expect(t, brief(stream.Errors), []string{
		"1:1 : is a configuration of kubeadm", "15:1 sepc: unknown field",
	})
}

// TestDocumentsThatResembleOthers: kinds of third parties, and documents with an error, are not taken for something else.
func TestDocumentsThatResembleOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"#cloud-config\n" + head + "spec: {runcmd: [a]}\n",
		"#!/usr/bin/machineadm --path\n" + head + "spec: {}\n",
		"apiVersion: v1\nkind: Timesync\nmetadata: {name: a}\nspec: {}\n",
		"apiVersion: example.com/v1\nkind: PackageList\nmetadata: {name: a}\nspec: {items: []}\n",
		"apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}\nspec: {}\n",
		"apiVersion: acme.cluster.x-k8s.io/v1\nkind: Driver\nmetadata: {name: a}\nspec: {}\n",
		head + "spec:\n  apiVersion: a\n  kind: b\n  text: |\n    [Time]\n    NTP=a\n    apiVersion: v1\n    kind: List\n",
	} {
		one(t, text)
	}
	for text, want := range map[string]string{
		head + "spec: {}\nspec: {}\n":                        "6:1 spec: duplicate key, first on line 5",
		head + "spec: {}\nkind: B\n":                         "6:1 kind: duplicate key, first on line 2",
		head + "spec:\n  text: |\n    [Time]\n    a=b\n x\n": "9:2 : is not valid YAML: a key is expected here",
	} {
		stream := decode(t, text)
		if assert.NotEmpty(t, stream.Errors, text) {
			assert.Equal(t, want, brief(stream.Errors)[0], text)
		}
	}
}

// TestDocumentsWithoutAMarker: each document that begins without --- is an error of its own, in whatever order its fields are.
func TestDocumentsWithoutAMarker(t *testing.T) {
	t.Parallel()
	const other = "kind: A\nspec: {}\napiVersion: v1\nmetadata: {name: b}\n"
	for text, want := range map[string][]string{
		head + "spec: {}\n" + head + "spec: {}\n":  {"6:1 : begins another document"},
		head + "spec: {}\n" + other:                {"6:1 : begins another document"},
		head + "spec: {}\n# next\n" + other + head: {"7:1 : begins another document", "11:1 : begins another document"},
		head + "spec: {a: 1, a: 2}\n" + other:      {"5:14 spec.a: duplicate key, first on line 5", "6:1 : begins another document"},
		head + "spec: {}\n" + other + "kind: A\n":  {"6:1 : begins another document", "10:1 kind: duplicate key, first on line 6"},
	} {
		stream := decode(t, text)
		expect(t, brief(stream.Errors), want)
		assert.Empty(t, stream.Documents)
	}
}

// TestEnvelopeInAnotherForm: a field of the document in another case is read as that field; the hint for one that is not
// indented names its place.
func TestEnvelopeInAnotherForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec:\nrole: b\n":                {"spec: is required", "indent its fields below it, or write spec: {} for an empty spec", "role: unknown field", "indent it, if it belongs to spec"},
		"apiVersion: v1\nkind: A\nmetadata:\nname: a\nspec: {}\n":                       {"metadata: is required", "add metadata with a name", "name: unknown field", "indent it, if it belongs to metadata"},
		"apiversion: v1\nKIND: A\nmetadata: {Name: a}\nSpec: {}\n":                      {"apiversion: unknown field", "did you mean apiVersion?", "KIND: unknown field", "did you mean kind?", "metadata.Name: unknown field", "did you mean name?", "Spec: unknown field", "did you mean spec?"},
		"apiVersion: Machineadm.Cluster.X-K8s.io/V1alpha1\n" + head[27:] + "spec: {}\n": {"apiVersion: must be a group, which is a DNS subdomain, a slash and a version", "did you mean machineadm.cluster.x-k8s.io/v1alpha1?"},
	} {
		var got []string
		for _, e := range decode(t, text).Errors {
			got = append(got, e.Field+": "+e.Message, e.Hint)
		}
		assert.Equal(t, want, got, text)
	}
}

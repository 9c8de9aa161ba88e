package document

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// foreign says what a text is that is no document of a stream, and where it belongs. Its message and hint replace the errors of
// a document's fields, whose hints would lead astray.
type foreign struct{ message, hint string }

const (
	fieldsHint = "write the fields apiVersion, kind, metadata and spec"
	streamHint = "give cloud-init the whole file, and machineadm the stream that the file writes"
)

// foreignKind returns the kind of an object that is no document, "" if there is none or an invalid one.
func foreignKind(root *yaml.Node) string {
	if kind := rootFields(root)["kind"]; kind != nil && naming.ValidKind(kind.Value) == nil {
		return kind.Value
	}
	return ""
}

// foreignText recognizes a text by its first line; comments count, because formats are marked by them.
func foreignText(text []byte) (foreign, bool) {
	line := firstLine(text, func(line []byte) bool {
		return isMarker(line, '-') || bytes.HasPrefix(line, []byte("## template: jinja"))
	})
	for _, format := range []struct {
		start string
		foreign
	}{
		{"#cloud-config", foreign{"is a cloud-config, which cloud-init reads", streamHint}},
		{"#cloud-boothook", foreign{"is user data of cloud-init", streamHint}},
		{"#include", foreign{"is user data of cloud-init", streamHint}},
		{"Content-Type:", foreign{"is a MIME message, as cloud-init reads it", streamHint}},
		{"MIME-Version:", foreign{"is a MIME message, as cloud-init reads it", streamHint}},
		{"From ", foreign{"is a MIME message, as cloud-init reads it", streamHint}},
		{"#!", foreign{"is a script", "run it beside machineadm: a document runs no commands"}},
		{"#ps1", foreign{"is user data of cloudbase-init", "run it beside machineadm: a document runs no commands"}},
		{"<", foreign{"is XML or HTML", "check what wrote the file: a server may have answered with a page instead of a stream"}},
		{"-----BEGIN ", foreign{"is a certificate or a key in PEM format", "name the file with the stream; certificates and keys are values of its fields"}},
	} {
		if bytes.HasPrefix(line, []byte(format.start)) {
			return format.foreign, true
		}
	}
	return foreign{}, false
}

// firstLine returns the first line that is neither blank nor one that skip accepts.
func firstLine(text []byte, skip func([]byte) bool) []byte {
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte(byteOrderMark))) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !skip(line) {
			return line
		}
	}
	return nil
}

// foreignRoot recognizes a document by its content. The zero Node means that its text cannot be read as YAML.
func foreignRoot(text []byte, root *yaml.Node) (foreign, bool) {
	fields := rootFields(root)
	if fields["apiVersion"] != nil && fields["kind"] != nil {
		return foreignObject(fields)
	}
	if found, ok := foreignText(text); ok && (fields["apiVersion"] == nil || fields["kind"] == nil) && fields["spec"] == nil {
		return found, true
	}
	switch root.Kind {
	case yaml.SequenceNode:
		if len(root.Content) > 0 && rootFields(root.Content[0])["kind"] != nil {
			return foreign{"is a list of documents", "write each item as a document, with --- on a line before it"}, true
		}
		return foreign{"is a list, not a document", fieldsHint}, true
	case yaml.MappingNode:
		return foreignFields(fields)
	case yaml.AliasNode:
		return foreign{}, false
	}
	return foreignWords(text, root)
}

// isSetting reports whether a line is one of a configuration file that is not YAML: of /etc/sysctl.d, or the header of a section.
func isSetting(line []byte) bool {
	return regexp.MustCompile(`^(\[[A-Za-z][\w."-]*\]|-?[A-Za-z][\w./*-]*[ \t]*=.*)$`).Match(line)
}

// foreignWords recognizes text that is neither a mapping nor a list.
func foreignWords(text []byte, root *yaml.Node) (foreign, bool) {
	compact := strings.Map(func(r rune) rune {
		if r == ' ' {
			return -1
		}
		return r
	}, root.Value)
	first := firstLine(text, func(line []byte) bool { return isBlank(line) || line[0] == ';' || isMarker(line, '-') })
	switch {
	case len(compact) >= 40 && len(compact)%4 == 0 && strings.Trim(compact, alphabet64) == "":
		return foreign{"is base64", "decode it first, with base64 -d, and decompress it with gunzip if it begins with H4sI"}, true
	case isSetting(first) && root.Style == 0:
		return foreign{
			"is a configuration file in another format than YAML",
			"write its settings as a document, with the fields apiVersion, kind, metadata and spec",
		}, true
	}
	return foreign{"is text, not a document", fieldsHint}, root.Tag == "!!str" // never of text that cannot be read
}

const alphabet64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

// rootFields returns the values of a mapping by their keys.
func rootFields(n *yaml.Node) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		return fields
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		fields[n.Content[i].Value] = n.Content[i+1]
	}
	return fields
}

// foreignFields recognizes a mapping without apiVersion or kind by the names of its fields.
func foreignFields(fields map[string]*yaml.Node) (foreign, bool) {
	for _, name := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if fields[name] != nil {
			return foreign{}, false // a document with an error
		}
	}
	for _, format := range []struct {
		all, any string
		foreign
	}{
		{"ignition", "", foreign{"is a configuration of Ignition", "give Ignition the whole file, and machineadm the stream that the file writes"}},
		{"variant version", "", foreign{"is a configuration of Butane", "translate it for Ignition, and give machineadm the stream that the file writes"}},
		{"version machine", "", foreign{"is a configuration of Talos", "give it to Talos, which runs no machineadm plugins from it"}},
		{"network", "", foreign{"is a configuration of the network", "give it to netplan or to cloud-init: no kind of document configures the network"}},
		{"", cloudConfigKeys, foreign{"is a cloud-config, which cloud-init reads", streamHint}},
		{"", strings.Join(v1alpha1.Kinds(), " "), foreign{
			"has kinds as fields",
			"write each kind as a document with the fields apiVersion, kind, metadata and spec; choices of providers belong into the defaults file",
		}},
	} {
		every, some := strings.Fields(format.all), strings.Fields(format.any)
		has := func(name string) bool { return fields[name] != nil }
		if len(every) > 0 && !slices.ContainsFunc(every, func(name string) bool { return !has(name) }) || slices.ContainsFunc(some, has) {
			return format.foreign, true
		}
	}
	return foreign{}, false
}

// cloudConfigKeys are the keys that most cloud-configs have one of. Source: cloud-init documentation, "Module reference".
const cloudConfigKeys = "write_files runcmd bootcmd users packages package_update package_upgrade ssh_authorized_keys disk_setup fs_setup mounts growpart " +
	"ntp ca_certs chpasswd apt yum_repos hostname fqdn preserve_hostname manage_etc_hosts power_state final_message locale timezone swap cloud_final_modules"

// foreignObject recognizes an object of a cluster, or of a program of Kubernetes, by its group and kind.
func foreignObject(fields map[string]*yaml.Node) (foreign, bool) {
	apiVersion, kind := fields["apiVersion"].Value, fields["kind"].Value
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	switch {
	case strings.HasSuffix(kind, "List") && fields["items"] != nil && fields["items"].Kind == yaml.SequenceNode:
		return foreign{"is a list of objects", "write each of its items as a document, with --- on a line before it"}, true
	case slices.Contains(v1alpha1.Kinds(), kind):
		return foreign{}, false
	case group == v1alpha1.Group:
		if of, template := strings.CutSuffix(kind, "Template"); template && slices.Contains(v1alpha1.Kinds(), of) {
			return foreign{
				"is a template of the management cluster",
				"apply it there with kubectl, or write the document: kind " + of + ", with spec.template.spec as its spec",
			}, true
		}
		return foreign{}, false
	case group == "":
		return foreignCore(kind)
	}
	return foreignGroup(group, kind)
}

// foreignCore recognizes the kinds of the core group that people have in files. Other kinds without a group may be a plugin's.
func foreignCore(kind string) (foreign, bool) {
	switch kind {
	case "Config":
		return foreign{"is a kubeconfig", "name the file with the stream; a kubeconfig belongs into a field of a document, or into a file of the machine"}, true
	case "Secret":
		return foreign{
			"is a Secret of Kubernetes",
			"for bootstrap data, decode its key: kubectl get secret NAME -o jsonpath={.data.value} | base64 -d",
		}, true
	case "ConfigMap", "Pod", "Node", "Namespace", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim":
		return objectOfCluster, true
	}
	return foreign{}, false
}

var objectOfCluster = foreign{ //nolint:gochecknoglobals // a constant
	"is an object of Kubernetes", "apply it in its cluster with kubectl; a static pod belongs into spec.staticPods of a KubernetesNode",
}

// foreignGroup recognizes the groups of Kubernetes and of Cluster API.
func foreignGroup(group, kind string) (foreign, bool) {
	clusterGroups := []string{
		"cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io",
		"addons.cluster.x-k8s.io", "ipam.cluster.x-k8s.io", "runtime.cluster.x-k8s.io",
	}
	kubeadm := "write a KubernetesNode; docs/coming-from-kubeadmconfig.md of machineadm has the place of each field"
	switch {
	case group == "kubeadm.k8s.io":
		return foreign{"is a configuration of kubeadm", kubeadm}, true
	case strings.HasPrefix(kind, "Kubeadm") && slices.Contains(clusterGroups, group):
		return foreign{"is an object of the management cluster, for the bootstrap provider of kubeadm", kubeadm}, true
	case group == "kubelet.config.k8s.io":
		return foreign{"is a configuration of the kubelet", "write its fields below spec.kubelet.config of a KubernetesNode"}, true
	case group == "kubeproxy.config.k8s.io":
		return foreign{"is a configuration of kube-proxy", "write its fields below spec.kubeProxy.config of a KubernetesNode"}, true
	case strings.HasSuffix(group, ".config.k8s.io"), group == "audit.k8s.io":
		return foreign{"is a configuration of a component of Kubernetes", "write it to the machine with spec.files of a KubernetesNode"}, true
	case slices.Contains(clusterGroups, group):
		return foreign{
			"is an object of the management cluster",
			"apply it there with kubectl; machineadm reads the documents that the controller makes from it",
		}, true
	case slices.Contains([]string{"apps", "batch", "policy", "autoscaling"}, group), strings.HasSuffix(group, ".k8s.io"):
		return objectOfCluster, true
	}
	return foreign{}, false
}

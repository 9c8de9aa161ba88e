package emit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/target"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

const canary = "c4n4ry-0f-a-stream"

func ours(kind, name string, spec any) Document {
	return Document{Header: contract.Header{APIVersion: contract.APIVersion, Kind: kind, Metadata: contract.Metadata{Name: name}}, Spec: spec}
}

// controlPlane is what a control plane of a cluster has.
func controlPlane() []Document {
	r := rand.New(rand.NewPCG(14, 2))
	secret := func(lines int) contract.Secret { // as hard to compress as a key
		text := "-----BEGIN " + canary + "-----\n"
		for range lines {
			line := make([]byte, 48)
			for i := range line {
				line[i] = byte(r.UintN(256))
			}
			text += base64.StdEncoding.EncodeToString(line) + "\n"
		}
		return contract.NewSecret([]byte(text))
	}
	pair := func() *contract.KeyPair {
		return &contract.KeyPair{Certificate: string(secret(17).Reveal()), Key: secret(25)}
	}
	node := contract.KubernetesNodeSpec{
		Role: "controlPlaneInit", KubernetesVersion: "v1.37.1",
		Cluster:      contract.KubernetesCluster{Endpoint: "api.example.com:6443", PodSubnets: []string{"10.244.0.0/16"}},
		Node:         contract.KubernetesNodeRegistration{Labels: map[string]string{"b": "2", "a": "1", "c": "3"}},
		Certificates: &contract.ClusterCertificates{CA: pair(), FrontProxyCA: pair(), EtcdCA: pair(), ServiceAccount: pair()},
	}
	custom := ours("HTTPProxy", "site", json.RawMessage(`{"provider":"squid","rules":[{"allow":true},null,1.5]}`))
	custom.APIVersion, custom.Before = "example.com/v1", []string{"Sysctl"}
	sysctl := ours(contract.KindSysctl, "kubernetes", contract.SysctlSpec{
		Profiles: []string{"kubernetes"}, Parameters: map[string]contract.IntOrString{"net.core.somaxconn": "8191", "kernel.pid_max": "65536"},
	})
	sysctl.Metadata.Timeout, sysctl.Metadata.When = "5m", &target.Selector{OS: []string{"linux"}}
	return []Document{ours(contract.KindKubernetesNode, "node", node), ours(contract.KindContainerRuntime, "node", contract.ContainerRuntimeSpec{CgroupDriver: "systemd"}), sysctl, custom}
}

func TestStream(t *testing.T) {
	t.Parallel()
	ordered, err := Order(controlPlane())
	require.NoError(t, err)
	got, err := Stream(ordered)
	require.NoError(t, err)
	const golden = "testdata/control-plane.yaml"
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
	for range 50 { // maps have another order each time
		again, err := Stream(ordered)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

// What a node reads is what was written, secrets included.
func TestStreamIsReadBack(t *testing.T) {
	t.Parallel()
	ordered, err := Order(controlPlane())
	require.NoError(t, err)
	stream, err := Stream(ordered)
	require.NoError(t, err)
	read, err := document.Decode("", bytes.NewReader(stream))
	require.NoError(t, err)
	require.Empty(t, read.Errors)
	for i, d := range read.Documents {
		into := contract.New(d.Kind)
		if into == nil {
			continue
		}
		data, err := d.JSON()
		require.NoError(t, err)
		require.Empty(t, document.Unmarshal(data, into))
		if node, ok := into.(*contract.KubernetesNode); ok {
			assert.Equal(t, ordered[i].Spec, node.Spec)
			assert.Contains(t, string(node.Spec.Certificates.CA.Key.Reveal()), canary)
		}
	}
}

func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	raw := func(kind, name, spec string) Document {
		return Document{
			Header: contract.Header{APIVersion: contract.APIVersion, Kind: kind, Metadata: contract.Metadata{Name: name}}, Spec: json.RawMessage(spec),
		}
	}
	timed := raw("Foo", "a", `{}`)
	timed.Metadata.Timeout = canary
	for name, c := range map[string]struct {
		documents []Document
		field     string
		want      string
	}{
		"a name":              {[]Document{raw("Foo", "Not A Name", `{}`)}, "metadata.name", "must be a DNS subdomain"},
		"a kind":              {[]Document{raw("foo", "a", `{}`)}, "kind", "must be CamelCase"},
		"a timeout":           {[]Document{timed}, "metadata.timeout", "must be a duration"},
		"no spec":             {[]Document{{Header: raw("Foo", "a", "").Header}}, "spec", "is required"},
		"a spec that is text": {[]Document{raw("Foo", "a", `"`+canary+`"`)}, "spec", "must be a mapping"},
		"no JSON":             {[]Document{raw("Foo", "a", `{`+canary)}, "", "spec: "},
		"a duplicate field":   {[]Document{raw("Foo", "a", `{"b":"`+canary+`","b":2}`)}, "", "spec.b: duplicate field"},
		"a provider":          {[]Document{raw("Foo", "a", `{"provider":"C4N4RY"}`)}, "spec.provider", "must consist of"},
		"an unknown field":    {[]Document{raw("Sysctl", "a", `{"parametres":{"x":"`+canary+`"}}`)}, "spec.parametres", "unknown field"},
		"a type":              {[]Document{raw("Timesync", "a", `{"servers":"`+canary+`"}`)}, "spec.servers", "must be a list"},
		"the second":          {[]Document{raw("Foo", "a", `{}`), raw("Foo", "b", `{"provider":1}`)}, "spec.provider", "must be a string"},
		"a duplicate":         {[]Document{raw("Foo", "a", `{}`), raw("Foo", "a", `{}`)}, "metadata.name", "duplicates"},
		"a secret's shape":    {[]Document{raw("KubernetesNode", "a", `{"certificateKey":"`+canary+`"}`)}, "spec.certificateKey", "must be a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Stream(c.documents)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, c.documents[len(c.documents)-1].Metadata.Name, invalid.Name)
			assert.Equal(t, c.field, invalid.Violations[0].Field)
			assert.Contains(t, err.Error(), c.want)
			assert.NotContains(t, err.Error(), canary)
		})
	}
	_, err := Stream(nil)
	assert.ErrorContains(t, err, "the stream contains no document")
	_, err = Stream([]Document{raw("Foo", "a", `{"x":"`+strings.Repeat("x", document.MaxStreamBytes)+`"}`)})
	assert.ErrorContains(t, err, "the stream is larger than 16 MiB")
}

// A kind of another release is left to the node, which may have a plugin for it.
func TestStreamAcceptsOtherKinds(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"machineadm.cluster.x-k8s.io/v2/Sysctl", "example.com/v1/Sysctl", contract.APIVersion + "/Later"} {
		at := strings.LastIndexByte(of, '/')
		d := Document{Header: contract.Header{APIVersion: of[:at], Kind: of[at+1:], Metadata: contract.Metadata{Name: "a"}}, Spec: map[string]any{"later": true}}
		_, err := Stream([]Document{d})
		assert.NoError(t, err, of)
	}
}

// FuzzStream: any JSON as the spec is refused, or read back by a node as the same value.
func FuzzStream(f *testing.F) {
	for _, spec := range []string{`{}`, `{"a":{"value":"---\n---\n"}}`, `{"a":"\n---\n"}`, `[1]`, `{"a":1e400}`, `{"` + strings.Repeat("k", 2000) + `":1}`} {
		f.Add("Foo", "a", spec)
	}
	f.Fuzz(func(t *testing.T, kind, name, spec string) {
		in := []Document{
			{Header: contract.Header{APIVersion: "example.com/v1", Kind: kind, Metadata: contract.Metadata{Name: name}}, Spec: json.RawMessage(spec)},
			{Header: contract.Header{APIVersion: "example.com/v1", Kind: "Last", Metadata: contract.Metadata{Name: "z"}}, Spec: struct{}{}},
		}
		out, err := Stream(in)
		var invalid *InvalidError
		if errors.As(err, &invalid) {
			return
		}
		require.NoError(t, err)
		read, err := document.Decode("", bytes.NewReader(out))
		require.NoError(t, err)
		require.Len(t, read.Documents, 2)
		data, err := read.Documents[0].JSON()
		require.NoError(t, err)
		var got, want struct{ Spec any }
		require.Empty(t, document.Unmarshal([]byte(fmt.Sprintf(`{"Spec":%s}`, spec)), &want))
		var whole map[string]any
		require.Empty(t, document.Unmarshal(data, &whole))
		got.Spec = whole["spec"]
		assert.Equal(t, want.Spec, got.Spec)
	})
}

// TestStreamRefusesAsNodes: what every node refuses is not sent to one.
func TestStreamRefusesAsNodes(t *testing.T) {
	t.Parallel()
	const nothing = "asks for nothing (write what is wanted, or remove "
	raw := func(text string) Document { return ours(contract.KindContainerRuntime, "s", json.RawMessage(text)) }
	for _, c := range []struct {
		d    Document
		want string
	}{
		{ours(contract.KindSysctl, "s", contract.SysctlSpec{Provider: "procfs"}), "spec: has no parameters, profiles or modules (add one of them, or remove the document)"},
		{ours(contract.KindSysctl, "s", &contract.SysctlSpec{IgnoreMissing: []string{"a.b"}}), "spec: has no parameters, profiles or modules"},
		{ours(contract.KindSysctl, "s", json.RawMessage(`{}`)), "spec: has no parameters, profiles or modules"},
		{ours(contract.KindSysctl, "s", json.RawMessage(`{"parameters":{},"profiles":[]}`)), "spec: has no parameters, profiles or modules"},
		{ours(contract.KindContainerRuntime, "s", &contract.ContainerRuntimeSpec{Provider: "containerd"}), "spec: " + nothing + "the document)"},
		{raw(`{}`), "spec: " + nothing + "the document)"},
		{raw(`{"cdi":{}}`), "spec.cdi: " + nothing + "it)"},
		{raw(`{"logLevel":"info","cni":{},"nri":{}}`), "spec.nri: " + nothing + "it); spec.cni: " + nothing + "it)"},
		{raw(`{"proxy":{"noProxy":["a"]}}`), "spec.proxy.noProxy: means nothing without a proxy (give http or https, or remove it)"},
		{raw(`{"runtimes":{"a":{"baseSpec":{}}}}`), "spec.runtimes.a.baseSpec: asks for nothing (give rlimits or patch, or remove it)"},
		{raw(`{"runtimes":{"a":{"baseSpec":{"rlimits":{"RLIMIT_AS":{"soft":1,"hard":1}},"patch":{}}}}}`), "spec.runtimes.a.baseSpec.patch: must be a mapping with at least one key"},
		{raw(`{"registries":{"a.b":{}}}`), `spec.registries["a.b"]: asks for nothing (give mirrors, a server, how it is reached or auth, or remove it)`},
		{ours(contract.KindSysctl, "s", json.RawMessage(`{"parameters":{"net.ipv4.conf.lxc*.rp_filter":0}}`)), `spec.parameters["net.ipv4.conf.lxc*.rp_filter"]: a key names one parameter`},
		{ours(contract.KindSysctl, "s", json.RawMessage(`{"parameters":{"a.b":1,"a/b":1}}`)), `spec.parameters["a/b"]: names the same parameter as a.b`},
		{ours(contract.KindSysctl, "s", json.RawMessage(`{"parameters":{"a.b":"1\n2"}}`)), `spec.parameters["a.b"]: a value has no control characters`},
		{ours(contract.KindSysctl, "s", json.RawMessage(`{"profiles":["kubernetes"],"ignoreMissing":["net/ipv4/ip_forward","a.b"]}`)), `spec.ignoreMissing[1]: is no parameter of this document or of its profiles`},
		{raw(`{"defaultRuntime":"nvidia"}`), "spec.defaultRuntime: is not one of spec.runtimes (list it there, or use one of runc, "},
	} {
		_, err := Stream([]Document{c.d})
		require.ErrorContains(t, err, c.d.Kind+"/s: "+c.want)
	}
	for _, d := range []Document{
		ours(contract.KindSysctl, "s", json.RawMessage(`{"profiles":["kubernetes"]}`)), ours(contract.KindSysctl, "s", contract.SysctlSpec{Modules: []string{"overlay"}}),
		ours(contract.KindContainerRuntime, "s", json.RawMessage(`{"cgroupDriver":"systemd"}`)),
		raw(`{"defaultRuntime":"runhcs-wcow-process"}`), raw(`{"defaultRuntime":""}`), raw(`{"defaultRuntime":"kata","runtimes":{"kata":{}}}`),
	} {
		_, err := Stream([]Document{d})
		require.NoError(t, err)
	}
}

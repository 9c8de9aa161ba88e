package outbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/target"
)

const head = "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: "

func remote(name, more string) string {
	return head + "RemoteConfig\nmetadata: {name: " + name + "}\nspec: {provider: http, uri: \"https://example.com/" + name + "\"" + more + "}\n"
}

func reportTarget(name, more string) string {
	return head + "ReportTarget\nmetadata: {name: " + name + more + "}\nspec: {provider: s3, uri: \"s3://bucket/" + name + "\"}\n"
}

const (
	sysctl    = head + "Sysctl\nmetadata: {name: a}\nspec: {parameters: {net.core.somaxconn: 1}}\n"
	encrypted = head + "EncryptedConfig\nmetadata: {name: e}\nspec: {provider: file}\n"
)

func decode(t *testing.T, stream []byte) *document.Stream {
	t.Helper()
	decoded, err := document.Decode("", bytes.NewReader(stream))
	require.NoError(t, err)
	return decoded
}

func TestFind(t *testing.T) {
	t.Parallel()
	linux := target.Target{OS: "linux", Distribution: "debian"}
	for name, tt := range map[string]struct {
		stream string
		want   string // KIND/NAME, empty for no destination
	}{
		"an empty stream":                    {"", ""},
		"no document names one":              {sysctl + encrypted, ""},
		"the first RemoteConfig":             {sysctl + remote("a", "") + remote("b", ""), "RemoteConfig/a"},
		"the first with a report":            {remote("a", ", report: {disabled: true}") + remote("b", ""), "RemoteConfig/b"},
		"a kind with an escape":              {strings.Replace(remote("a", ""), "RemoteConfig", `"Remote\x43onfig"`, 1), "RemoteConfig/a"},
		"all are disabled":                   {remote("a", ", report: {disabled: true, uri: x}"), ""},
		"a ReportTarget goes first":          {remote("a", "") + sysctl + reportTarget("b", "") + reportTarget("c", ""), "ReportTarget/b"},
		"one for another machine":            {reportTarget("a", ", when: {os: [windows]}") + reportTarget("b", ", when: {distributions: [debian]}"), "ReportTarget/b"},
		"none for this machine":              {reportTarget("a", ", when: {os: [windows]}"), ""},
		"another document is wrong":          {head + "Sysctl\nmetadata: {name: A_}\nspec: {x: *y}\n" + remote("a", ""), "RemoteConfig/a"},
		"another document is no YAML":        {"---\n{[\n" + reportTarget("a", ""), "ReportTarget/a"},
		"its own document is wrong":          {remote("a", ", oops: 1") + remote("b", ""), "RemoteConfig/b"},
		"its own document names no provider": {strings.Replace(remote("a", ""), "provider: http, ", "", 1), ""},
		"a provider that is a path":          {strings.Replace(remote("a", ""), "http,", "../../bin/sh,", 1), ""},
		"another version of the kind":        {strings.Replace(remote("a", ""), "v1alpha1", "v1beta1", 1), ""},
		"a kind of another group":            {strings.Replace(remote("a", ""), "machineadm.cluster.x-k8s.io", "example.com", 1), ""},
		"not within what a document holds":   {head + "Noop\nmetadata: {name: a}\nspec: {stream: |-\n    " + strings.ReplaceAll(remote("b", ""), "\n", "\n    ") + "\n  }\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := Find(decode(t, []byte(tt.stream)), linux)
			require.Equal(t, tt.want != "", found)
			if !found {
				return
			}
			var d struct {
				Kind     string
				Metadata struct{ Name string }
			}
			require.NoError(t, json.Unmarshal(got.Document, &d))
			assert.Equal(t, tt.want, d.Kind+"/"+d.Metadata.Name)
			assert.Contains(t, got.Binary, "machineadm-remote-configuration-provider-")
		})
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		remote("a", ""): false, remote("a", ", report: {}"): false, remote("a", ", report: {uri: \"https://x\"}"): true, reportTarget("a", ""): true,
	} {
		d, found := Find(decode(t, []byte(text)), target.Target{})
		require.True(t, found)
		assert.Equal(t, want, named(d.Document), text)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(remote("a", "") + reportTarget("b", "")))
	f.Add([]byte("---\n{[\n" + remote("a", ", report: {disabled: true}")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		d, found := Find(decode(t, stream), target.Target{OS: "linux"})
		if found && (!json.Valid(d.Document) || d.Binary == "") {
			t.Errorf("%q", d)
		}
	})
}

package wrap

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
)

var update = flag.Bool("update", false, "write the golden files")

const worker = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata:
  name: kubernetes
spec:
  profiles:
    - kubernetes
---
apiVersion: example.com/v1
kind: Noop
metadata:
  name: test
spec:
  token:
    value: c4n4ry-0f-a-stream
`

func controlPlane(t testing.TB) []byte {
	t.Helper()
	stream, err := os.ReadFile("../emit/testdata/control-plane.yaml")
	require.NoError(t, err)
	return stream
}

// unpacked reverses gzip and base64.
func unpacked(t *testing.T, text string) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	assert.Zero(t, r.ModTime)
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(out)
}

// find returns what the group of a pattern matches.
func find(t *testing.T, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.Len(t, found, 2, "%s", pattern)
	return found[1]
}

// TestWrap compares each type with its golden file, and takes the stream out again without the parsers, which
// testenv/bootstrapdata has.
func TestWrap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format Format
		key    string
		unwrap func(t *testing.T, value string) string
	}{
		"default.yaml": {Format{}, "cloud-config", func(t *testing.T, value string) string {
			assert.True(t, strings.HasPrefix(value, "#cloud-config\n"))
			return unwrapCloudConfig(t, value)
		}},
		"cloud-config-with-part.mime": {Format{Type: "cloudConfig", Template: []byte("#cloud-config\nruncmd:\n  - [touch, /var/part]\n")}, "cloud-config", unwrapCloudConfig},
		"cloud-config-whole.yaml": {Format{Type: "cloudConfig", Template: []byte("#cloud-config\nusers: []\nwrite_files:\n" +
			"  - {path: /run/own.yaml, permissions: '0600', encoding: gz+b64, content: {{ machine_config | gzipBase64 }}}\n")}, "cloud-config", func(t *testing.T, value string) string {
			return unpacked(t, find(t, `content: ([^}\n]+)}`, value))
		}},
		"ignition-3.0.json": {Format{Type: "ignition", Version: "3.0"}, "ignition", unwrapIgnition},
		"ignition-3.1.json": {Format{Type: "ignition", Version: "3.1"}, "ignition", unwrapIgnition},
		"ignition-3.2.json": {Format{Type: "ignition", Version: "3.2"}, "ignition", unwrapIgnition},
		"ignition-3.3.json": {Format{Type: "ignition"}, "ignition", unwrapIgnition},
		"ignition-3.4.json": {Format{Type: "ignition", Version: "3.4"}, "ignition", unwrapIgnition},
		"ignition-3.5.json": {Format{Type: "ignition", Version: "3.5"}, "ignition", unwrapIgnition},
		"cloudbase-init.mime": {Format{Type: "cloudbaseInit"}, "cloud-config", func(t *testing.T, value string) string {
			assert.True(t, strings.HasPrefix(value, "Content-Type: multipart"))
			return unpacked(t, find(t, `content: "?([^"\n]+)"?`, value))
		}},
		"cloudbase-init-with-part.mime": {Format{Type: "cloudbaseInit", Template: []byte("#ps1_sysnative\r\nWrite-Host part\r\n")}, "cloud-config", func(t *testing.T, value string) string {
			return unpacked(t, find(t, `content: "?([^"\n]+)"?`, value))
		}},
		"unattend.xml": {Format{Type: "unattend"}, "cloud-config", unwrapUnattend},
		"talos.yaml": {Format{Type: "talos"}, "cloud-config", func(t *testing.T, value string) string {
			return regexp.MustCompile(`(?m)^      `).ReplaceAllString(find(t, `(?s)content: \|\n(.*)    mountPath`, value), "")
		}},
		"talos-with-part.yaml": {Format{Type: "talos", Template: []byte("version: v1alpha1\nmachine: {type: worker}\n")}, "cloud-config", func(t *testing.T, value string) string {
			return regexp.MustCompile(`(?m)^      `).ReplaceAllString(find(t, `(?s)content: \|\n(.*)    mountPath`, value), "")
		}},
		"combustion.sh": {Format{Type: "combustion"}, "cloud-config", func(t *testing.T, value string) string {
			return unpacked(t, find(t, `(?s)node.yaml\)\n(.*?)\nEND`, value))
		}},
		"plain.yaml": {Format{Type: "plain"}, "cloud-config", func(_ *testing.T, value string) string { return value }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := new(Wrapper).Wrap(c.format, []byte(worker))
			require.NoError(t, err)
			golden := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.WriteFile(golden, got.Value, 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got.Value))
			assert.Equal(t, c.key, got.Format)
			assert.Equal(t, worker, c.unwrap(t, string(got.Value)))
			again, err := new(Wrapper).Wrap(c.format, []byte(worker))
			require.NoError(t, err)
			assert.Equal(t, got, again)
			if c.format.Type != talos { // a larger stream, which takes other paths of the encoders
				stream := controlPlane(t)
				got, err := new(Wrapper).Wrap(c.format, stream)
				require.NoError(t, err)
				assert.Equal(t, string(stream), c.unwrap(t, string(got.Value)))
			}
		})
	}
}

// TestPlainest: the stream is compressed only if the data would else be too large, so that every program can read most data.
func TestPlainest(t *testing.T) {
	t.Parallel()
	large := worker + strings.Repeat("# a comment that makes it larger\n", plainBytes/64)
	odd := "a: \"\\t\\u0085\\r\\n\\u2028{{ }}\"\nb: |\n    deep\n  \tless \n\n\n"
	for name, unwrap := range map[string]func(*testing.T, string) string{cloudConfig: unwrapCloudConfig, ignition: unwrapIgnition} {
		for what, c := range map[string]struct {
			format Format
			stream string
			packed bool
		}{
			"small":                        {Format{}, worker, false},
			"odd characters":               {Format{}, odd, false},
			"as large as the limit":        {Format{}, strings.Repeat("#", 11<<10), false},
			"larger":                       {Format{}, large + large, true},
			"larger than the target takes": {Format{MaxBytes: 8 << 10}, large, true},
			"for ec2":                      {Format{Target: "ec2"}, large + large, true},
		} {
			c.format.Type = name
			got, err := new(Wrapper).Wrap(c.format, []byte(c.stream))
			require.NoError(t, err, "%s, %s", name, what)
			assert.Equal(t, c.packed, regexp.MustCompile(`gz\+b64|"gzip"`).Match(got.Value), "%s, %s", name, what)
			assert.Equal(t, c.stream, unwrap(t, string(got.Value)), "%s, %s", name, what)
		}
	}
}

// unwrapCloudConfig takes the first file out of the last part, as programs do that know a subset of cloud-config.
func unwrapCloudConfig(t *testing.T, value string) string {
	t.Helper()
	text := value[strings.LastIndex(value, "#cloud-config\n"):]
	text, _, _ = strings.Cut(text, "\n--machineadm-")
	data, err := document.JSON("", []byte(text))
	require.NoError(t, err)
	var config cloudConfigText
	require.NoError(t, json.Unmarshal(data, &config))
	file := config.WriteFiles[0]
	if file.Encoding != "" {
		return unpacked(t, file.Content)
	}
	return file.Content
}

func unwrapIgnition(t *testing.T, value string) string {
	t.Helper()
	var config ignitionConfig
	require.NoError(t, json.Unmarshal([]byte(value), &config))
	contents := config.Storage.Files[0].Contents
	packed, found := strings.CutPrefix(contents.Source, "data:;base64,")
	require.True(t, found)
	if contents.Compression != "" {
		return unpacked(t, packed)
	}
	text, err := base64.StdEncoding.DecodeString(packed)
	require.NoError(t, err)
	return string(text)
}

// unwrapUnattend joins the pieces as cmd appends them.
func unwrapUnattend(t *testing.T, value string) string {
	t.Helper()
	var file struct {
		Commands []struct {
			Order int
			Path  string
		} `xml:"settings>component>RunSynchronous>RunSynchronousCommand"`
	}
	require.NoError(t, xml.Unmarshal([]byte(value), &file))
	require.LessOrEqual(t, len(file.Commands), maxCommands)
	var pieces string
	for i, c := range file.Commands {
		assert.Equal(t, i+1, c.Order)
		assert.LessOrEqual(t, len(c.Path), maxCommand)
		if piece, ok := strings.CutPrefix(c.Path, `cmd /c >>"C:\Program Files\machineadm\firstboot\node.gz.b64" echo `); ok {
			assert.Regexp(t, `^[A-Za-z0-9+/=]+$`, piece)
			pieces += piece
		}
	}
	return unpacked(t, pieces)
}

func TestWrapRefuses(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Format{
		`the type "cloudconfig" is none of`:                 {Type: "cloudconfig"},
		`the version of Ignition "2.3" is none of 3.0, 3.1`: {Type: "ignition", Version: "2.3"},
		"version is for the type ignition, not for plain":   {Type: "plain", Version: "3.3"},
		`the target "EC2" is none of`:                       {Target: "EC2"},
		"the template never calls machine_config":           {Type: "ignition", Template: []byte("{}")},
		"line 1 of the template neither calls machine_config nor begins with one of #!, #cloud-boothook, #cloud-config": {Template: []byte("## a comment\n#cloud-config\n")},
		"line 1 of the template is also one of cloud-init (jinja)":                                                      {Template: []byte("## template: jinja\n#cloud-config\n{{ machine_config }}")},
		"begins with one of #cloud-config, #ps1_sysnative, rem cmd":                                                     {Type: "cloudbaseInit", Template: []byte("#!/bin/sh\n")},
	} {
		_, err := new(Wrapper).Wrap(f, []byte(worker))
		assert.ErrorContains(t, err, want)
	}
	for _, mark := range []string{"## TEMPLATE: jinja", "## Template:Jinja", "##template: jinja", "\n  ## template: jinja", "##\ttemplate:\tjinja"} {
		_, err := new(Wrapper).Wrap(Format{Template: []byte(mark + "\n#cloud-config\n{{ machine_config }}")}, []byte(worker))
		assert.ErrorContains(t, err, "is also one of cloud-init (jinja)", "%q", mark)
	}
	_, err := new(Wrapper).Wrap(Format{Type: "talos"}, controlPlane(t))
	var unsupported *UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	assert.Equal(t, "KubernetesNode/node", unsupported.Kind+"/"+unsupported.Name)
	_, err = new(Wrapper).Wrap(Format{Type: "talos", Template: []byte("{{ machine_config }}")}, controlPlane(t))
	assert.ErrorAs(t, err, &unsupported)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	size := func(n int) []byte { return []byte(worker + "#" + strings.Repeat("x", n-len(worker)-2) + "\n") }
	for _, c := range []struct {
		format Format
		limit  int
		target string
	}{
		{Format{Target: "ec2"}, 16384, "ec2"},
		{Format{Target: "azure"}, 65535, "azure"},
		{Format{Target: "gce"}, 262144, "gce"},
		{Format{Target: "vsphere"}, 524288, "vsphere"},
		{Format{Target: "virtualbox"}, 1024, "virtualbox"},
		{Format{}, 1<<20 - len("cloud-config"), ""},
		{Format{Target: "ec2", MaxBytes: 20000}, 20000, ""},
		{Format{Target: "gce", MaxBytes: 500}, 500, ""},
		{Format{MaxBytes: 1 << 20}, 1<<20 - len("cloud-config"), ""},
	} {
		c.format.Type = plain
		if c.limit > len(worker) {
			got, err := new(Wrapper).Wrap(c.format, size(c.limit))
			require.NoError(t, err)
			assert.Len(t, got.Value, c.limit)
		}
		_, err := new(Wrapper).Wrap(c.format, size(c.limit+1))
		var large *TooLargeError
		if c.limit < len(worker) {
			_, err = new(Wrapper).Wrap(c.format, []byte(worker+"#"+strings.Repeat("x", 500)))
		}
		require.ErrorAs(t, err, &large)
		assert.Equal(t, c.limit, large.Limit)
		assert.Equal(t, c.target, large.Target)
		assert.NotContains(t, err.Error(), "c4n4ry")
	}
	assert.EqualError(t, &TooLargeError{Limit: 16384, Target: "ec2"}, "the data is too large: ec2 accepts 16384 bytes")
	assert.EqualError(t, &TooLargeError{Limit: 16384}, "the data is too large: 16384 bytes are allowed")
}

// An answer file has at most 500 commands.
func TestUnattendIsLimited(t *testing.T) {
	t.Parallel()
	var large *TooLargeError
	var stream strings.Builder
	stream.WriteString(worker + "#")
	for r := rand.New(rand.NewPCG(14, 3)); stream.Len() < 300000; { // hardly compressible
		stream.WriteByte(byte('!' + r.UintN(90)))
	}
	_, err := new(Wrapper).Wrap(Format{Type: "unattend"}, []byte(stream.String()+"\n"))
	require.ErrorAs(t, err, &large)
	assert.EqualError(t, err, "the data is too large: an answer file has at most 500 commands")
}

// One Wrapper serves many goroutines, and what it keeps changes no result.
func TestWrapperIsShared(t *testing.T) {
	t.Parallel()
	var w Wrapper
	want, err := w.Wrap(Format{}, []byte(worker))
	require.NoError(t, err)
	large := controlPlane(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				_, err := w.Wrap(Format{Type: "ignition"}, large)
				assert.NoError(t, err)
				got, err := w.Wrap(Format{}, []byte(worker))
				assert.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
	group.Wait()
}

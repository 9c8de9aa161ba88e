package fetch

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/testenv/nodes"
)

var update = flag.Bool("update", false, "write the scripts into the examples")

// maxUserData is the limit of EC2, the smallest of the clouds. Source: the user guide of EC2, "Instance metadata and user data".
const maxUserData = 16 << 10

func example(name string) string { return filepath.Join(root, "examples/fetch", name) }

// exampleHead is the head of the scripts in the examples.
func exampleHead(name string) Head {
	h := Head{
		Version: "v0.1.0", AMD64: digest([]byte("amd64")), ARM64: digest([]byte("arm64")),
		URLs: []string{"https://releases.example.com/machineadm/v0.1.0", "http://mirror.example.com/machineadm/v0.1.0"},
	}
	if name == PowerShell {
		h.AMD64, h.ARM64 = digest([]byte("windows")), ""
	}
	return h
}

// userData has the keys of cloud-config that the examples use.
type userData struct {
	WriteFiles []struct {
		Path, Content, Permissions, Owner string
	} `json:"write_files"`
	RunCmd []json.RawMessage `json:"runcmd"`
}

// TestExamples: the examples have the scripts of this checkout, with their heads filled in, and streams without an error.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"cloud-init.yaml": Shell, "cloudbase-init.yaml": PowerShell} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(example(name))
			require.NoError(t, err)
			text, err := Script(root, script, exampleHead(script))
			require.NoError(t, err)
			if *update {
				data = []byte(withScript(string(data), text))
				require.NoError(t, os.WriteFile(example(name), data, 0o644)) //nolint:gosec // read by everyone
			}
			assert.LessOrEqual(t, len(data), maxUserData)
			assert.True(t, strings.HasPrefix(string(data), "#cloud-config\n"))
			raw, err := document.JSON(name, data)
			require.NoError(t, err)
			var u userData
			require.NoError(t, json.Unmarshal(raw, &u))
			require.Len(t, u.WriteFiles, 2)
			for _, f := range u.WriteFiles {
				assert.Equal(t, "0600", f.Permissions)
			}
			wantStream(t, u.WriteFiles[0].Path, u.WriteFiles[0].Content)
			assert.Equal(t, text, u.WriteFiles[1].Content, "go test -update writes the script into the example")
			assert.Contains(t, string(u.RunCmd[len(u.RunCmd)-2]), filepath.Base(strings.ReplaceAll(u.WriteFiles[1].Path, `\`, "/")))
			assert.Contains(t, string(u.RunCmd[len(u.RunCmd)-1]), "--bootstrap")
		})
	}
}

// withScript replaces the last block of an example.
func withScript(data, script string) string {
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(script, "      $1")
	at := strings.LastIndex(data, "    content: |\n") + len("    content: |\n")
	return data[:at] + indented + data[strings.Index(data, "runcmd:\n"):]
}

func wantStream(t *testing.T, name, text string) {
	t.Helper()
	stream, err := document.Decode(name, strings.NewReader(text))
	require.NoError(t, err)
	assert.Empty(t, stream.Errors)
	require.NotEmpty(t, stream.Documents)
	for _, d := range stream.Documents {
		assert.Contains(t, v1alpha1.ServedKinds(), d.Kind)
	}
}

// TestIgnitionExample: Ignition checks the digest itself. testenv/bootstrapdata/parsers translates the example with Butane.
func TestIgnitionExample(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(example("ignition.bu"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(data), maxUserData)
	quoted := regexp.MustCompile(`mode: (\d+)`).ReplaceAll(data, []byte(`mode: "$1"`)) // an octal number of Butane
	raw, err := document.JSON("ignition.bu", quoted)
	require.NoError(t, err)
	var butane struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct {
					Source, Inline string
					Verification   struct{ Hash string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &butane))
	require.Len(t, butane.Storage.Files, 3)
	program := butane.Storage.Files[0].Contents
	assert.Equal(t, "sha256-"+digest([]byte("amd64")), program.Verification.Hash)
	assert.True(t, strings.HasSuffix(program.Source, "/"+File("v0.1.0", "linux", "amd64")), program.Source)
	wantStream(t, butane.Storage.Files[1].Path, butane.Storage.Files[1].Contents.Inline)
}

// standIn stands for machineadm: install puts it where a release has it, and each call is logged.
const standIn = `#!/bin/sh
set -eu
echo "$0" "$@" >>/var/calls
case $1 in
install) mkdir -p /opt/machineadm/bin; cp "$0" /opt/machineadm/bin/machineadm ;;
esac
`

// site is the configuration of nginx: the release, behind an error and behind a redirect.
const site = `server {
	listen 127.0.0.1:8080;
	root /srv/www;
	location /broken/ { return 503; }
	location /moved/ { rewrite ^/moved/(.*)$ http://127.0.0.1:8080/$1 redirect; }
}
`

// TestUserData boots a node with the example for cloud-init, and with nginx as the server of the release. To run the real chain,
// put a release in place of the stand-in.
func TestUserData(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(example("cloud-init.yaml"))
	require.NoError(t, err)
	text := strings.NewReplacer(
		"https://releases.example.com/machineadm", "http://127.0.0.1:8080/broken",
		"http://mirror.example.com/machineadm", "http://127.0.0.1:8080/moved",
		exampleHead(Shell).AMD64, digest([]byte(standIn)), exampleHead(Shell).ARM64, digest([]byte(standIn)),
	).Replace(string(data))
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, BootTimeout: 4 * time.Minute, Layers: []nodes.Layer{{Packages: []string{"nginx", "wget"}}},
		Prepare: nodes.InOrder(func(root string) error {
			release := "srv/www/v0.1.0/" + File("v0.1.0", "linux", runtime.GOARCH)
			return errors.Join(put(root, release, standIn), put(root, "etc/nginx/conf.d/release.conf", site))
		}, nodes.CloudInitSeed(text)),
	})
	log := n.MustExec(t, "cat", "/var/log/cloud-init-output.log").Stdout
	require.Contains(t, n.MustExec(t, "cloud-init", "status", "--long").Stdout, "status: done", "%s", log)
	assert.Contains(t, log, "machineadm-fetch: cannot download http://127.0.0.1:8080/broken/v0.1.0/machineadm-v0.1.0-linux-")
	calls := strings.Split(strings.TrimSpace(n.MustExec(t, "cat", "/var/calls").Stdout), "\n")
	require.Len(t, calls, 2)
	assert.Regexp(t, `^/opt/bin/machineadm install --manifest \S+ --manifest \S+/moved/v0.1.0/manifest.json --key RWS\S+$`, calls[0])
	assert.Equal(t, "/opt/machineadm/bin/machineadm --bootstrap --path /run/machineadm/node.yaml", calls[1])
	assert.Equal(t, "600 root", strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a %U", "/run/machineadm/node.yaml").Stdout))
	n.MustExec(t, "cloud-init", "schema", "--config-file", "/var/lib/cloud/instance/user-data.txt")
}

// put writes a file below the root of a node, which every user can read.
func put(root, path, content string) error {
	at := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(content), 0o644) //nolint:gosec // read by nginx
}

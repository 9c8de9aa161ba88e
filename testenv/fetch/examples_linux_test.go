package fetch

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
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
		assert.Contains(t, v1alpha1.Kinds(), d.Kind)
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

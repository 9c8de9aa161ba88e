package bootstrapdata

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/host/controller/wrap"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// userPart is cloud-config with the same lists as ours.
const userPart = `#cloud-config
write_files:
  - {path: /var/user, content: theirs, permissions: '0640'}
runcmd:
  - [sh, -c, 'test ! -e /run/machineadm/report.json && cp -p /etc/machineadm/node.yaml /var/node.yaml']
`

// TestCloudInit boots a node with the data, alone and beside a part of the user.
//
//machineadm:core
func TestCloudInit(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			t.Run("alone", func(t *testing.T) {
				t.Parallel()
				text := append(stream(t, false), "# \"ü\" < { }:\n"...)
				data := wrapped(t, wrap.Format{}, text)
				n := bootWithCloudInit(t, suite, data)
				prepared(t, n, 1)
				isAbsent(t, n, nodePath)
				put(t, n, "/run/user-data", data)
				got := n.MustExec(t, "cloud-init", "schema", "--config-file", "/run/user-data")
				assert.Contains(t, strings.ToLower(got.Stdout), "valid")
				assert.NotContains(t, strings.ToLower(got.Stdout+got.Stderr), "deprecat")
				// From here node.providerIDFrom takes the instance: docs/cluster-api.md.
				var instance struct {
					V1 map[string]any `json:"v1"`
				}
				facts := n.MustExec(t, "cat", "/run/cloud-init/instance-data.json").Stdout
				assert.Less(t, len(facts), 1<<20)
				require.NoError(t, json.Unmarshal([]byte(facts), &instance))
				assert.NotEmpty(t, instance.V1["instance_id"])
				assert.NotEmpty(t, instance.V1["local_hostname"])
				assert.Contains(t, instance.V1, "availability_zone")
				otherParsers(t, n, text)
			})
			if suite == nodes.Bookworm && !needs.Everything() {
				return
			}
			t.Run("with a part", func(t *testing.T) {
				t.Parallel()
				text := large(stream(t, true))
				n := bootWithCloudInit(t, suite, wrapped(t, wrap.Format{Template: []byte(userPart)}, text))
				prepared(t, n, 2)
				theirs, mode := read(t, n, "/var/user")
				assert.Equal(t, "theirs 640 root:root", theirs+" "+mode)
				// Their command ran before ours.
				content, mode := read(t, n, "/var/node.yaml")
				assert.Equal(t, string(text), content)
				assert.Equal(t, "600 root:root", mode)
				isAbsent(t, n, nodePath)
				require.NoError(t, n.Reboot(t.Context()))
				assert.Equal(t, 2, countRuns(t, n))
			})
		})
	}
}

func bootWithCloudInit(t *testing.T, suite nodes.Suite, data []byte) *nodes.Node {
	t.Helper()
	n := nodes.Boot(t, nodes.Options{Suite: suite, Prepare: nodes.InOrder(
		installed(t, "/usr/bin/machineadm", "/usr/libexec/machineadm"), nodes.CloudInitSeed(string(data)),
	)})
	status := n.MustExec(t, "cloud-init", "status", "--wait", "--long").Stdout
	assert.Contains(t, status, "status: done")
	return n
}

// otherParsers runs what else a node of cloud-init has: machineadm for the plain form, and Python with its parsers of MIME and
// YAML for that of cloudbase-init.
func otherParsers(t *testing.T, n *nodes.Node, text []byte) {
	t.Helper()
	put(t, n, "/run/plain.yaml", wrapped(t, wrap.Format{Type: "plain"}, text))
	n.MustExec(t, "machineadm", "validate", "--path", "/run/plain.yaml")
	for _, template := range []string{"", "#ps1_sysnative\r\nWrite-Host user\r\n"} {
		f := wrap.Format{Type: "cloudbaseInit"}
		if template != "" {
			f.Template = []byte(template)
		}
		put(t, n, "/run/message", wrapped(t, f, text))
		put(t, n, "/run/read.py", []byte(readMessage))
		put(t, n, "/run/user.ps1", []byte(template))
		put(t, n, "/run/stream.yaml", text)
		n.MustExec(t, "python3", "/run/read.py")
	}
}

// readMessage takes a message apart with the calls that cloudbase-init makes: parts in their order, cloud-config without a
// transfer encoding, scripts by the extensions of their names.
const readMessage = `
import base64, email, gzip, yaml
data = open("/run/message", "rb").read()
assert data.startswith(b"Content-Type: multipart")
parts = [p for p in email.message_from_string(data.decode()).walk() if not p.is_multipart()]
user = open("/run/user.ps1", "rb").read()
if user:
    first = parts.pop(0)
    assert first.get_filename() == "template.ps1", first.get_filename()
    assert first.get_payload(decode=True) == user, first.get_payload(decode=True)
prepare, files, run = parts
assert [p.get_content_type() for p in parts] == ["text/x-shellscript", "text/cloud-config", "text/x-shellscript"]
assert prepare.get_filename().endswith(".ps1") and run.get_filename().endswith(".ps1")
file, = yaml.safe_load(files.get_payload())["write_files"]
assert file["encoding"] == "gz+b64" and int(file["permissions"], 8) == 0o600
assert gzip.decompress(base64.b64decode(file["content"])) == open("/run/stream.yaml", "rb").read()
directory = file["path"].rpartition("\\")[0]
assert directory.encode() in prepare.get_payload(decode=True)
assert file["path"].encode() in run.get_payload(decode=True)
`

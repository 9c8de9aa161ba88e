package firstboot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	bearer    = "b3arer-c4n4ry-0f-a-source"
	nodeKey   = "32 bytes that only this node has"
	httpName  = "machineadm-remote-configuration-provider-http"
	fileName  = "machineadm-remote-configuration-provider-file"
	keyName   = "machineadm-plugin-encryption-provider-file"
	remoteURI = "https://config.example.com/node.yaml"
	outer     = "---\napiVersion: " + v1alpha1.APIVersion + "\nkind: RemoteConfig\nmetadata: {name: outer}\n" +
		"spec: {provider: file, uri: /etc/machineadm/outer.yaml}\n"
)

// site is the configuration of a server that wants a token.
const site = `server {
	listen 127.0.0.1:443 ssl;
	ssl_certificate /etc/nginx/site.crt;
	ssl_certificate_key /etc/nginx/site.key;
	root /srv/www;
	if ($http_authorization != "Bearer ` + bearer + `") { return 403; }
}
`

// remote is a RemoteConfig of the provider http.
func remote(a authority.Authority, object string) string {
	sum := sha256.Sum256([]byte(object))
	ca := strings.ReplaceAll(strings.TrimSpace(string(a.Certificate)), "\n", "\n      ")
	return fmt.Sprintf("---\napiVersion: %s\nkind: RemoteConfig\nmetadata: {name: site}\nspec:\n  provider: http\n  uri: %s\n  sha256: \"%s\"\n"+
		"  providerConfig:\n    bearer: {value: %s}\n    ca: |\n      %s\n", v1alpha1.APIVersion, remoteURI, hex.EncodeToString(sum[:]), bearer, ca)
}

// encrypted is an EncryptedConfig of the provider file.
func encrypted(t *testing.T, plain string) string {
	t.Helper()
	d, err := envelope.Seal("secrets", "file", "file:///etc/machineadm/node.key", nil, []byte(nodeKey), []byte(plain))
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, document.Encode(&text, d))
	return "---\n" + text.String()
}

// bootSite boots a node with a server of these files, and with a key.
func bootSite(t *testing.T, a authority.Authority, files map[string]string, prepare ...func(root string) error) *nodes.Node {
	t.Helper()
	dir := binaries(t)
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{
		httpName: "plugins/remote-config/http", fileName: "plugins/remote-config/file", keyName: "plugins/encrypted-config/file",
	}))
	certificate, key := a.Issue(t, "config.example.com")
	all := map[string]string{
		"/etc/nginx/conf.d/site.conf": site, "/etc/nginx/site.crt": string(certificate), "/etc/nginx/site.key": string(key),
		"/etc/machineadm/node.key": nodeKey, "/etc/hosts": "127.0.0.1 localhost config.example.com\n",
	}
	maps.Copy(all, files)
	return nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, Layers: []nodes.Layer{nodes.Nginx},
		Prepare: func(root string) error {
			if err := install(dir, root); err != nil {
				return err
			}
			for _, name := range []string{httpName, fileName, keyName} {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					return err
				}
				if err := write(root, libexec+"/"+name, string(data), 0o755); err != nil {
					return err
				}
			}
			for path, text := range all {
				mode := os.FileMode(0o600)
				if strings.HasPrefix(path, "/srv") || path == "/etc/hosts" {
					mode = 0o644
				}
				if err := write(root, path, text, mode); err != nil {
					return err
				}
			}
			return nodes.InOrder(prepare...)(root)
		},
	})
}

// TestRemoteAcrossAReboot: a file has an encrypted stream, which refers to a stream on a server, and a document of it needs
// a reboot. The server does not run afterwards, and the run finishes with what it had fetched.
func TestRemoteAcrossAReboot(t *testing.T) {
	t.Parallel()
	a := authority.New(t)
	object := noop("before", "touch: [/var/before], reboot: BeforeNext, token: {value: "+canary+"}") + "---\n" + stream
	n := bootSite(t, a, map[string]string{
		"/srv/www/node.yaml":                             object,
		"/etc/machineadm/outer.yaml":                     encrypted(t, remote(a, object)),
		"/etc/machineadm/node.yaml":                      outer,
		"/etc/systemd/system/nginx.service.d/first.conf": "[Unit]\nConditionPathExists=!/var/before\nBefore=machineadm.service\n",
	}, atBoot)
	r := lastReport(t, n)
	require.Equal(t, report.RunSucceeded, r.Outcome)
	require.Len(t, r.Documents, 6)
	n.MustExec(t, "test", "-s", sentinel)
	assert.Equal(t, "inactive", strings.TrimSpace(n.MustExec(t, "sh", "-c", "systemctl is-active nginx || true").Stdout))
	live(t, n)
	gone(t, n, "/var/lib/machineadm/resolved", kept, resumeUnit)
	for _, secret := range []string{canary, bearer, nodeKey} {
		found, err := n.Exec(t.Context(), "grep", "-rlI", secret, "/var/lib/machineadm", "/run/machineadm", "/var/log", "/tmp")
		assert.NoError(t, err)
		assert.Equal(t, 1, found.ExitCode, "%s", found.Stdout)
		journal, err := n.Exec(t.Context(), "sh", "-c", "journalctl --no-pager | grep -c '"+secret+"' || true")
		assert.NoError(t, err)
		assert.Equal(t, "0", strings.TrimSpace(journal.Stdout))
	}
}

// TestRemoteComesLate: the documents ahead of a source that cannot be reached are applied, and the rest when it can. A file stands
// for an encrypted stream, and that one for the source, all in one run without a reboot.
func TestRemoteComesLate(t *testing.T) {
	t.Parallel()
	a := authority.New(t)
	object := noop("fetched", "touch: [/var/fetched]")
	n := bootSite(t, a, map[string]string{
		"/srv/www/node.yaml":                            object,
		"/etc/systemd/system/nginx.service.d/late.conf": "[Unit]\nConditionPathExists=/var/ahead\n",
		"/etc/machineadm/outer.yaml":                    encrypted(t, remote(a, object)),
		"/etc/machineadm/node.yaml":                     noop("ahead", "touch: [/var/ahead]") + outer + noop("behind", "touch: [/var/behind]"),
	})
	plan := n.MustExec(t, "sh", "-c", "machineadm plan --path /etc/machineadm/node.yaml; echo exit $?").Stdout
	assert.Contains(t, plan, "exit 10")
	assert.Contains(t, plan, "RemoteConfig/site")
	n.MustExec(t, "systemd-run", "--unit=prepare", "--no-block", "machineadm", "--bootstrap", "--path", "/etc/machineadm/node.yaml")
	n.MustExec(t, "timeout", "600", "sh", "-c", "until test -e /var/ahead; do sleep 0.05; done")
	gone(t, n, "/var/fetched", "/var/behind")
	n.MustExec(t, "systemctl", "start", "nginx")
	n.MustExec(t, "timeout", "600", "sh", "-c", "until test -s "+sentinel+"; do sleep 0.05; done")
	r := lastReport(t, n)
	require.Equal(t, report.RunSucceeded, r.Outcome)
	assert.Equal(t, `1 Noop/ahead by test
2 RemoteConfig/outer by file: resolved
  2.1 EncryptedConfig/secrets by file: resolved
    2.1.1 RemoteConfig/site by http: resolved
      2.1.1.1 Noop/fetched by test
3 Noop/behind by test
`, n.MustExec(t, "machineadm", "resolve", "--path", "/etc/machineadm/node.yaml").Stdout)
	var ids []string
	for _, d := range r.Documents {
		ids = append(ids, d.ID+" "+d.Kind+"/"+d.Name+" "+string(d.Outcome))
	}
	assert.Equal(t, []string{
		"1 Noop/ahead Changed", "2 RemoteConfig/outer Unchanged", "2.1 EncryptedConfig/secrets Unchanged", "2.1.1 RemoteConfig/site Unchanged",
		"2.1.1.1 Noop/fetched Changed", "3 Noop/behind Changed",
	}, ids)
}

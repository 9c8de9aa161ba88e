package vm

import (
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	sourcePlugin = "/usr/libexec/machineadm/machineadm-remote-configuration-provider-http"
	remoteFile   = "/etc/machineadm/remote.yaml"
	fetchedFile  = "/etc/sysctl.d/99-machineadm-fetched.conf"
	site         = "server { listen 127.0.0.1:443 ssl; root /srv/www; ssl_certificate /etc/nginx/site.crt; ssl_certificate_key /etc/nginx/site.key; }\n"
	fetched      = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: fetched}\nspec: {parameters: {net.core.somaxconn: 8191}}\n"
)

// certified prepares a server on the machine itself whose certificate is valid since yesterday, the stream that it serves, and the
// same stream behind a Timesync document.
func certified(t *testing.T) func(root string) error {
	t.Helper()
	a := authority.New(t)
	certificate, key := a.Issue(t, "source.example", func(c *x509.Certificate) {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		c.NotBefore, c.NotAfter = time.Now().AddDate(0, 0, -1), time.Now().AddDate(1, 0, 0)
	})
	ca := strings.ReplaceAll(strings.TrimSpace(string(a.Certificate)), "\n", "\n      ")
	remote := "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: site}\n" +
		"spec:\n  provider: http\n  uri: https://127.0.0.1/node.yaml\n  report: {disabled: true}\n  providerConfig:\n    ca: |\n      " + ca + "\n"
	return nodes.InOrder(
		file("/etc/nginx/conf.d/site.conf", site, 0o644), file("/etc/nginx/site.crt", string(certificate), 0o644),
		file("/etc/nginx/site.key", string(key), 0o600), file("/srv/www/node.yaml", fetched, 0o644),
		file(remoteFile, remote, 0o600), file(nodeFile, timesyncStream+"---\n"+remote, 0o600),
	)
}

// beforeItsTime: where the certificate of a source is not valid yet by the machine's clock, a stream without Timesync changes
// nothing, and the hint names the clock; with Timesync ahead, the source waits for its turn.
func beforeItsTime(t *testing.T, n *nodes.Node) {
	t.Helper()
	const refused, hint = "the certificate of 127.0.0.1:443 is refused: ", "check the clock of this machine"
	assert.True(t, clockOf(t, n).Before(time.Now().AddDate(0, 0, -2)), "the clock of the machine is %s", clockOf(t, n))
	got := expect(t, n, report.ExitPrecondition, "machineadm", "apply", "--path", remoteFile)
	assert.Contains(t, got.Stderr, refused)
	assert.Contains(t, got.Stderr, hint)
	expect(t, n, 1, "test", "-e", fetchedFile, "-o", "-e", sentinel)
	got = expect(t, n, report.ExitDiffers, "machineadm", "plan", "--path", nodeFile)
	assert.Contains(t, got.Stdout, refused)
	assert.Contains(t, got.Stdout, hint)
}

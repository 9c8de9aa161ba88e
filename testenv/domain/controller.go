package domain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// Controller is a domain controller.
type Controller struct {
	*nodes.Node
	// FQDN is its name in DNS and in its certificate.
	FQDN string
	// CA signed its certificate, and is in no trust store.
	CA authority.Authority
}

// unit starts samba in the foreground, so that systemd waits until it is ready.
const unit = `[Unit]
After=network.target
[Service]
Type=notify
ExecStart=/usr/sbin/samba --foreground --no-process-group
TimeoutStartSec=120
`

func controllerPackages() nodes.Layer {
	return nodes.Layer{Packages: []string{
		"attr", "bind9-host", "iproute2", "ldb-tools", "python3-dnspython", "samba", "samba-ad-provision", "samba-dsdb-modules",
		"samba-vfs-modules", "winbind",
	}}
}

func memberPackages() nodes.Layer {
	return nodes.Layer{Packages: []string{
		"adcli", "krb5-user", "ldap-utils", "libnss-sss", "libsasl2-modules-gssapi-mit", "sssd-ad", "sssd-tools",
	}}
}

// ready waits for the ports of samba's tasks, which open after samba is ready, and for the records that clients look up.
const ready = `for port in 53 88 389 464 636; do
	timeout 60 sh -c "until ss -ltn sport = :$port | grep -q LISTEN; do sleep 0.1; done" || { journalctl -u dc --no-pager; exit 1; }
done
timeout 60 sh -c "until host -t SRV _ldap._tcp.dc._msdcs.$1 $2 >/dev/null; do sleep 0.1; done" || { journalctl -u dc --no-pager; exit 1; }`

// Start boots a controller under a name of the network and waits until it answers. Its directory is new, and has the accounts
// of this package.
func Start(t testing.TB, network *nodes.Network, name string) *Controller {
	t.Helper()
	began := time.Now()
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{controllerPackages()}, Network: network, Hostname: name,
		Prepare: nodes.InOrder(mask("smbd", "nmbd", "winbind", "samba-ad-dc"), write(map[string]string{
			"etc/systemd/system/dc.service": unit,
			"etc/resolv.conf":               "nameserver " + network.Address(name).String() + "\nsearch " + Name + "\n",
		}, "etc/samba/smb.conf")),
	})
	c := &Controller{Node: n, FQDN: name + "." + Name, CA: authority.New(t)}
	n.MustExec(t, "samba-tool", "domain", "provision", "--realm="+Realm, "--domain="+NetBIOS, "--server-role=dc",
		"--dns-backend=SAMBA_INTERNAL", "--adminpass="+Administrator().Password, "--host-name="+name,
		"--host-ip="+network.Address(name).String(), "--option=interfaces=lo eth0", "--option=bind interfaces only=yes",
		"--option=dns forwarder=", "--option=log level=1")
	n.MustExec(t, "sh", "-c", seed())
	c.certify(t)
	n.MustExec(t, "systemctl", "start", "dc")
	n.MustExec(t, "sh", "-c", ready, "sh", Name, c.Address().String())
	t.Logf("controller %s is ready after %s", c.FQDN, time.Since(began).Round(time.Millisecond))
	return c
}

// certify gives the controller a certificate, which its own one is no substitute for: that has no name that Go accepts.
func (c *Controller) certify(t testing.TB) {
	t.Helper()
	certificate, key := c.CA.Issue(t, c.FQDN)
	for name, content := range map[string][]byte{"ca.pem": c.CA.Certificate, "cert.pem": certificate, "key.pem": key} {
		r, err := c.ExecInput(t.Context(), strings.NewReader(string(content)), "sh", "-c",
			"umask 077 && mkdir -p /var/lib/samba/private/tls && cat >/var/lib/samba/private/tls/"+name)
		if err != nil || r.ExitCode != 0 {
			t.Fatalf("write %s: %v %s", name, err, r.Stderr)
		}
	}
}

// Member boots a node whose name server is the controller, with the client programs that check a join.
func (c *Controller) Member(t testing.TB, network *nodes.Network, name string, prepare ...func(root string) error) *nodes.Node {
	t.Helper()
	steps := append([]func(string) error{write(map[string]string{
		"etc/resolv.conf": "nameserver " + c.Address().String() + "\nsearch " + Name + "\n",
	}, "etc/krb5.conf")}, prepare...)
	return nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{memberPackages()},
		Network: network, Hostname: name, Prepare: nodes.InOrder(steps...),
	})
}

// mask keeps services from starting at boot.
func mask(units ...string) func(root string) error {
	return func(root string) error {
		for _, unit := range units {
			at := filepath.Join(root, "etc/systemd/system", unit+".service")
			if err := os.RemoveAll(at); err != nil {
				return err
			}
			if err := os.Symlink("/dev/null", at); err != nil {
				return err
			}
		}
		return nil
	}
}

// write writes files and removes others.
func write(files map[string]string, others ...string) func(root string) error {
	return func(root string) error {
		for _, name := range others {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				return err
			}
		}
		for name, text := range files {
			at := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return err
			}
			if err := os.RemoveAll(at); err != nil { // the name server's file can be a link
				return err
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil { //nolint:gosec // the node is a test's
				return err
			}
		}
		return nil
	}
}

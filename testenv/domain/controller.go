package domain

import (
	"context"
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

// CAFile is the path at which a member has the controller's CA; no program uses it by itself.
const CAFile = "/etc/testenv-ca.pem"

// unit starts samba in the foreground, so that systemd waits until it is ready.
const unit = `[Unit]
After=network.target
[Service]
Type=notify
ExecStart=/usr/sbin/samba --foreground --no-process-group
TimeoutStartSec=120
`

// ready waits for the ports of samba's tasks, which open after samba is ready, and for the records that clients look up.
const ready = `for port in 53 88 389 464 636; do
	timeout 60 sh -c "until ss -ltn sport = :$port | grep -q LISTEN; do sleep 0.1; done" || { journalctl -u dc --no-pager; exit 1; }
done
timeout 60 sh -c "until host -t SRV _ldap._tcp.dc._msdcs.$1 $2 >/dev/null; do sleep 0.1; done" || { journalctl -u dc --no-pager; exit 1; }`

// Start boots a controller under a name of the network and waits until it answers. Its directory is new, and has the accounts
// of this package. It comes from the cache, where each name and address has one of its own: a network whose first name is dc1
// uses what all others do.
func Start(t testing.TB, network *nodes.Network, name string) *Controller {
	t.Helper()
	return StartOn(t, nodes.Bookworm, network, name)
}

// StartOn boots a controller of another suite: Samba 4.17 of Bookworm refuses Kerberos over TLS, and 4.22 of Trixie accepts it
// if it is bound to the connection.
func StartOn(t testing.TB, suite nodes.Suite, network *nodes.Network, name string) *Controller {
	t.Helper()
	began, layer := time.Now(), nodes.Samba
	if suite == nodes.Trixie {
		layer = nodes.SambaOfTrixie
	}
	n := nodes.Boot(t, nodes.Options{
		Suite: suite, Layers: []nodes.Layer{layer}, Script: seed(name, network.Address(name)),
		Network: network, Hostname: name,
		Prepare: nodes.InOrder(mask("smbd", "nmbd", "winbind", "samba-ad-dc"), write(map[string]string{
			"etc/systemd/system/dc.service": unit,
			"etc/resolv.conf":               "nameserver " + network.Address(name).String() + "\nsearch " + Name + "\n",
		})),
	})
	c := &Controller{Node: n, FQDN: name + "." + Name, CA: authority.New(t)}
	c.install(t, c.CA, c.FQDN)
	c.restart(t)
	t.Logf("controller %s is ready after %s", c.FQDN, time.Since(began).Round(time.Millisecond))
	return c
}

// restart waits until the controller answers again.
func (c *Controller) restart(t testing.TB) {
	t.Helper()
	c.run(t, "", "systemctl", "restart", "dc")
	c.run(t, "", "sh", "-c", ready, "sh", Name, c.Address().String())
}

// run is MustExec with stdin, and for cleanups too, where the test's context is over. It returns stdout.
func (c *Controller) run(t testing.TB, input string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	r, err := c.ExecInput(ctx, strings.NewReader(input), argv...)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%s on the controller: %v, exit status %d: %s%s", argv[0], err, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Member boots a node of Bookworm whose name server is the controller, with the client programs that check a join and the
// controller's CA in CAFile.
func (c *Controller) Member(t testing.TB, network *nodes.Network, name string, prepare ...func(root string) error) *nodes.Node {
	t.Helper()
	return c.MemberOf(t, nodes.Bookworm, network, name, prepare...)
}

// MemberOf boots one of another suite.
func (c *Controller) MemberOf(
	t testing.TB, suite nodes.Suite, network *nodes.Network, name string, prepare ...func(root string) error,
) *nodes.Node {
	t.Helper()
	steps := append([]func(string) error{write(map[string]string{
		"etc/resolv.conf": "nameserver " + c.Address().String() + "\nsearch " + Name + "\n",
		CAFile:            string(c.CA.Certificate),
	}, "etc/krb5.conf")}, prepare...)
	return nodes.Boot(t, nodes.Options{
		Suite: suite, Layers: []nodes.Layer{nodes.Member},
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

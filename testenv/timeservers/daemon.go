package timeservers

import (
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// Daemon is a time daemon of Debian, by the name of its package. The packages conflict with each other, so that a node has
// the layer of one.
type Daemon string

const (
	// Chrony is chronyd, its unit is chrony.service.
	Chrony = Daemon(nodes.Chrony)
	// NTPsec is Debian's ntpd, its unit is ntpsec.service.
	NTPsec = Daemon(nodes.NTPsec)
	// Timesyncd is systemd's client, its unit is systemd-timesyncd.service.
	Timesyncd = Daemon(nodes.Timesyncd)
)

// Daemons lists every daemon.
func Daemons() []Daemon { return []Daemon{Chrony, NTPsec, Timesyncd} }

// Layer is the daemon's package, for containers and for virtual machines.
func (d Daemon) Layer() nodes.Layer { return nodes.Layer(d) }

// Options boot a container with the daemon. The other daemons run there too, if a test installs them later.
func (d Daemon) Options(suite nodes.Suite) nodes.Options {
	return nodes.Options{Suite: suite, Layers: []nodes.Layer{d.Layer()}, TimeDaemon: true, Prepare: allowInContainer}
}

// allowInContainer makes the daemons' units start without control of the clock. The drop-ins are sorted before the ones of
// the product, because the empty condition resets every earlier one.
func allowInContainer(root string) error {
	const units = "usr/lib/systemd/system/"
	return writeFiles(root, map[string]string{
		// chronyd ends when it cannot adjust the clock, unless -x says so. This file replaces the options of the
		// administrator's /etc/default/chrony, which stays as the package has it.
		units + "chrony.service.d/00-container.conf": "[Service]\nEnvironmentFile=/usr/lib/testenv/chrony\n",
		"usr/lib/testenv/chrony":                     "DAEMON_OPTS=\"-F 1 -x\"\n",
		// ConditionVirtualization=!container
		units + "systemd-timesyncd.service.d/00-container.conf": "[Unit]\nConditionVirtualization=\n",
	})
}

func writeFiles(root string, files map[string]string) error {
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil { //nolint:gosec // the daemons read it as their own users
			return err
		}
	}
	return nil
}

package timeservers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// Options are the options of a server; the zero value serves the machine's time without authentication.
type Options struct {
	// Stratum is 2 when zero.
	Stratum int
	// Keys are the symmetric keys with which clients may authenticate.
	Keys []Key
	// CA issues the certificate with which the server serves NTS under its name.
	CA *authority.Authority
	// Offset is how far off the served time is, to a second, until the server's node reboots.
	Offset time.Duration
}

const (
	keyFile         = "etc/chrony/testenv.keys"
	certificateFile = "etc/chrony/testenv.crt"
	privateFile     = "etc/chrony/testenv.key"
)

// Chronyd boots a node whose chronyd serves time to the network under the name.
func Chronyd(t testing.TB, network *nodes.Network, name string, o Options) *nodes.Node {
	t.Helper()
	options := Chrony.Options(nodes.Trixie)
	options.Network, options.Hostname = network, name
	files := o.files(t, name)
	options.Prepare = nodes.InOrder(options.Prepare, func(root string) error { return writeFiles(root, files) })
	n := nodes.Boot(t, options)
	if o.Offset != 0 {
		// chronyd -x keeps this correction to itself and serves the corrected time.
		now := time.Now().Add(o.Offset).UTC().Format("2006-01-02 15:04:05")
		n.MustExec(t, "chronyc", "settime", now)
		n.MustExec(t, "chronyc", "makestep")
	}
	return n
}

func (o Options) files(t testing.TB, name string) map[string]string {
	t.Helper()
	if o.Stratum == 0 {
		o.Stratum = 2
	}
	var config, keys strings.Builder
	fmt.Fprintf(&config, "local stratum %d\nallow\nmanual\n", o.Stratum)
	files := map[string]string{}
	if len(o.Keys) > 0 {
		for _, k := range o.Keys {
			keys.WriteString(k.Chrony())
		}
		files[keyFile] = keys.String()
		config.WriteString("keyfile /" + keyFile + "\n")
	}
	if o.CA != nil {
		certificate, private := o.CA.Issue(t, name)
		files[certificateFile], files[privateFile] = string(certificate), string(private)
		config.WriteString("ntsservercert /" + certificateFile + "\nntsserverkey /" + privateFile + "\nntsdumpdir /var/lib/chrony\n")
	}
	files["etc/chrony/chrony.conf"] = config.String()
	return files
}

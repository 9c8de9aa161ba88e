// Package python shows that a plugin needs no Go: a vendor's plugin in Python, written from contract/SPEC.md and
// plugin.proto alone and with Debian's packages only, passes the conformance kit and runs in the host.
//
// All of it happens in nodes: the machine that runs the tests needs no Python.
package python

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/foreign"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	plugin   = "machineadm-apt-repository-plugin-deb822"
	openntpd = "machineadm-timesync-plugin-openntpd"
	libexec  = "/usr/libexec/machineadm/"
	source   = "/usr/src/machineadm-apt-repository"
	proto    = "../../contract/pluginv1/pb/plugin.proto"
)

// programs are built by TestMain; a test binary has no other way to pass something to its tests.
var programs foreign.Programs

func TestMain(m *testing.M) { os.Exit(foreign.Main(m, &programs)) }

// boot boots a node in which the plugins are installed by their own build.
func boot(t *testing.T, suite nodes.Suite, stream string) *foreign.Node {
	t.Helper()
	p := foreign.Plugin{Path: libexec + plugin, Cases: "testdata/conformance"}
	return bootWith(t, p, suite, stream)
}

func bootWith(t *testing.T, p foreign.Plugin, suite nodes.Suite, stream string) *foreign.Node {
	t.Helper()
	p.Programs, p.Layer, p.Install = &programs, nodes.PythonGRPC, copySources
	n := p.Boot(t, suite, stream, canary)
	build(t, n.Node)
	return n
}

func copySources(root string) error {
	return errors.Join(
		foreign.Copy("plugin", filepath.Join(root, source)),
		foreign.Copy(filepath.Dir(proto), filepath.Join(root, source, "published")),
	)
}

func build(t *testing.T, n *nodes.Node) {
	t.Helper()
	n.MustExec(t, source+"/install.sh", source+"/published/plugin.proto")
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() { // each has another gRPC
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			boot(t, suite, "").Conforms(t)
		})
	}
}

// TestTimesync: a provider of a kind of machineadm, with the cases of the same provider in Go.
func TestTimesync(t *testing.T) {
	t.Parallel()
	p := foreign.Plugin{Path: libexec + openntpd, Cases: "../foreign/openntpd/testdata/conformance"}
	bootWith(t, p, nodes.Bookworm, "").Conforms(t)
}

// TestOpenRC: its daemon outlives the run on a real system with OpenRC.
func TestOpenRC(t *testing.T) {
	t.Parallel()
	require.Root(t)
	foreign.OpenNTPD(t, programs.Host(), copySources, func(n *nodes.Node) { build(t, n) })
}

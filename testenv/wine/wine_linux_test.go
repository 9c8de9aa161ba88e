package wine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	p := boot(t)
	t.Run("units", func(t *testing.T) { units(t, p) })
	t.Run("command line", func(t *testing.T) { commandLine(t, p) })
	t.Run("mirror", func(t *testing.T) { mirror(t, p) })
	t.Run("remote", func(t *testing.T) { remote(t, p) })
	t.Run("KubernetesNode", func(t *testing.T) { kubernetesNode(t, p) })
	t.Run("DomainJoin", func(t *testing.T) { domainJoin(t, p) })
}

// units runs tests of packages that have code of their own for Windows.
func units(t *testing.T, p prefix) {
	t.Helper()
	for _, test := range []struct {
		pkg, run, skip string
		want           []string // tests that must have passed
	}{
		{pkg: "host/machine", want: []string{"TestBootID"}},
		{pkg: "host/launch", run: "^TestTask$", want: []string{"TestTask"}},
		{ // a schema in another directory, access control lists
			pkg: "host/state", skip: "^(TestShape|TestPending)$",
			want: []string{"TestLockExcludesInOneProcess", "TestLockExcludesOtherProcesses"},
		},
		{ // access control lists
			pkg: "internal/atomicfile", skip: "^TestClosed$",
			want: []string{"TestWriteFileCreatesAndReplaces"},
		},
		{pkg: "internal/trust", want: []string{"TestACL", "TestStockACLs"}},
		{pkg: "sdk/machine", want: []string{"TestInvocationID", "TestRegistry"}},
		{pkg: "plugins/domain-join/activedirectory/internal/netjoin", want: []string{"TestConverges", "TestEncode", "TestMark"}},
		{pkg: "plugins/timesync/w32time", run: "^TestPlanOnWindows$", want: []string{"TestPlanOnWindows"}},
	} {
		t.Run(strings.ReplaceAll(test.pkg, "/", "-"), func(t *testing.T) {
			argv := []string{p.install(t, strings.ReplaceAll(test.pkg, "/", "-")+".test.exe", "test", "-c", "./"+test.pkg), "-test.v"}
			if test.run != "" {
				argv = append(argv, "-test.run", test.run)
			}
			if test.skip != "" {
				argv = append(argv, "-test.skip", test.skip)
			}
			out := p.mustRun(t, argv...)
			assert.Contains(t, out, "--- PASS: Test")
			for _, name := range test.want {
				assert.Contains(t, out, "--- PASS: "+name+" ")
			}
		})
	}
}

// commandLine runs the installed host with a plugin, which it finds, trusts, starts over loopback TCP with mutual TLS and asks.
func commandLine(t *testing.T, p prefix) {
	t.Helper()
	const dir = "Program Files/machineadm/"
	host := p.install(t, dir+"machineadm.exe", "build", "./host/cmd/machineadm")
	plugin := p.install(t, dir+"plugins/machineadm-container-runtime-plugin-containerd.exe", "build", "./plugins/container-runtime/containerd")
	p.install(t, dir+"plugins/machineadm-timesync-plugin-w32time.exe", "build", "./plugins/timesync/w32time")
	list := p.mustRun(t, host, "plugins", "list")
	assert.Contains(t, list, "Trusted")
	assert.Contains(t, list, plugin)

	const document = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: ContainerRuntime\nmetadata: {name: main}\nspec:\n"
	p.write(t, "good.yaml", document+"  provider: containerd\n  logLevel: warn\n")
	p.write(t, "bad.yaml", document+"  provider: containerd\n  logLevel: loud\n")
	p.mustRun(t, host, "validate", "--path", `C:\good.yaml`)
	bad := p.run(t, host, "validate", "--path", `C:\bad.yaml`)
	assert.Equal(t, 2, bad.ExitCode, bad.Stderr)
	assert.Contains(t, bad.Stdout+bad.Stderr, `C:\bad.yaml:6:3: ContainerRuntime/main: spec.logLevel: `)
	absent := p.run(t, host, "plan", "--path", `C:\good.yaml`)
	assert.Equal(t, 4, absent.ExitCode, absent.Stderr)
	assert.Contains(t, absent.Stdout+absent.Stderr, "containerd")

	const timesync = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Timesync\nmetadata: {name: time}\nspec:\n"
	p.write(t, "time.yaml", timesync+"  servers: [{address: ntp1.example.com}]\n")
	p.mustRun(t, host, "validate", "--path", `C:\time.yaml`)
	absent = p.run(t, host, "plan", "--path", `C:\time.yaml`)
	assert.Equal(t, 4, absent.ExitCode, absent.Stderr)
	assert.Contains(t, absent.Stdout+absent.Stderr, "the service W32Time is not registered")
	p.write(t, "time.yaml", timesync+"  servers: [{address: ntp1.example.com, nts: true}]\n")
	refused := p.run(t, host, "plan", "--path", `C:\time.yaml`)
	assert.Equal(t, 4, refused.ExitCode, refused.Stderr)
	assert.Contains(t, refused.Stdout+refused.Stderr, "spec.servers[0].nts: W32Time has no Network Time Security")
}

//go:build linux

package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// links makes a machine whose links lead to reserved paths.
func links(t *testing.T) func(*machinetest.Fixture) {
	return func(f *machinetest.Fixture) {
		t.Helper()
		for _, dir := range []string{"usr/bin", "etc/kubernetes/pki", "etc/machineadm", "run", "srv", "var", "data"} {
			require.NoError(t, os.MkdirAll(filepath.Join(f.Root, dir), 0o755)) //nolint:gosec // like any machine
		}
		for name, target := range map[string]string{
			"srv/k": "/etc/machineadm", "srv/usr": "../usr", "srv/run": "/run", "srv/nothing": "/var/lib/machineadm", "srv/file": "/etc/kubernetes/admin.conf",
			"srv/etc": "/etc/kubernetes", "srv/loop": "loop", "srv/good": "/data", "var/lib": "/data/lib", "srv/out": "../../../../../usr",
		} {
			require.NoError(t, os.Symlink(target, filepath.Join(f.Root, name)))
		}
	}
}

// TestPathsThroughLinks: a path is where a write to it ends, and the error is one of the machine, at the field, with a remedy.
func TestPathsThroughLinks(t *testing.T) {
	t.Parallel()
	const leads = "a link of this machine leads from it to a path of the provider, of the host, of the kernel or of the operating system"
	file := func(path string) string {
		return initSpec + "files: [{path: /etc/x, content: a}, {path: " + path + ", content: a}]"
	}
	at := "spec.files[1].path"
	for text, want := range map[string]string{
		file("/srv/k/defaults.yaml"): at, file("/srv/usr/bin/evil"): at, file("/srv/run/machineadm/x"): at, file("/srv/nothing/x"): at, file("/srv/file"): at,
		file("/srv/etc/scheduler.conf"): at, file("/srv/etc/pki/ca.key"): at, file("/srv/out/x"): at, file("/data/lib/kubelet/pods/x"): at, file("/data/lib/etcd/x"): at,
		file("/srv/etc/audit/policy.yaml"): "", file("/srv/etc/other.conf"): "", file("/srv/etc/pki/x"): "", file("/data/lib/kubelet/config.json"): "", file("/srv/good/x"): "",
		initSpec + "cluster: {certificatesDir: /srv/usr/pki}":   "spec.cluster.certificatesDir",
		initSpec + "cluster: {certificatesDir: /srv/nothing}":   "spec.cluster.certificatesDir",
		initSpec + "etcd: {local: {dataDir: /srv/k/etcd}}":      "spec.etcd.local.dataDir",
		initSpec + "etcd: {local: {dataDir: /srv/good/etcd}}":   "",
		initSpec + "cluster: {certificatesDir: /srv/good/pki}":  "",
		initSpec + "cluster: {certificatesDir: /srv/etc/other}": "",
	} {
		_, violations, err := spec(t, text, links(t))
		require.Empty(t, violations, text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		e := pluginv1.AsError(err)
		require.NotNil(t, e, text)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code, text)
		assert.True(t, e.Final, text)
		if assert.Len(t, e.Violations, 1, text) {
			assert.Equal(t, want, e.Violations[0].Field, text)
			assert.Equal(t, leads, e.Violations[0].Message, text)
			assert.Contains(t, e.Violations[0].Hint, "namei -l", text)
		}
	}
	_, _, err := spec(t, file("/srv/loop/x"), links(t))
	assert.Equal(t, at, pluginv1.AsError(err).Violations[0].Field)
	_, _, err = spec(t, initSpec+"files: [{path: /data/x, content: a}, {path: /srv/good/x, content: b}]", links(t))
	assert.Equal(t, sdk.Violation{
		Field: at, Message: "is the same file as spec.files[0].path: a link of this machine leads there", Hint: "remove one of the two",
	}, pluginv1.AsError(err).Violations[0])
}

// TestPathsOfTheSystem: what a text alone shows is an error of the document, which validate finds too.
func TestPathsOfTheSystem(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/usr", "/usr/bin/evil", "/usr/local/bin/x", "/bin/evil", "/sbin/x", "/lib/systemd/system/x", "/lib64/x", "/var/run/machineadm/x", "/var/run/cluster-api/x",
		"/etc/kubernetes/admin.conf", "/etc/kubernetes", "/etc/machineadm", "/proc/sys/x",
	} {
		_, violations, err := spec(t, initSpec+"files: [{path: "+path+", content: a}]")
		require.NoError(t, err)
		if assert.Len(t, violations, 1, path) {
			assert.Equal(t, "spec.files[0].path", violations[0].Field)
			assert.NotEmpty(t, violations[0].Hint)
		}
	}
	for _, path := range []string{"/usrx", "/binary/x", "/var/running", "/opt/bin/x", "/etc/systemd/system/x.service", "/var/lib/etcd2"} {
		_, violations, err := spec(t, initSpec+"files: [{path: "+path+", content: a}]")
		require.NoError(t, err)
		assert.Empty(t, violations, path)
	}
	for _, text := range []string{"cluster: {certificatesDir: /usr/pki}", "cluster: {certificatesDir: /etc/machineadm/pki}", "etcd: {local: {dataDir: /bin/etcd}}"} {
		_, violations, err := spec(t, initSpec+text)
		require.NoError(t, err)
		assert.Len(t, violations, 1, text)
	}
	for _, path := range []string{`C:\Windows\x`, `c:\WINDOWS\System32\x`, `C:\ProgramData\MachineADM\x`, `C:\Etc\Kubernetes\PKI\CA.crt`, `C:\var\lib\kubelet\Config.yaml`, `C:\etc\kubernetes\kubelet.CONF`} {
		_, violations, err := spec(t, workerSpec+"files: [{path: '"+path+"', content: a}]", windows)
		require.NoError(t, err)
		assert.Len(t, violations, 1, path)
	}
	_, violations, err := spec(t, workerSpec+`files: [{path: 'C:\a', content: b}, {path: 'c:\A', content: b}]`, windows)
	require.NoError(t, err)
	assert.Equal(t, "spec.files[1].path: is the same as spec.files[0].path", strings.TrimSpace(shown(violations)))
}

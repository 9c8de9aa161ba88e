package wine

//machineadm:tier system

import (
	"encoding/base64"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

const (
	joinCanary = "c4n4ry-pässwörd-91d2"
	netapi     = drive + "/netapi"
	joinPlugin = "machineadm-domain-join-plugin-activedirectory.exe"

	joinDocument = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: DomainJoin
metadata: {name: domain}
spec:
  domain: ad.example.com
`
	joinCredentials = "  credentials: {username: joiner, password: {value: " + joinCanary + "}}\n"
	// What testdata/netapi32.c records of a join with these credentials, before the flags.
	joined = "NetJoinDomain server=none domain=ad.example.com unit=none account=joiner@ad.example.com password=right "
)

// domain is a Windows machine in a network with the domain ad.example.com, both made up by testdata/netapi32.c.
type domain struct {
	prefix
	host string
}

// newDomain builds the stand-in, and makes it the netapi32.dll of the plugin alone.
func newDomain(t *testing.T, p prefix) domain {
	t.Helper()
	const dir = "Program Files/machineadm/"
	d := domain{p, p.install(t, dir+"machineadm.exe", "build", "./host/cmd/machineadm")}
	p.install(t, dir+"plugins/"+joinPlugin, "build", "./plugins/domain-join/activedirectory")
	require.NoError(t, p.CopyIn(t.Context(), "testdata/netapi32.c", "/run/netapi32.c", 0o644))
	p.MustExec(t, "x86_64-w64-mingw32-gcc", "-shared", "-O", "-Wall", "-Werror", `-DPASSWORD=L"`+joinCanary+`"`,
		"-o", drive+"/windows/system32/netapi32.dll", "/run/netapi32.c")
	p.mustRun(t, "reg", "add", `HKCU\Software\Wine\AppDefaults\`+joinPlugin+`\DllOverrides`, "/v", "netapi32", "/d", "native", "/f")
	p.MustExec(t, "mkdir", netapi)
	return d
}

// apply applies a document, and returns what the run printed and the report.
func (d domain) apply(t *testing.T, spec string, want int) string {
	t.Helper()
	d.write(t, "join.yaml", joinDocument+spec)
	r := d.run(t, d.host, "apply", "--path", `C:\join.yaml`)
	require.Equal(t, want, r.ExitCode, "%s%s", r.Stdout, r.Stderr)
	said := r.Stdout + r.Stderr + d.MustExec(t, "cat", path.Join(drive, "ProgramData/machineadm/run/report.json")).Stdout
	require.NotContains(t, said, joinCanary)
	return said
}

// returns has the next call return a code.
func (d domain) returns(t *testing.T, code int) {
	t.Helper()
	d.write(t, "netapi/code", strconv.Itoa(code))
}

// calls returns what was called since it was last asked.
func (d domain) calls(t *testing.T) string {
	t.Helper()
	return d.MustExec(t, "sh", "-c", `cat "$1/log" 2>/dev/null; rm -f "$1/log"`, "sh", netapi).Stdout
}

// reboot ends the wineserver, with which every process, every volatile key and the names of the boot end.
func (d domain) reboot(t *testing.T) {
	t.Helper()
	d.restart(t)
	d.MustExec(t, "sh", "-c", `if test -e "$1/next"; then mv "$1/next" "$1/domain"; fi`, "sh", netapi)
}

// domainJoin joins and leaves a domain by the installed host and the calls that the plugin makes.
func domainJoin(t *testing.T, p prefix) {
	t.Helper()
	d := newDomain(t, p)
	t.Run("refusals", func(t *testing.T) { joinRefused(t, d) })
	t.Run("join", func(t *testing.T) { join(t, d) })
	t.Run("leave", func(t *testing.T) { leave(t, d) })
	t.Run("rename", func(t *testing.T) { joinRenamed(t, d) })
	t.Run("offline", func(t *testing.T) { joinOffline(t, d) })
	t.Run("secrets", func(t *testing.T) { joinSecrets(t, d) })
}

func joinRefused(t *testing.T, d domain) {
	t.Helper()
	assert.Contains(t, d.apply(t, "", report.ExitPrecondition), "spec.credentials: the machine has to join ad.example.com")
	assert.Contains(t, d.apply(t, "  computerName: other\n"+joinCredentials, report.ExitPrecondition), "spec.windows.rename: true")
	assert.Contains(t, d.apply(t, "  oneTimePassword: {value: "+joinCanary+"}\n", report.ExitPrecondition), "spec.oneTimePassword: ")
	assert.Empty(t, d.calls(t))
	for code, want := range map[int]string{
		1326: "spec.credentials: Windows cannot join ad.example.com: the user name or the password is wrong (error 1326)",
		2224: "spec.existingAccount: Windows cannot join ad.example.com: the domain has an account of this name (error 2224)",
		8557: "spec.credentials: Windows cannot join ad.example.com: the user has created as many computers as the domain allows",
	} {
		d.returns(t, code)
		said := d.apply(t, joinCredentials, report.ExitPrecondition)
		assert.Contains(t, said, want)
		assert.Contains(t, said, fmt.Sprintf(`"windowsError": "%d"`, code))
		assert.Equal(t, joined+"flags=0x20003\n", d.calls(t))
	}
	d.write(t, "netapi/domain", "CORP corp.example.com")
	assert.Contains(t, d.apply(t, joinCredentials, report.ExitPrecondition), "spec.domain: the machine is a member of another domain, CORP corp.example.com")
	assert.Empty(t, d.calls(t))
	d.MustExec(t, "rm", netapi+"/domain")
}

// join is killed before and after the join, and demands the reboot until it has happened.
func join(t *testing.T, d domain) {
	t.Helper()
	const options = "  existingAccount: reuse\n  organizationalUnit: OU=Nodes,DC=ad,DC=example,DC=com\n  servers: [dc1.ad.example.com]\n"
	const call = `NetJoinDomain server=none domain=ad.example.com\dc1.ad.example.com unit=OU=Nodes,DC=ad,DC=example,DC=com ` +
		"account=joiner@ad.example.com password=right flags=0x3\n"
	for _, kill := range []int{100001, 100002} {
		d.returns(t, kill)
		d.apply(t, options+joinCredentials, report.ExitFailed)
		assert.Equal(t, call, d.calls(t))
	}
	for range 2 {
		d.apply(t, "", report.ExitReboot)
	}
	d.reboot(t)
	assert.Contains(t, d.apply(t, "", 0), `"Unchanged"`)
	assert.Empty(t, d.calls(t))
}

func leave(t *testing.T, d domain) {
	t.Helper()
	const absent = "  state: absent\n  leave: disable\n"
	assert.Contains(t, d.apply(t, absent, report.ExitPrecondition), "spec.credentials: the machine has to leave ad.example.com")
	assert.Contains(t, d.apply(t, "  state: absent\n"+joinCredentials, report.ExitPrecondition), "spec.leave: ")
	d.apply(t, absent+joinCredentials, report.ExitReboot)
	assert.Equal(t, "NetUnjoinDomain server=none account=joiner@ad.example.com password=right flags=0x4\n", d.calls(t))
	d.apply(t, absent, report.ExitReboot)
	d.reboot(t)
	d.apply(t, absent, 0)
	assert.Empty(t, d.calls(t))
}

// joinRenamed joins by the new name, which the machine has after the same reboot.
func joinRenamed(t *testing.T, d domain) {
	t.Helper()
	const renamed = "  computerName: NODE-2\n  windows: {rename: true}\n"
	d.apply(t, renamed+joinCredentials, report.ExitReboot)
	assert.Equal(t, joined+"flags=0x20403\n", d.calls(t))
	d.apply(t, renamed, report.ExitReboot)
	d.MustExec(t, "sh", "-c", `hostname node-2 && echo "127.0.0.1 node-2" >> /etc/hosts`) // from which wine takes its name at each start
	d.reboot(t)
	d.apply(t, renamed, 0)
	assert.Empty(t, d.calls(t))
	assert.Contains(t, d.apply(t, "  computerName: NODE-3\n", report.ExitPrecondition), "the machine is a member as NODE-2 and not as NODE-3")
	d.MustExec(t, "rm", netapi+"/domain")
}

func joinOffline(t *testing.T, d domain) {
	t.Helper()
	blob := base64.StdEncoding.EncodeToString([]byte(joinCanary))
	d.returns(t, 2710)
	assert.Contains(t, d.apply(t, "  offlineJoinBlob: {value: "+blob+"}\n", report.ExitPrecondition), "spec.offlineJoinBlob: ")
	d.calls(t)
	d.apply(t, "  offlineJoinBlob: {value: "+blob+"}\n", report.ExitReboot)
	data := "fffe" // the text in UTF-16; the stand-in records 32 bytes
	for _, letter := range []byte(blob[:15]) {
		data += fmt.Sprintf("%02x00", letter)
	}
	assert.Equal(t, "NetRequestOfflineDomainJoin data="+data+" options=0x40000000 windows=C:\\windows\n", d.calls(t))
	d.apply(t, "", report.ExitReboot)
	d.reboot(t)
	d.apply(t, "", 0)
	assert.Empty(t, d.calls(t))
}

// joinSecrets searches the drive for the password, and for the data of the offline join.
func joinSecrets(t *testing.T, d domain) {
	t.Helper()
	d.MustExec(t, "rm", drive+"/join.yaml", drive+"/windows/system32/netapi32.dll")
	blob := base64.StdEncoding.EncodeToString([]byte(joinCanary))
	for _, secret := range []string{joinCanary, blob} {
		wide := strings.Join(strings.Split(secret[:7], ""), `\x00`)
		r := d.MustExec(t, "sh", "-c", `grep -rlsF -- "$1" "$3"; grep -rlsaP -- "$2" "$3"; true`, "sh", secret, wide, home+"/.wine")
		assert.Empty(t, r.Stdout, secret)
	}
}

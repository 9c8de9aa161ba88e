package main

import (
	"errors"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestRealKernel applies documents to the real kernel: the parameters of a network namespace that ends with the test's
// thread.
func TestRealKernel(t *testing.T) {
	require.Root(t)
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and its namespace with it
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		require.Missing(t, "needs a network namespace of its own: "+err.Error())
	}
	b := newFixture(t, nil)
	kernel := machine.NewKernel("/", nil)
	b.machine.Kernel = kernel
	spec := `{"parameters":{"net.ipv4.ip_forward":1,"net/ipv4/tcp_rmem":"8192 100000  200000","net.ipv4.conf.lo.rp_filter":2}}`
	if _, err := b.apply(t, spec); err != nil {
		t.Fatal(err)
	}
	if got, err := kernel.Parameter("net/ipv4/tcp_rmem"); err != nil || got != "8192\t100000\t200000" {
		t.Errorf("tcp_rmem is %q, %v", got, err)
	}
	if again := string(show(b.plan(t, spec))); again != "converged\n" {
		t.Errorf("the second plan is not empty:\n%s", again)
	}
	former := b.read(t, ownSysctl)
	_, err := b.apply(t, `{"parameters":{"net.ipv4.ip_forward":0,"net.ipv4.tcp_adv_win_scale":99}}`)
	wantPrecondition(t, err, "net.ipv4.tcp_adv_win_scale = 99", "EINVAL", "the previous values are restored")
	if got, err := kernel.Parameter("net/ipv4/ip_forward"); err != nil || got != "1" {
		t.Errorf("ip_forward was not restored: %q, %v", got, err)
	}
	if got := b.read(t, ownSysctl); got != former {
		t.Errorf("the file changed to %q", got)
	}
	for spec, part := range map[string]string{
		`{"parameters":{"net.ipv4.route.flush":1}}`:      "EACCES",
		`{"parameters":{"net.ipv4.conf":1}}`:             "group of parameters",
		`{"parameters":{"net.ipv4.nosuch":1}}`:           "no parameter net.ipv4.nosuch",
		`{"parameters":{"net.ipv4.ip_forward.x":1}}`:     "no parameter net.ipv4.ip_forward.x",
		`{"modules":["machineadm_test_no_module"]}`:      "no module machineadm_test_no_module",
		`{"parameters":{"kernel.cap_last_cap":"0.0.1"}}`: "EACCES",
	} {
		_, err := b.apply(t, spec)
		wantPrecondition(t, err, part)
	}
}

// TestValuesOfTheKernel: the kernel takes the smallest number of the table, and none beyond its bounds. The largest one can be of another
// kernel. Only parameters of a network namespace are tried.
func TestValuesOfTheKernel(t *testing.T) {
	require.Root(t)
	runtime.LockOSThread() // as above
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		require.Missing(t, "needs a network namespace of its own: "+err.Error())
	}
	kernel, tried := machine.NewKernel("/", nil), 0
	for line := range strings.Lines(valueTable) {
		f := strings.Fields(line)
		if f[0] == "numbers" {
			for _, name := range f[2:] {
				key := strings.ReplaceAll(strings.ReplaceAll(f[1], "*", "default"), ".", "/") + "/" + name
				if _, err := kernel.Parameter(key); err == nil && strings.HasPrefix(key, "net/") && kernel.SetParameter(key, "many") == nil {
					t.Errorf("%s takes a word", key)
				}
			}
			continue
		}
		key := strings.ReplaceAll(strings.ReplaceAll(f[0], "*", "default"), ".", "/")
		if _, err := kernel.Parameter(key); err != nil || !strings.HasPrefix(key, "net/") {
			continue
		}
		count, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(line)
		}
		set := func(number string) error {
			return kernel.SetParameter(key, strings.TrimSpace(strings.Repeat(number+" ", count)))
		}
		if set("many") == nil {
			t.Errorf("%s takes a word", key)
		}
		if least, err := strconv.Atoi(f[2]); err == nil && !strings.HasSuffix(key, "_range") { // a range of one port is none
			tried++
			if err := set(f[2]); err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s does not take %s: %v", key, f[2], err)
			}
			if least > 0 && set(strconv.Itoa(least-1)) == nil {
				t.Errorf("%s takes %d", key, least-1)
			}
		}
		if most, err := strconv.Atoi(f[3]); err == nil && set(strconv.Itoa(most+1)) == nil {
			t.Errorf("%s takes %d", key, most+1)
		}
	}
	for text, takes := range map[string]bool{
		"ip_local_reserved_ports 30000:32767": false, "ip_local_reserved_ports 8080,30000-32767": true, "tcp_congestion_control RENO": false,
		"tcp_congestion_control reno": true,
	} {
		name, value, _ := strings.Cut(text, " ")
		if err := kernel.SetParameter("net/ipv4/"+name, value); (err == nil) != takes {
			t.Errorf("%s: %v", text, err)
		}
	}
	if tried < 20 {
		t.Errorf("only %d parameters were tried", tried)
	}
}

package machine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const release = "6.1.0-test"

// kernelOf returns a kernel whose proc, sys and lib have these files.
func kernelOf(t *testing.T, contents map[string]string) (machine.Kernel, string, *machinetest.Runner) {
	t.Helper()
	root := t.TempDir()
	for name, text := range contents {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	commands := machinetest.NewRunner(t)
	return machine.NewKernel(root, commands), root, commands
}

func TestParameters(t *testing.T) {
	t.Parallel()
	k, root, _ := kernelOf(t, map[string]string{
		"proc/sys/net/ipv4/tcp_rmem":            "4096\t131072\t6291456\n",
		"proc/sys/net/ipv4/conf/eth0.5/forward": "0\n",
		"proc/sys/kernel/two":                   "a\nb\n\n",
	})
	for key, want := range map[string]string{
		"net/ipv4/tcp_rmem": "4096\t131072\t6291456", "net/ipv4/conf/eth0.5/forward": "0", "kernel/two": "a\nb\n",
	} {
		if got, err := k.Parameter(key); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", key, got, err, want)
		}
	}
	must(t, k.SetParameter("net/ipv4/tcp_rmem", "1 2 3"))
	if got, err := os.ReadFile(filepath.Join(root, "proc/sys/net/ipv4/tcp_rmem")); err != nil || string(got) != "1 2 3\n" {
		t.Errorf("written %q, %v", got, err)
	}
}

func TestInvalidParameters(t *testing.T) {
	t.Parallel()
	k, root, _ := kernelOf(t, map[string]string{"proc/sys/vm/swappiness": "60\n", "proc/outside": "x"})
	must(t, os.Symlink("../../outside", filepath.Join(root, "proc/sys/vm/link")), unix.Mkfifo(filepath.Join(root, "proc/sys/vm/pipe"), 0o644))
	for key, want := range map[string]error{
		"vm/absent": fs.ErrNotExist, "absent/x": fs.ErrNotExist, "vm": machine.ErrNotRegular,
		"vm/link": machine.ErrNotRegular, "vm/pipe": machine.ErrNotRegular,
		"": fs.ErrInvalid, "/vm/swappiness": fs.ErrInvalid, "vm//swappiness": fs.ErrInvalid, "vm/./swappiness": fs.ErrInvalid,
		"vm/../vm/swappiness": fs.ErrInvalid, "../outside": fs.ErrInvalid, "vm/": fs.ErrInvalid, "vm/x\x00": fs.ErrInvalid,
	} {
		_, read := k.Parameter(key)
		write := k.SetParameter(key, "s3cret")
		if !errors.Is(read, want) || !errors.Is(write, want) {
			t.Errorf("%q: errors %v and %v, want %v", key, read, write, want)
		}
		if strings.Contains(write.Error(), "s3cret") || errors.Is(want, fs.ErrNotExist) && !strings.Contains(write.Error(), key) {
			t.Errorf("%q: error %v", key, write)
		}
	}
	for _, value := range []string{"1\n2", "1\x00"} {
		if err := k.SetParameter("vm/swappiness", value); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("error %v, want fs.ErrInvalid", err)
		}
	}
	if got, err := k.Parameter("vm/swappiness"); err != nil || got != "60" {
		t.Errorf("the parameter is now %q (%v)", got, err)
	}
}

// TestRefusalKeepsItsErrno: the error of a read-only file system has its errno.
func TestRefusalKeepsItsErrno(t *testing.T) {
	t.Parallel()
	k, root, _ := kernelOf(t, map[string]string{"proc/sys/vm/swappiness": "60\n"})
	withReadOnly(t, root, func() error {
		err := k.SetParameter("vm/swappiness", "s3cret")
		errno, ok := errors.AsType[syscall.Errno](err)
		if !ok || errno != unix.EROFS || err.Error() != "set kernel parameter: vm/swappiness: read-only file system" {
			t.Errorf("error %v, want EROFS and the key", err)
		}
		return nil
	})
}

func TestModules(t *testing.T) {
	t.Parallel()
	const osrelease, lib = "proc/sys/kernel/osrelease", "lib/modules/" + release
	for name, test := range map[string]struct {
		files  map[string]string
		module string
		want   machine.ModuleState
	}{
		"loaded":             {map[string]string{"proc/modules": "overlay 1 0 - Live 0x0\nbr_netfilter 2 1 bridge, Live 0x0\n"}, "br-netfilter", machine.ModuleLoaded},
		"loading":            {map[string]string{"proc/modules": "br_netfilter 2 1 - Loading 0x0\n"}, "br_netfilter", machine.ModuleAbsent},
		"prefix":             {map[string]string{"proc/modules": "overlayfs 1 0 - Live 0x0\n"}, "overlay", machine.ModuleAbsent},
		"sys, loaded":        {map[string]string{"sys/module/ip_vs/initstate": "live\n"}, "ip-vs", machine.ModuleLoaded},
		"sys, coming":        {map[string]string{"sys/module/ip_vs/initstate": "coming\n"}, "ip_vs", machine.ModuleAbsent},
		"sys, built in":      {map[string]string{"sys/module/ip_vs/parameters/x": "1"}, "ip_vs", machine.ModuleBuiltIn},
		"listed as built in": {map[string]string{osrelease: release + "\n", lib + "/modules.builtin": "kernel/fs/x.ko\nkernel/net/br-netfilter.ko\n"}, "br_netfilter", machine.ModuleBuiltIn},
		"loadable":           {map[string]string{osrelease: release + "\n", lib + "/modules.dep": "kernel/a.ko: kernel/overlay.ko\nkernel/fs/overlayfs/overlay.ko.xz: kernel/a.ko\n"}, "overlay", machine.ModuleLoadable},
		"only a dependency":  {map[string]string{osrelease: release + "\n", lib + "/modules.dep": "kernel/a.ko: kernel/overlay.ko\n"}, "overlay", machine.ModuleAbsent},
		"in usr":             {map[string]string{osrelease: release + "\n", "usr/" + lib + "/modules.dep": "kernel/overlay.ko.zst:\n"}, "overlay", machine.ModuleLoadable},
		"other kernel":       {map[string]string{osrelease: "5.0\n", lib + "/modules.dep": "kernel/overlay.ko:\n"}, "overlay", machine.ModuleAbsent},
		"evidence overlay":   {map[string]string{"proc/filesystems": "nodev\tproc\n\text4\nnodev\toverlay\n"}, "overlay", machine.ModuleBuiltIn},
		"evidence bridge":    {map[string]string{"proc/sys/net/bridge/bridge-nf-call-iptables": "0"}, "br_netfilter", machine.ModuleBuiltIn},
		"evidence conntrack": {map[string]string{"proc/sys/net/netfilter/nf_conntrack_max": "0"}, "nf_conntrack", machine.ModuleBuiltIn},
		"loaded, evidence":   {map[string]string{"proc/modules": "overlay 1 0 - Live 0x0\n", "proc/filesystems": "nodev\toverlay\n"}, "overlay", machine.ModuleLoaded},
		"nothing at all":     {nil, "overlay", machine.ModuleAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _, _ := kernelOf(t, test.files)
			if got, err := k.Module(test.module); err != nil || got != test.want {
				t.Errorf("%s is %v, %v, want %v", test.module, got, err, test.want)
			}
		})
	}
	k, _, _ := kernelOf(t, nil)
	for _, name := range []string{"", "-r", "../x", "a b", "a/b", "a\n", strings.Repeat("a", 65)} {
		_, err := k.Module(name)
		if load := k.LoadModule(context.Background(), name); !errors.Is(err, fs.ErrInvalid) || !errors.Is(load, fs.ErrInvalid) {
			t.Errorf("%q: errors %v and %v, want fs.ErrInvalid", name, err, load)
		}
	}
}

func TestLoadModule(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	k, root, commands := kernelOf(t, map[string]string{"proc/modules": "", "proc/filesystems": "nodev\toverlay\n"})
	must(t, k.LoadModule(ctx, "overlay")) // built in: nothing is run
	commands.OnFunc("modprobe -b -- br_netfilter", func(context.Context, machine.Command) (machine.Result, error) {
		return machine.Result{}, os.WriteFile(filepath.Join(root, "proc/modules"), []byte("br_netfilter 1 0 - Live 0x0\n"), 0o644)
	})
	must(t, k.LoadModule(ctx, "br_netfilter"), k.LoadModule(ctx, "br-netfilter"))
	if got := strings.Join(commands.Lines(), "; "); got != "modprobe -b -- br_netfilter" {
		t.Errorf("commands %q", got)
	}
	commands.On("modprobe -b -- gone", machine.Result{ExitCode: 1, Stderr: []byte("FATAL: Module gone not found")})
	if err := k.LoadModule(ctx, "gone"); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v, want one that names the module", err)
	}
	commands.On("modprobe -b -- denied", machine.Result{})
	if err := k.LoadModule(ctx, "denied"); err == nil || !strings.Contains(err.Error(), "install line") {
		t.Errorf("error %v, want one that says that it is not there", err)
	}
}

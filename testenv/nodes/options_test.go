package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	network := &Network{names: []string{"n1", "n2"}}
	for _, c := range []struct {
		name    string
		options Options
		wrong   string // part of the error
	}{
		{"a suite", Options{Suite: Trixie}, ""},
		{"a layer", Options{Suite: Trixie, Layers: []Layer{Nginx, Squid}, Script: ":"}, ""},
		{"Ubuntu", Options{Suite: Noble}, ""},
		{"a layer on Ubuntu", Options{Suite: Noble, Layers: []Layer{Nginx}}, "base system alone"},
		{"a virtual machine of Ubuntu", Options{Suite: Noble, VM: true}, "base system alone"},
		{"no suite", Options{}, "suite"},
		{"an unknown suite", Options{Suite: "sid"}, "sid"},
		{"a stack that is not in the table", Options{Suite: Trixie, Layers: []Layer{Squid, Nginx}}, `["squid" "nginx"] on trixie are not in Stacks`},
		{"a stack of another suite", Options{Suite: Bookworm, Layers: []Layer{Nginx}}, "not in Stacks"},
		{"a stack of containers", Options{Suite: Trixie, VM: true, Layers: []Layer{Nginx}}, `["linux-image-cloud-amd64" "nginx"] on trixie are not in Stacks`},
		{"a clock", Options{Suite: Trixie, Clock: time.Hour}, "only a virtual machine"},
		{"a virtual machine in a network", Options{Suite: Trixie, VM: true, Network: network, Hostname: "n1"}, "no network"},
		{"a virtual machine for a time daemon", Options{Suite: Trixie, VM: true, TimeDaemon: true}, "clock of its own"},
		{"a virtual machine with OpenRC", Options{Suite: Trixie, VM: true, Init: OpenRC}, "boots systemd"},
		{"limits of version 1 on Trixie", Options{Suite: Trixie, Limits: true}, "Bookworm"},
		{"no name in a network", Options{Suite: Trixie, Network: network}, `no name "node"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.options.checked()
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error %v, want one about %q", err, c.wrong)
				}
				return
			}
			if err != nil || got.Hostname != "node" || got.BootTimeout != needs.Timeout(4*time.Minute) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestStacks: each stack is there once and can be booted, and its packages are names as in deb-control(5), so that no option and no
// word of the shell gets into apt-get's argument vector.
func TestStacks(t *testing.T) {
	t.Parallel()
	name, seen := regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`), map[string]bool{}
	for _, o := range Stacks() {
		_, err := o.checked()
		stack := fmt.Sprintf("%s %q", o.Suite, o.stack())
		if err != nil || seen[stack] || len(o.stack()) == 0 {
			t.Errorf("%s: error %v, listed before: %v", stack, err, seen[stack])
		}
		seen[stack] = true
		for _, layer := range o.stack() {
			for _, p := range strings.Split(string(layer), " ") {
				if !name.MatchString(p) {
					t.Errorf("%s: %q is no name of a package", stack, p)
				}
			}
		}
	}
}

func TestInstanceNames(t *testing.T) {
	t.Parallel()
	owner := process{pid: "4194304", start: "18446744073709551615"}
	inst := newInstance("/run/of/nodes", owner)
	if len(inst.name) > 63 {
		t.Errorf("%q is too long for a host name label", inst.name)
	}
	if got, ok := ownerOf(inst.name); !ok || got != owner {
		t.Errorf("owner read back as %+v, %v", got, ok)
	}
	if inst.dir != filepath.Join("/run/of/nodes", inst.name) || inst == newInstance("/run/of/nodes", owner) {
		t.Errorf("instance %+v", inst)
	}
	for _, other := range []string{"", "machineadm-node-", "machineadm-node-1-2", "machineadm-node-1-2-0123456", "machineadm-node-x-2-01234567", "machineadm-node-1-2-01234567x", "xmachineadm-node-1-2-01234567"} {
		if owner, ok := ownerOf(other); ok {
			t.Errorf("%q is taken for a node of %+v", other, owner)
		}
	}
}

func TestCloudInitSeed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	flag := filepath.Join(root, "etc/cloud/cloud-init.disabled")
	if err := os.MkdirAll(filepath.Dir(flag), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	instances := map[string]bool{}
	for _, userData := range []string{"#cloud-config\n{}\n", "#cloud-config\n{}\n", "#!/bin/sh\n"} {
		if err := CloudInitSeed(userData)(root); err != nil {
			t.Fatal(err)
		}
		seed := filepath.Join(root, "var/lib/cloud/seed/nocloud")
		got, err := os.ReadFile(filepath.Join(seed, "user-data"))
		if err != nil || string(got) != userData {
			t.Errorf("user-data %q, %v", got, err)
		}
		meta, err := os.ReadFile(filepath.Join(seed, "meta-data"))
		if err != nil {
			t.Fatal(err)
		}
		instances[string(meta)] = true
	}
	if len(instances) != 2 {
		t.Errorf("two different user-data made %d instances", len(instances))
	}
	if _, err := os.Lstat(flag); !os.IsNotExist(err) {
		t.Errorf("cloud-init is still disabled: %v", err)
	}
}

func TestNetworkNames(t *testing.T) {
	t.Parallel()
	for wrong, names := range map[string][]string{
		"0 names": nil, "251 names": make([]string, 251), `name ""`: {""}, `name "a b"`: {"a b"}, `name "A"`: {"A"},
		`name "localhost"`: {"localhost"}, `name "a" is given twice`: {"a", "b", "a"},
	} {
		require.ErrorContains(t, checkNames(names), wrong)
	}
	n := &Network{names: []string{"n1", "time.example"}}
	require.NoError(t, checkNames(n.names))
	root := t.TempDir()
	hosts := filepath.Join(root, "etc/hosts")
	require.NoError(t, os.Mkdir(filepath.Dir(hosts), 0o700))
	require.NoError(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o600))
	o, err := Options{Suite: Trixie, Network: n, Hostname: "time.example"}.checked()
	require.NoError(t, err)
	require.NoError(t, o.Prepare(root))
	got, err := os.ReadFile(hosts)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1 localhost\n10.77.0.1 n1\n10.77.0.2 time.example\n", string(got))
}

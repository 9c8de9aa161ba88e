package sysctld

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

// inNamespace runs a program as it would run at boot, on the files of one scenario: in its own network namespace, whose
// parameters start with the kernel's defaults, and in a root that has the machine's /usr and the scenario's
// configuration. Then it prints the parameters of the scenario.
const inNamespace = `set -eu
root=$1; shift
mkdir -p "$root/usr" "$root/proc" "$root/dev" "$root/run" "$root/etc"
for d in bin sbin lib lib64; do
	if [ -L "/$d" ]; then cp -P "/$d" "$root/$d"; elif [ -d "/$d" ]; then mkdir -p "$root/$d"; mount --bind "/$d" "$root/$d"; fi
done
mount --bind /usr "$root/usr"
mount --bind "$root/vendor" "$root/usr/lib/sysctl.d"
mount --bind "$root/local" "$root/usr/local/lib"
mount --rbind /proc "$root/proc"
touch "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
chroot "$root" "$@" >"$root/log" 2>&1 || true
for k in $KEYS; do echo "$k $(cat "/proc/sys/$k")"; done
`

func keys() []string {
	return []string{
		"net/ipv4/tcp_keepalive_time", "net/ipv4/tcp_keepalive_probes", "net/ipv4/tcp_keepalive_intvl",
		"net/ipv4/tcp_retries1", "net/ipv4/tcp_retries2",
	}
}

// scenario maps the directories of the machine to those that inNamespace mounts there.
func scenario() map[string]string {
	return map[string]string{
		"/etc/sysctl.d": "etc/sysctl.d", "/run/sysctl.d": "run/sysctl.d",
		"/usr/local/lib/sysctl.d": "local/sysctl.d", "/usr/lib/sysctl.d": "vendor",
	}
}

// TestAgainstTheRealPrograms applies random configurations with systemd-sysctl and procps' sysctl, and compares the
// kernel's values with Effective's.
func TestAgainstTheRealPrograms(t *testing.T) {
	require.Root(t)
	require.Tool(t, "unshare")
	systemd := "/usr/lib/systemd/systemd-sysctl"
	if _, err := os.Stat(systemd); err != nil {
		require.Missing(t, "needs systemd-sysctl")
	}
	procps := require.Tool(t, "sysctl")
	version, err := exec.CommandContext(t.Context(), procps, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(version), "procps-ng 4.") {
		require.Missing(t, "needs the sysctl of procps-ng 4, found: "+string(version))
	}
	defaults := run(t, t.TempDir(), tree{}, "/usr/bin/true")
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		files := randomTree(random)
		for rules, command := range map[Rules][]string{Systemd: {systemd}, Procps: {procps, "--system"}} {
			got := run(t, t.TempDir(), files, command...)
			configuration, err := Load(files, rules, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys() {
				want := defaults[key]
				setting, found := configuration.Effective(Key(key))
				if found && !setting.Exclude {
					want = setting.Value
				}
				if got[key] != want {
					t.Errorf("round %d, %s: %s is %s, Effective returned %s (%+v)\n%s",
						round, command[0], key, got[key], want, setting, describe(files))
				}
			}
		}
	}
}

func run(t *testing.T, root string, files tree, command ...string) map[string]string {
	t.Helper()
	for name, directory := range scenario() {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, data := range files {
			if filepath.Dir(file) != name {
				continue
			}
			to := filepath.Join(root, directory, filepath.Base(file))
			if data == nil {
				if err := os.Symlink("/dev/null", to); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(to, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if data := files["/etc/sysctl.conf"]; data != nil {
		if err := os.WriteFile(filepath.Join(root, "etc/sysctl.conf"), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	arguments := append([]string{"--mount", "--net", "--propagation", "private", "sh", "-c", inNamespace, "sh", root}, command...)
	shell := exec.CommandContext(t.Context(), "unshare", arguments...)
	shell.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "KEYS=" + strings.Join(keys(), " ")}
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(output)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[key] = value
	}
	return values
}

// randomTree has no exclusion by a pattern: procps has supported that only since 4.0.5.
func randomTree(random *rand.Rand) tree {
	files := tree{}
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for directory := range scenario() {
		for range random.IntN(4) {
			name := pick("10-a.conf", "20-b.conf", "9-c.conf", "30-d.conf", "z.conf", "ignored.txt", ".hidden.conf")
			if random.IntN(8) == 0 {
				files[directory+"/"+name] = nil
				continue
			}
			files[directory+"/"+name] = randomFile(random)
		}
	}
	if random.IntN(2) == 0 {
		files["/etc/sysctl.conf"] = randomFile(random)
	}
	return files
}

func randomFile(random *rand.Rand) []byte {
	var b strings.Builder
	for range random.IntN(5) {
		key := keys()[random.IntN(len(keys()))]
		if random.IntN(2) == 0 {
			key = strings.ReplaceAll(key, "/", ".")
		}
		pattern := []string{
			"net.ipv4.tcp_keepalive_*", "net/ipv4/tcp_retries?", "net.*.tcp_retries[12]", "net/ipv4/tcp_keepalive_[!ab]*",
		}[random.IntN(4)]
		value := 100 + random.IntN(3)
		switch random.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "# %s = %d\n", key, value)
		case 1:
			fmt.Fprintf(&b, "-%s\n", key)
		case 2:
			fmt.Fprintf(&b, "  -%s=%d  \n", key, value)
		case 3, 4, 5:
			fmt.Fprintf(&b, "%s = %d\n", pattern, value)
		case 6:
			fmt.Fprintf(&b, "%s\t=\t%d\r\n", key, value)
		case 7:
			fmt.Fprintf(&b, "nonsense\n\n ; %s = %d\n", key, value)
		case 8:
			fmt.Fprintf(&b, "/%s = %d\n", strings.ReplaceAll(key, ".", "/"), value)
		default:
			fmt.Fprintf(&b, "%s = %d\n", key, value)
		}
	}
	return []byte(b.String())
}

func describe(files tree) string {
	var b strings.Builder
	for name, data := range files {
		fmt.Fprintf(&b, "%s: %q\n", name, data)
	}
	return b.String()
}

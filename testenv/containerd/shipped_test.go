package containerd_test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// shipped: files and output of a fresh installation.
func shipped(t *testing.T, d *containerd.Daemon) {
	v := string(d.Version)
	t.Run("default", func(t *testing.T) {
		golden(t, "default-"+v+".toml", d.MustExec(t, "containerd", "config", "default").Stdout)
	})
	t.Run("file", func(t *testing.T) {
		text, err := d.CopyOut(t.Context(), containerd.Config)
		if d.Version.Packaged() {
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "shipped-"+v+".toml", string(text))
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("upstream's archive has no configuration: %v\n%s", err, text)
		}
		if r := d.Bash(t, "ls /etc/containerd/conf.d"); r.ExitCode == 0 {
			t.Errorf("there is a conf.d: %s", r.Stdout)
		}
	})
	t.Run("status", func(t *testing.T) {
		a := d.CRI(t, "status")
		if a.Error != "" || !a.RuntimeReady.Met || a.NetworkReady.Met || a.NetworkReady.Reason != "NetworkPluginNotReady" {
			t.Errorf("status: %q, runtime %+v, network %+v", a.Error, a.RuntimeReady, a.NetworkReady)
		}
		list := "keys: " + strings.Join(slices.Sorted(maps.Keys(a.Info)), " ") + "\n"
		var config any
		if err := json.Unmarshal([]byte(a.Info["config"]), &config); err != nil {
			t.Fatal(err)
		}
		golden(t, "status-"+v+".txt", list+strings.Join(leaves("config", config), "\n")+"\n")
	})
	t.Run("version", func(t *testing.T) { versions(t, d) })
}

// leaves are the paths to all values below a key.
func leaves(at string, value any) []string {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 {
		return []string{at}
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		all = append(all, leaves(at+"."+key, table[key])...)
	}
	return all
}

// versions: `containerd --version`, the package database, the build information of the program and CRI.
func versions(t *testing.T, d *containerd.Daemon) {
	words := strings.Fields(d.MustExec(t, "containerd", "--version").Stdout)
	if len(words) < 3 || words[0] != "containerd" {
		t.Fatalf("containerd --version: %q", words)
	}
	if a := d.CRI(t, "version"); a.Version.Runtime != "containerd" || a.Version.Version != words[2] || a.Version.API != "v1" {
		t.Errorf("CRI reports %+v, the program %q", a.Version, words)
	}
	const found = "readlink -f $(command -v containerd)"
	program, err := d.CopyOut(t.Context(), strings.TrimSpace(d.Bash(t, found).Stdout))
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	dpkg := strings.TrimSpace(d.Bash(t, "dpkg-query -W -f '${db:Status-Status} ${Version}' containerd").Stdout)
	status := d.Bash(t, `awk '/^Package: containerd$/,/^$/' /var/lib/dpkg/status | grep -E '^(Status|Version): '`).Stdout
	if d.Version.Packaged() {
		// Upstream's version with Debian's mark, and the package's: 1.6.20~ds1 1.6.20~ds1-1+deb12u3.
		if words[1] != "github.com/containerd/containerd" || len(words) != 4 || dpkg != "installed "+words[3] ||
			!regexp.MustCompile(`^`+regexp.QuoteMeta(string(d.Version))+`\.\d+~ds1$`).MatchString(words[2]) || !strings.HasPrefix(words[3], words[2]+"-") {
			t.Errorf("containerd --version %q, dpkg %q", words, dpkg)
		}
		if want := "Status: install ok installed\nVersion: " + words[3] + "\n"; status != want {
			t.Errorf("the file of dpkg: %q, want %q", status, want)
		}
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			t.Errorf("Debian's build has its version: %+v", info.Main)
		}
		return
	}
	if words[1] != "github.com/containerd/containerd/v2" || !strings.HasPrefix(words[2], "v"+string(d.Version)+".") {
		t.Errorf("containerd --version: %q", words)
	}
	if dpkg != "" || status != "" {
		t.Errorf("dpkg lists a containerd that is not its own: %q, %q", dpkg, status)
	}
	if info.Main.Path != words[1] || info.Main.Version != words[2] {
		t.Errorf("the build information has %s %s, the program %q", info.Main.Path, info.Main.Version, words)
	}
}

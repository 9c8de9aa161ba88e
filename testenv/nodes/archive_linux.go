package nodes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// archive is the access of this machine to Debian packages. The fields may contain credentials.
type archive struct {
	sourcesLine string   // for sources.list
	aptConf     string   // the machine's proxy and clock leniency, as apt.conf
	env         []string // for a builder process: constructed, plus the machine's proxies
}

func readArchive(ctx context.Context, suite Suite) (archive, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return archive{}, fmt.Errorf("which release is this machine: %w", err)
	}
	fields := osRelease(release)
	if fields["ID"] != "debian" {
		return archive{}, fmt.Errorf("root file systems are built on Debian, with its keyring and mirror; this machine is %q", fields["ID"])
	}
	mirror, err := debianMirror(os.DirFS("/etc/apt"), fields["VERSION_CODENAME"])
	if err != nil {
		return archive{}, err
	}
	conf, err := machineAptConf(ctx)
	if err != nil {
		return archive{}, err
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return archive{sourcesLine: fmt.Sprintf("deb %s %s main\n", mirror, suite), aptConf: conf, env: env}, nil
}

// machineAptConf returns the settings of the machine's apt configuration that the use of the mirror depends on.
func machineAptConf(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-config", "dump").Output()
	if err != nil {
		return "", fmt.Errorf("apt-config dump: %w", err)
	}
	needed := regexp.MustCompile(`^Acquire::(https?::Proxy(::\S+)?|Check-Date|Check-Valid-Until|Retries) `)
	var kept strings.Builder
	for line := range strings.Lines(string(out)) {
		if needed.MatchString(line) {
			kept.WriteString(line)
		}
	}
	return kept.String(), nil
}

// osRelease reads the plain identifiers of os-release(5).
func osRelease(text []byte) map[string]string {
	fields := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok {
			fields[key] = strings.Trim(value, `"'`)
		}
	}
	return fields
}

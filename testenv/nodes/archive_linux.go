package nodes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// archive is the access of this machine to the packages of a suite. The fields may contain credentials.
type archive struct {
	sources string   // for sources.list; empty for the archive that mmdebstrap itself names
	aptConf string   // the machine's proxy and clock leniency, as apt.conf
	env     []string // for a builder process: constructed, plus the machine's proxies
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
	sources := fmt.Sprintf("deb %s %s main\n", mirror, suite)
	if suite == Noble {
		if sources, err = ubuntuSources(ctx, mirror); err != nil {
			return archive{}, err
		}
	}
	return archive{sources: sources, aptConf: conf, env: env}, nil
}

// ubuntuSources names the Ubuntu archive beside the machine's Debian archive. Where that server has none it is empty.
func ubuntuSources(ctx context.Context, debian string) (string, error) {
	uri, err := besideDebian(debian)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, uri+"/dists/"+string(Noble)+"/InRelease", http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", nil // apt may reach another archive by other ways
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", nil
	}
	return fmt.Sprintf("deb %s %s main\ndeb %[1]s %[2]s-updates main\n", uri, Noble), nil
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

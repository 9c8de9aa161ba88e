// Package deps installs the Debian packages that the tests need: the list beside this file, and nothing else.
// apt's configuration is never changed, its lists are refreshed only when something is missing, and the network is
// touched only then.
package deps

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

//go:embed packages
var packages string

// Package is one line of the list.
type Package struct {
	Name string
	Tier string // the heading of its part of the list: the tests that need it
	Why  string // which suite needs it, and for what
}

// ErrMissing is returned where packages are missing and cannot be installed, which only CI=true makes an error.
var ErrMissing = errors.New("prerequisites are missing under CI=true")

// Packages returns what the tests of these tiers need; of all without one.
func Packages(tiers ...string) ([]Package, error) {
	all, err := Parse(packages)
	if err != nil {
		return nil, fmt.Errorf("read testenv/deps/packages: %w", err)
	}
	for _, tier := range tiers {
		if !slices.ContainsFunc(all, func(p Package) bool { return p.Tier == tier }) {
			return nil, fmt.Errorf("no package of testenv/deps/packages is for %q", tier)
		}
	}
	return slices.DeleteFunc(all, func(p Package) bool { return len(tiers) > 0 && !slices.Contains(tiers, p.Tier) }), nil
}

// Parse reads a list: below the heading `[TIER]`, a name and `# reason` a line; empty lines and lines that start with # are passed over.
func Parse(list string) ([]Package, error) {
	var found []Package
	tier := ""
	scanner := bufio.NewScanner(strings.NewReader(list))
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if heading, ok := strings.CutPrefix(text, "["); ok {
			tier = strings.TrimSuffix(heading, "]")
			continue
		}
		name, why, _ := strings.Cut(text, "#")
		name, why = strings.TrimSpace(name), strings.TrimSpace(why)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" || strings.HasPrefix(name, "-") {
			return nil, fmt.Errorf("line %d: not the name of a Debian package", line)
		}
		if why == "" {
			return nil, fmt.Errorf("line %d: say after # which test needs it", line)
		}
		if tier == "" {
			return nil, fmt.Errorf("line %d: no heading such as [test] is above it", line)
		}
		found = append(found, Package{Name: name, Tier: tier, Why: why})
	}
	return found, scanner.Err()
}

// tries is how often apt-get may fail: the archive can be out of reach for a moment.
const tries = 3

// statusFormat has dpkg-query print a package, its state, and the names that it provides: `nodejs ii npm, nodejs-dev (= 1)`.
const statusFormat = `${Package} ${db:Status-Abbrev} ${Provides}\n`

// Missing returns the wanted packages that dpkg does not list as installed, under their own name or as one that an installed
// package provides: Node.js of its makers provides npm and conflicts with Debian's. status is what dpkg-query prints in
// statusFormat.
func Missing(wanted []Package, status string) []Package {
	installed := map[string]bool{}
	for line := range strings.Lines(status) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		state, provides, _ := strings.Cut(rest, " ")
		if len(state) < 2 || state[1] != 'i' {
			continue
		}
		installed[name] = true
		for provided := range strings.SplitSeq(provides, ",") {
			provided, _, _ = strings.Cut(strings.TrimSpace(provided), " ")
			installed[provided] = true
		}
	}
	var missing []Package
	for _, p := range wanted {
		if !installed[p.Name] {
			missing = append(missing, p)
		}
	}
	return missing
}

// Machine has the facts that decide whether packages can be installed here.
type Machine struct {
	Debian bool
	Root   bool
	CI     bool // CI=true: what is missing is a failure, not a skip
}

// Detect returns the facts of this machine.
func Detect() Machine {
	release, err := os.ReadFile("/etc/os-release")
	return Machine{Debian: err == nil && isDebian(string(release)), Root: os.Geteuid() == 0, CI: os.Getenv("CI") == "true"}
}

func isDebian(release string) bool {
	for line := range strings.Lines(release) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "ID="); ok {
			return strings.Trim(id, `"'`) == "debian"
		}
	}
	return false
}

// Obstacle returns the reason why nothing can be installed here; empty where installing is possible.
func (m Machine) Obstacle() string {
	switch {
	case !m.Debian:
		return "this machine is not Debian"
	case !m.Root:
		return "make test does not run as root"
	}
	return ""
}

// Install installs what is missing. Where that is impossible it reports the reason and the skipped suites on log;
// that is an error (ErrMissing) under CI alone.
func Install(ctx context.Context, log io.Writer, m Machine, tiers ...string) error {
	wanted, err := Packages(tiers...)
	if err != nil {
		return err
	}
	missing := wanted
	if m.Debian {
		status, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat="+statusFormat).Output()
		if err != nil {
			return fmt.Errorf("ask dpkg what is installed: %w", err)
		}
		missing = Missing(wanted, string(status))
	}
	if why := m.Obstacle(); why != "" {
		return explain(log, m, why, missing)
	}
	if len(missing) == 0 {
		return nil
	}
	names := make([]string, 0, len(missing))
	for _, p := range missing {
		names = append(names, p.Name)
	}
	fmt.Fprintf(log, "installing with apt-get: %s\n", strings.Join(names, " "))
	for try := 1; ; try++ {
		err := errors.Join(apt(ctx, log, "update"), apt(ctx, log, append([]string{"install", "--yes", "--no-install-recommends"}, names...)...))
		if err == nil || try == tries || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(log, "%v\napt-get is tried again\n", err)
	}
}

func explain(log io.Writer, m Machine, why string, missing []Package) error {
	fmt.Fprintf(log, "nothing is installed: %s; suites that need root or these packages are skipped:\n", why)
	for _, p := range missing {
		fmt.Fprintf(log, "  %-24s %s\n", p.Name, p.Why)
	}
	if m.CI {
		return fmt.Errorf("%w: %s", ErrMissing, why)
	}
	return nil
}

func apt(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w", args[0], err)
	}
	return nil
}

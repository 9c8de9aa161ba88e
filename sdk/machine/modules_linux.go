package machine

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module implements Kernel.
func (k *kernel) Module(name string) (ModuleState, error) {
	module, err := moduleName(name)
	if err != nil {
		return ModuleAbsent, err
	}
	for _, query := range []func(string) (ModuleState, error){k.loaded, k.listed, k.builtIn, k.evident, k.loadable} {
		state, err := query(module)
		if err != nil {
			return ModuleAbsent, fmt.Errorf("query kernel module %s: %w", module, err)
		}
		if state != ModuleAbsent {
			return state, nil
		}
	}
	return ModuleAbsent, nil
}

// LoadModule implements Kernel.
func (k *kernel) LoadModule(ctx context.Context, name string) error {
	state, err := k.Module(name)
	if err != nil || state == ModuleLoaded || state == ModuleBuiltIn {
		return err
	}
	// -b as systemd-modules-load(8) at boot: without it modprobe ignores the administrator's blacklist.
	if _, err := k.commands.Run(ctx, Command{Name: "modprobe", Args: []string{"-b", "--", name}}); err != nil {
		return fmt.Errorf("load kernel module %s: %w", name, err)
	}
	// modprobe also succeeds where a blacklist or an install command of modprobe.d(5) prevents the load.
	state, err = k.Module(name)
	if err == nil && state != ModuleLoaded && state != ModuleBuiltIn {
		err = fmt.Errorf("load kernel module %s: modprobe succeeded, yet it is %s; see `modprobe -c` for a blacklist or install line",
			name, state)
	}
	return err
}

// moduleName checks a name and returns it as the kernel writes it, with underscores.
func moduleName(name string) (string, error) {
	if !regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63}$`).MatchString(name) {
		return "", fmt.Errorf("kernel module %s: %w: not a module name", printable(name), fs.ErrInvalid)
	}
	return strings.ReplaceAll(name, "-", "_"), nil
}

// loaded reads /proc/modules, which a kernel without loadable modules does not have.
func (k *kernel) loaded(module string) (ModuleState, error) {
	found, err := k.anyLine("proc/modules", func(line string) bool {
		name, rest, _ := strings.Cut(line, " ")
		// A module that is being loaded or unloaded counts as absent.
		fields := strings.Fields(rest)
		return name == module && (len(fields) < 4 || fields[3] == "Live")
	})
	return stateIf(found, ModuleLoaded), err
}

// listed reads /sys/module, which lists loaded modules and the built-in ones with parameters or a version. Only loaded ones
// have an initstate.
func (k *kernel) listed(module string) (ModuleState, error) {
	directory := filepath.Join(k.root, "sys/module", module)
	if _, err := os.Stat(directory); err != nil {
		return ModuleAbsent, ignoreAbsent(err)
	}
	state, err := os.ReadFile(filepath.Join(directory, "initstate"))
	if isAbsent(err) {
		return ModuleBuiltIn, nil
	}
	return stateIf(strings.TrimSpace(string(state)) == "live", ModuleLoaded), err
}

// builtIn reads the list of built-in modules that a kernel's build creates for modprobe(8).
func (k *kernel) builtIn(module string) (ModuleState, error) {
	found, err := k.inList("modules.builtin", module)
	return stateIf(found, ModuleBuiltIn), err
}

// loadable reads the list of depmod(8).
func (k *kernel) loadable(module string) (ModuleState, error) {
	found, err := k.inList("modules.dep", module)
	return stateIf(found, ModuleLoadable), err
}

// evident detects a module by its effect, for a kernel built without loadable modules, which has neither /proc/modules nor
// modules.builtin. Each of these exists only with its module:
//
//	br_netfilter   /proc/sys/net/bridge/bridge-nf-call-iptables
//	nf_conntrack   /proc/sys/net/netfilter/nf_conntrack_max
//	overlay        "overlay" in /proc/filesystems
func (k *kernel) evident(module string) (ModuleState, error) {
	var file string
	switch module {
	case "br_netfilter":
		file = "proc/sys/net/bridge/bridge-nf-call-iptables"
	case "nf_conntrack":
		file = "proc/sys/net/netfilter/nf_conntrack_max"
	case "overlay":
		found, err := k.anyLine("proc/filesystems", func(line string) bool {
			return slices.Contains(strings.Fields(line), "overlay")
		})
		return stateIf(found, ModuleBuiltIn), err
	default:
		return ModuleAbsent, nil
	}
	_, err := os.Stat(filepath.Join(k.root, file))
	return stateIf(err == nil, ModuleBuiltIn), ignoreAbsent(err)
}

// inList searches a list of the running kernel's module directory, whose lines begin with the path of a module file:
// "kernel/net/bridge/br_netfilter.ko.xz: ...".
func (k *kernel) inList(list, module string) (bool, error) {
	release, err := os.ReadFile(filepath.Join(k.root, "proc/sys/kernel/osrelease"))
	if err != nil {
		return false, ignoreAbsent(err)
	}
	for _, directory := range []string{"lib/modules", "usr/lib/modules"} {
		found, err := k.anyLine(filepath.Join(directory, strings.TrimSpace(string(release)), list), func(line string) bool {
			file, _, _ := strings.Cut(line, ":")
			base, _, isModule := strings.Cut(path.Base(file), ".ko")
			return isModule && strings.ReplaceAll(base, "-", "_") == module
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// anyLine reports whether a line of the file matches; an absent file has none.
func (k *kernel) anyLine(name string, matches func(string) bool) (found bool, err error) {
	file, err := os.Open(filepath.Join(k.root, name))
	if err != nil {
		return false, ignoreAbsent(err)
	}
	defer func() { err = closed(file, err) }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxParameterBytes) // modules.dep has long lines
	for lines.Scan() {
		if matches(lines.Text()) {
			return true, nil
		}
	}
	return false, lines.Err()
}

func stateIf(found bool, state ModuleState) ModuleState {
	if found {
		return state
	}
	return ModuleAbsent
}

func ignoreAbsent(err error) error {
	if isAbsent(err) {
		return nil
	}
	return err
}

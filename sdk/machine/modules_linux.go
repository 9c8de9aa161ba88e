package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module implements Kernel.
func (k *kernel) Module(name string) (ModuleState, error) {
	module, err := moduleName(name)
	if err != nil {
		return ModuleAbsent, err
	}
	for _, look := range []func(string) (ModuleState, error){k.loaded, k.known, k.builtIn, k.evident, k.loadable} {
		state, err := look(module)
		if err != nil {
			return ModuleAbsent, fmt.Errorf("look for kernel module %s: %w", module, err)
		}
		if state != ModuleAbsent {
			return state, nil
		}
	}
	return ModuleAbsent, nil
}

// moduleName checks a name and gives the form that the kernel uses, with underscores.
func moduleName(name string) (string, error) {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		default:
			return "", fmt.Errorf("kernel module %s: %w: not a module name", printable(name), fs.ErrInvalid)
		}
	}
	if name == "" || name[0] == '-' || len(name) > 64 {
		return "", fmt.Errorf("kernel module %s: %w: not a module name", printable(name), fs.ErrInvalid)
	}
	return strings.ReplaceAll(name, "-", "_"), nil
}

// loaded reads /proc/modules, which a kernel without loadable modules does not have.
func (k *kernel) loaded(module string) (ModuleState, error) {
	found, err := k.anyLine("proc/modules", func(line string) bool {
		name, rest, _ := strings.Cut(line, " ")
		// A module that is still on its way in, or out, cannot be counted on.
		fields := strings.Fields(rest)
		return name == module && (len(fields) < 4 || fields[3] == "Live")
	})
	return stateIf(found, ModuleLoaded), err
}

// known reads /sys/module, which lists loaded modules and those built-in ones that have parameters or a version.
// Only a loaded one has an initstate.
func (k *kernel) known(module string) (ModuleState, error) {
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

// builtIn reads the list that a kernel's build leaves for modprobe(8).
func (k *kernel) builtIn(module string) (ModuleState, error) {
	found, err := k.anyModuleFile("modules.builtin", module)
	return stateIf(found, ModuleBuiltIn), err
}

// loadable reads what depmod(8) found.
func (k *kernel) loadable(module string) (ModuleState, error) {
	found, err := k.anyModuleFile("modules.dep", module)
	return stateIf(found, ModuleLoadable), err
}

// evident looks at what a module does where nothing lists it: a kernel that was built without loadable modules has no
// /proc/modules and comes without modules.builtin. Each of these shows only while its module is at work:
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

// anyModuleFile looks for a module in one of the lists of the running kernel's module directory, whose lines begin
// with the path of a module file: "kernel/net/bridge/br_netfilter.ko.xz: ...".
func (k *kernel) anyModuleFile(list, module string) (bool, error) {
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

// anyLine reports whether a line of the file is meant; a file that is absent has none.
func (k *kernel) anyLine(name string, meant func(string) bool) (found bool, err error) {
	file, err := os.Open(filepath.Join(k.root, name))
	if err != nil {
		return false, ignoreAbsent(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxParameterBytes) // modules.dep has long lines.
	for lines.Scan() {
		if meant(lines.Text()) {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const (
	// unit is the service of every package and of upstream's archive.
	unit = "containerd.service"
	// service is the same on Windows (containerd --register-service).
	service = "containerd"
	// defaultSocket is where the daemon listens, except on Windows.
	defaultSocket = "/run/containerd/containerd.sock"
)

// installation is the containerd that the unit runs.
type installation struct {
	release release
	// binary is the program, empty when none is installed yet.
	binary string
	// config is the main configuration file.
	config string
	// state is what the service manager says of the unit; in an image it may not exist yet.
	state machine.ServiceState
	// source says where the version comes from.
	source string
}

// find finds out which containerd the machine runs. assumed is the version of providerConfig, which decides only where
// the machine itself does not tell.
func find(ctx context.Context, m sdk.Machine, assumed string) (installation, error) {
	state, l, err := launchOfUnit(ctx, m)
	if err != nil {
		return installation{}, err
	}
	if !state.Exists && !m.Offline() {
		return installation{}, notInstalled(m)
	}
	i := installation{state: state, config: mainFile(m)}
	if err := i.place(m, l); err != nil {
		return i, err
	}
	var version string
	if m.Offline() {
		version, i.source, err = versionInImage(m, i.binary)
	} else {
		version, err = versionLive(ctx, m, i.binary)
		i.source = i.binary + " --version"
	}
	if err != nil {
		return i, err
	}
	if version == "" {
		version, i.source = assumed, "spec.providerConfig.version"
	}
	if version == "" {
		return i, unknownVersion(m, i)
	}
	if i.release, err = parseRelease(version); err != nil {
		return i, sdk.Precondition("the version of containerd that "+i.source+" tells is not understood",
			"install a release of containerd")
	}
	if !i.release.supported() {
		return i, sdk.Unsupported("", "containerd "+i.release.String()+" is older than 1.6", "install containerd 1.7 or a later one")
	}
	return i, nil
}

func unitOf(m sdk.Machine) string {
	if m.Target.OS == "windows" {
		return service
	}
	return unit
}

// launchOfUnit asks the service manager, once for all; in an image it reads the unit's files. On Windows it is the program
// of the service.
func launchOfUnit(ctx context.Context, m sdk.Machine) (state machine.ServiceState, l launch, err error) {
	state, err = m.Services.State(ctx, unitOf(m))
	switch {
	case errors.Is(err, machine.ErrUnsupported) && m.Offline(): // an offline image of Windows
		return state, launch{}, nil
	case err != nil || !state.Exists:
		return state, launch{}, err
	case m.Target.OS == "windows":
		return state, launchOf(words(state.Fragment), nil), nil
	case m.Offline():
		l, err = launchInImage(m, state.Fragment)
		return state, l, err
	case state.Masked:
		return state, launch{}, sdk.Final(sdk.Precondition(unit+" is masked: it cannot be started", "find out why, then: systemctl unmask "+unit))
	}
	return state, launchOf(state.Command, state.Environment), nil
}

// place takes over what the unit says of the program and its configuration.
func (i *installation) place(m sdk.Machine, l launch) error {
	i.binary = l.binary
	if l.binary == "" && i.state.Exists && m.Target.OS == "windows" {
		return sdk.Precondition("the service "+service+" does not start containerd", installHint(m.Target))
	}
	if l.binary == "" && i.state.Exists {
		return sdk.Precondition(unit+" does not start containerd", "see systemctl cat "+unit+": its ExecStart must name the program")
	}
	if strings.HasPrefix(l.binary, "$") || strings.Contains(l.config, "$") {
		return sdk.Precondition(unit+" starts containerd by a variable that it does not set itself",
			"write paths into ExecStart of "+unit+", with a drop-in")
	}
	if l.binary != "" && !filepath.IsAbs(l.binary) && !m.Offline() {
		found, err := m.Commands.Find(l.binary)
		if errors.Is(err, fs.ErrNotExist) {
			return sdk.Final(sdk.Precondition("the program that "+unit+" starts is not installed", installHint(m.Target)))
		}
		if err != nil {
			return err
		}
		i.binary = found
	}
	if l.config == "" {
		return nil
	}
	if strings.HasPrefix(l.config, "/usr/") || !filepath.IsAbs(l.config) {
		return sdk.Precondition(unit+" has containerd read "+l.config+", which belongs to the system image",
			"give "+unit+" a drop-in whose ExecStart or Environment names "+mainFile(m)+", then run again")
	}
	i.config = l.config
	return nil
}

// versionLive asks the program itself. It answers "containerd MODULE VERSION REVISION".
func versionLive(ctx context.Context, m sdk.Machine, binary string) (string, error) {
	result, err := m.Commands.Run(ctx, commandOf(binary, "--version"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", sdk.Final(sdk.Precondition(binary+", which "+unitOf(m)+" starts, is not installed", installHint(m.Target)))
	}
	if err != nil {
		return "", fmt.Errorf("ask containerd for its version: %w", err)
	}
	answer := strings.Fields(string(result.Stdout))
	if len(answer) < 3 {
		return "", sdk.Precondition(binary+" --version does not answer as containerd does", installHint(m.Target))
	}
	return answer[2], nil
}

// commandOf runs a program by its path: the machine may find another one of this name first, as with one in
// /usr/local/bin beside the distribution's.
func commandOf(binary string, args ...string) machine.Command {
	return machine.Command{Name: filepath.Base(binary), Directory: filepath.Dir(binary), Args: args}
}

// unknownVersion is not final: where containerd is installed by another document, that one cures it.
func unknownVersion(m sdk.Machine, i installation) error {
	message, hint := "containerd is not installed in the image", "give spec.providerConfig.version, such as 1.7 or 2.1"
	switch {
	case i.binary != "":
		message = "nothing in the image tells the version of " + i.binary
	case i.state.Exists:
		message = "nothing in the image tells the version of containerd"
	default:
		hint += " for the one that will be installed; or " + installHint(m.Target)
	}
	return sdk.At(sdk.Precondition(message, hint), "spec.providerConfig.version")
}

func notInstalled(m sdk.Machine) error {
	return sdk.Final(sdk.Precondition("containerd is not installed: there is no service "+unitOf(m), installHint(m.Target)))
}

// installHint names the package of the family of operating systems.
func installHint(t sdk.Target) string {
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return t.Distribution == name || slices.Contains(t.Like, name)
		})
	}
	switch {
	case t.OS == "windows":
		return `install containerd's archive for Windows in C:\Program Files\containerd and run containerd.exe --register-service`
	case is("flatcar", "coreos"):
		return "see systemctl status " + unit + ": containerd is a part of the system image there"
	case is("debian", "ubuntu"):
		return "install the package containerd of the distribution, or containerd.io of Docker"
	case is("rhel", "fedora", "centos"):
		return "install the package containerd.io of Docker, or containerd where the distribution has it"
	case is("suse", "sles", "opensuse"):
		return "install the package containerd"
	}
	return "install containerd with its unit, by a package or by upstream's archive"
}

// fit says how the plugin fits the machine. It is asked in every run, also when there is nothing to do: where a daemon
// answers, the service manager, whose client is a program to start, is left alone.
func fit(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	if m.Target.OS != "windows" && !m.Offline() && hasUnitFile(m) && m.FS.Listens(ctx, defaultSocket) {
		return sdk.FitnessActive, "containerd is installed and runs", nil
	}
	state, err := m.Services.State(ctx, unitOf(m))
	switch {
	case errors.Is(err, machine.ErrUnsupported):
		return sdk.FitnessUnsupported, "there is no service manager that it knows", nil
	case err != nil:
		return sdk.FitnessUnsupported, "", err
	case !state.Exists:
		return sdk.FitnessAbsent, "containerd is not installed", nil
	case state.Active == "active":
		return sdk.FitnessActive, "containerd is installed and runs", nil
	}
	return sdk.FitnessInstalled, "containerd is installed", nil
}

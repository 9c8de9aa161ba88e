package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// defaultSocket is where the daemon listens, except on Windows.
const defaultSocket = "/run/containerd/containerd.sock"

// installation is the containerd that the unit runs.
type Installation struct {
	Release settings.Release
	// binary is the program, empty when none is installed yet.
	binary string
	// config is the main configuration file.
	Config string
	// state is what the service manager says of the unit; in an image it may not exist yet.
	State machine.ServiceState
	// source says where the version comes from.
	source string
}

// find finds out which containerd the machine runs. assumed is the version of providerConfig, which decides only where
// the machine itself does not tell.
func Find(ctx context.Context, m sdk.Machine, assumed string) (Installation, error) {
	state, l, err := launchOfUnit(ctx, m)
	if err != nil {
		return Installation{}, err
	}
	if !state.Exists && !m.Offline() {
		return Installation{}, notInstalled(m)
	}
	i := Installation{State: state, Config: settings.PathsOf(m.Target.OS).Config}
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
	if i.Release, err = settings.ParseRelease(version); err != nil {
		return i, sdk.Precondition("the version of containerd that "+i.source+" tells is not understood",
			"install a release of containerd")
	}
	if !i.Release.Supported() {
		return i, sdk.Unsupported("", "containerd "+i.Release.String()+" is older than 1.6", "install containerd 1.7 or a later one")
	}
	return i, nil
}

// launchOfUnit asks the service manager, once for all; in an image it reads the unit's files. On Windows it is the program
// of the service.
func launchOfUnit(ctx context.Context, m sdk.Machine) (state machine.ServiceState, l launch, err error) {
	state, err = m.Services.State(ctx, settings.PathsOf(m.Target.OS).Unit)
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
		return state, launch{}, sdk.Final(sdk.Precondition(settings.Unit+" is masked: it cannot be started", "find out why, then: systemctl unmask "+settings.Unit))
	}
	return state, launchOf(state.Command, state.Environment), nil
}

// place takes over what the unit says of the program and its configuration.
func (i *Installation) place(m sdk.Machine, l launch) error {
	i.binary = l.binary
	if l.binary == "" && i.State.Exists && m.Target.OS == "windows" {
		return sdk.Precondition("the service "+settings.Service+" does not start containerd", installHint(m.Target))
	}
	if l.binary == "" && i.State.Exists {
		return sdk.Precondition(settings.Unit+" does not start containerd", "see systemctl cat "+settings.Unit+": its ExecStart must name the program")
	}
	if strings.HasPrefix(l.binary, "$") || strings.Contains(l.config, "$") {
		return sdk.Precondition(settings.Unit+" starts containerd by a variable that it does not set itself",
			"write paths into ExecStart of "+settings.Unit+", with a drop-in")
	}
	if l.binary != "" && !filepath.IsAbs(l.binary) && !m.Offline() {
		found, err := m.Commands.Find(l.binary)
		if errors.Is(err, fs.ErrNotExist) {
			return sdk.Final(sdk.Precondition("the program that "+settings.Unit+" starts is not installed", installHint(m.Target)))
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
		return sdk.Precondition(settings.Unit+" has containerd read "+l.config+", which belongs to the system image",
			"give "+settings.Unit+" a drop-in whose ExecStart or Environment names "+settings.PathsOf(m.Target.OS).Config+", then run again")
	}
	i.Config = l.config
	return nil
}

// versionLive asks the program itself. It answers "containerd MODULE VERSION REVISION".
func versionLive(ctx context.Context, m sdk.Machine, binary string) (string, error) {
	result, err := m.Commands.Run(ctx, commandOf(binary, "--version"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", sdk.Final(sdk.Precondition(binary+", which "+settings.PathsOf(m.Target.OS).Unit+" starts, is not installed", installHint(m.Target)))
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

// unknownVersion is not final: where containerd is installed by another document, that one cures it.
func unknownVersion(m sdk.Machine, i Installation) error {
	message, hint := "containerd is not installed in the image", "give spec.providerConfig.version, such as 1.7 or 2.1"
	switch {
	case i.binary != "":
		message = "nothing in the image tells the version of " + i.binary
	case i.State.Exists:
		message = "nothing in the image tells the version of containerd"
	default:
		hint += " for the one that will be installed; or " + installHint(m.Target)
	}
	return sdk.At(sdk.Precondition(message, hint), "spec.providerConfig.version")
}

func notInstalled(m sdk.Machine) error {
	return sdk.Final(sdk.Precondition("containerd is not installed: there is no service "+settings.PathsOf(m.Target.OS).Unit, installHint(m.Target)))
}

// fit says how the plugin fits the machine. It is asked in every run, also when there is nothing to do: where a daemon
// answers, the service manager, whose client is a program to start, is left alone.
func Fit(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	if m.Target.OS != "windows" && !m.Offline() && hasUnitFile(m) && m.FS.Listens(ctx, defaultSocket) {
		return sdk.FitnessActive, "containerd is installed and runs", nil
	}
	state, err := m.Services.State(ctx, settings.PathsOf(m.Target.OS).Unit)
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

// Package daemon finds the installed containerd, has it read a candidate of its configuration, and checks its health.
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

// Installation is the containerd that the unit starts.
type Installation struct {
	Release settings.Release
	// binary is the program, empty where none is installed yet.
	binary string
	// Config is the main configuration file.
	Config string
	// State is the state of the service. In an image the service may not exist yet.
	State machine.ServiceState
	// source is where the version comes from.
	source string
}

// launchOfUnit asks the service manager once for the service and how it starts the daemon. In an image it reads the files
// of the unit.
func launchOfUnit(ctx context.Context, m sdk.Machine) (state machine.ServiceState, l launch, err error) {
	state, err = m.Services.State(ctx, settings.PathsOf(m.Target.OS).Unit)
	switch {
	case errors.Is(err, machine.ErrUnsupported) && m.Target.OS == "windows": // an offline image
		return state, launch{}, nil
	case err != nil || !state.Exists:
		return state, launch{}, err
	case m.Target.OS == "windows":
		return state, launchOf(words(state.Fragment), nil), nil
	case m.Offline():
		l, err = launchInImage(m, state.Fragment)
		return state, l, err
	case state.Masked:
		return state, launch{}, sdk.Final(sdk.Precondition(settings.Unit+" is masked: it cannot be started",
			"find out why, then: systemctl unmask "+settings.Unit))
	}
	return state, launchOf(state.Command, state.Environment), nil
}

// place sets the program and its configuration file.
func (i *Installation) place(m sdk.Machine, l launch) error {
	const unit = settings.Unit
	i.binary = l.binary
	switch {
	case l.binary == "" && i.State.Exists && m.Target.OS == "windows":
		return sdk.Precondition("the service "+settings.Service+" does not start containerd", installHint(m.Target))
	case l.binary == "" && i.State.Exists:
		return sdk.Precondition(unit+" does not start containerd", "see systemctl cat "+unit+": its ExecStart must name the program")
	case strings.HasPrefix(l.binary, "$") || strings.Contains(l.config, "$"):
		return sdk.Precondition(unit+" starts containerd by a variable that it does not set itself",
			"write paths into ExecStart of "+unit+", with a drop-in")
	}
	if l.binary != "" && !filepath.IsAbs(l.binary) && !m.Offline() {
		found, err := m.Commands.Find(l.binary)
		if errors.Is(err, fs.ErrNotExist) {
			return sdk.Precondition("the program that "+unit+" starts is not installed", installHint(m.Target))
		}
		if err != nil {
			return err
		}
		i.binary = found
	}
	i.Config = settings.PathsOf(m.Target.OS).Config
	if l.config == "" {
		return nil
	}
	if strings.HasPrefix(l.config, "/usr/") || !filepath.IsAbs(l.config) {
		return sdk.Precondition(unit+" has containerd read "+l.config+", which belongs to the system image",
			"give "+unit+" a drop-in whose ExecStart or Environment names "+i.Config+", then run again")
	}
	i.Config = l.config
	return nil
}

// unknownVersion returns the error for an image in which nothing has the version of containerd.
func unknownVersion(m sdk.Machine, i Installation) error {
	message, hint := "containerd is not installed in the image", "give spec.providerConfig.version, such as 1.7 or 2.1"
	switch {
	case i.binary != "":
		message = "nothing in the image has the version of " + i.binary
	case i.State.Exists:
		message = "nothing in the image has the version of containerd"
	default:
		hint += " for the one that will be installed; or " + installHint(m.Target)
	}
	return sdk.At(sdk.Precondition(message, hint), "spec.providerConfig.version")
}

// Find finds the containerd of the machine. assumed is the version of providerConfig, for an image that does not have one.
func Find(ctx context.Context, m sdk.Machine, assumed string) (Installation, error) {
	state, l, err := launchOfUnit(ctx, m)
	if err != nil {
		return Installation{}, err
	}
	if !state.Exists && !m.Offline() {
		return Installation{}, sdk.Precondition("containerd is not installed: there is no service "+settings.PathsOf(m.Target.OS).Unit, installHint(m.Target))
	}
	i := Installation{State: state}
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
		return i, sdk.Precondition("the version of containerd that "+i.source+" reports is not understood", "install a release of containerd")
	}
	if !i.Release.Supported() {
		return i, sdk.Unsupported("", "containerd "+i.Release.String()+" is older than 1.6", "install containerd 1.7 or a later one")
	}
	return i, nil
}

// Fit reports how the plugin fits the machine. The host asks in every run, so where a daemon answers, the service manager,
// whose client is a program to start, is not asked.
func Fit(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	const runs = "containerd is installed and runs"
	if m.Target.OS != "windows" && !m.Offline() && hasUnitFile(m) && m.FS.Listens(ctx, defaultSocket) {
		return sdk.FitnessActive, runs, nil
	}
	state, err := m.Services.State(ctx, settings.PathsOf(m.Target.OS).Unit)
	switch {
	case err != nil:
		return sdk.FitnessUnsupported, "", err
	case !state.Exists:
		return sdk.FitnessAbsent, "containerd is not installed", nil
	case state.Active == "active":
		return sdk.FitnessActive, runs, nil
	}
	return sdk.FitnessInstalled, "containerd is installed", nil
}

// DefaultSpec is the default specification of containers, as the daemon's ctr prints it.
func DefaultSpec(ctx context.Context, m sdk.Machine, i Installation) ([]byte, error) {
	ctr := filepath.Join(filepath.Dir(i.binary), "ctr")
	result, err := m.Commands.Run(ctx, commandOf(ctr, "oci", "spec"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sdk.Precondition(ctr+" is not installed: it prints what containers start from by default",
			"install it from the archive or package of containerd, or remove baseSpec")
	}
	if err != nil {
		return nil, fmt.Errorf("ask ctr for the default specification of containers: %w", err)
	}
	return result.Stdout, nil
}

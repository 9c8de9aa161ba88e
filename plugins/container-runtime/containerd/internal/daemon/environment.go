package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Overridden returns a Precondition if a drop-in that is not ours overrides a variable of the document: one that removes it, or one that
// systemd reads after ours and that sets it in a file. Environment= does neither. Source: systemd.exec(5).
func Overridden(m sdk.Machine, variables []settings.Variable) error {
	ours := settings.PathsOf(m.Target.OS).UnitDropIn()
	if m.Target.OS == "windows" || len(variables) == 0 {
		return nil
	}
	files, err := dropIns(m)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := m.FS.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || file == ours {
			continue
		}
		if err != nil {
			return err
		}
		by, name, err := overrides(m, string(text), path.Base(file) > path.Base(ours), variables)
		if err != nil {
			return err
		}
		if name != "" {
			field := "spec.proxy"
			if name == settings.TrustVariable {
				field = "spec.trustedCAs"
			}
			return sdk.At(sdk.Precondition(fmt.Sprintf("%s overrides %s of containerd (%s)", file, name, by),
				"remove that from it; or, where it names a file of variables, rename it so that it sorts before "+path.Base(ours)), field)
		}
	}
	return nil
}

// overrides returns the first variable that a drop-in overrides or removes, and by what. The text has been read.
func overrides(m sdk.Machine, text string, later bool, variables []settings.Variable) (by, name string, err error) {
	for key, value := range assignments(text) {
		switch {
		case key == "UnsetEnvironment":
			for _, word := range words(value) {
				if n, _, _ := strings.Cut(word, "="); has(variables, n) {
					return key + "=", n, nil
				}
			}
		case key == "EnvironmentFile" && later && value == "":
			return key + "=", variables[0].Name, nil
		case key == "EnvironmentFile" && later:
			from := strings.TrimPrefix(value, "-")
			text, err := m.FS.ReadFile(from)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", "", err
			}
			for line := range strings.Lines(string(text)) {
				if n, _, ok := strings.Cut(strings.TrimSpace(line), "="); ok && has(variables, strings.TrimSpace(n)) {
					return key + "=" + from, strings.TrimSpace(n), nil
				}
			}
		}
	}
	return "", "", nil
}

func has(variables []settings.Variable, name string) bool {
	return slices.ContainsFunc(variables, func(v settings.Variable) bool { return v.Name == name })
}

// inForce compares the variables of the document with the environment of the process. Its error names a variable, never a value.
func inForce(ctx context.Context, m sdk.Machine, variables []settings.Variable) error {
	if len(variables) == 0 {
		return nil
	}
	state, err := m.Services.State(ctx, settings.Unit)
	if err != nil || state.MainPID == 0 {
		return err
	}
	text, err := m.FS.ReadFile(fmt.Sprintf("/proc/%d/environ", state.MainPID))
	if errors.Is(err, fs.ErrNotExist) { // it has just ended: another check says so
		return nil
	}
	if err != nil {
		return err
	}
	running := strings.Split(string(text), "\x00")
	for _, v := range variables {
		if !slices.Contains(running, v.Name+"="+string(v.Value.Reveal())) {
			return fmt.Errorf("it runs without the document's %s; see systemctl cat %s", v.Name, settings.Unit)
		}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// files lets sysctld read the machine's file system.
type files struct{ *machine.FS }

func (f files) Regular(name string) (bool, error) {
	info, err := f.Stat(name)
	return err == nil && info.Mode.IsRegular(), err
}

// checkOthers refuses what another document of ours sets differently: both would be right and neither would hold.
func checkOthers(source sysctld.Source, d desired) error {
	names, err := source.ReadDir("/etc/sysctl.d")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var conflicts []sdk.Violation
	for _, name := range names {
		other, ours := strings.CutPrefix(name, ownedPrefix)
		other, conf := strings.CutSuffix(other, ownedSuffix)
		if !ours || !conf || other == d.name {
			continue
		}
		found, err := differences(source, d, other)
		if err != nil {
			return err
		}
		conflicts = append(conflicts, found...)
	}
	if len(conflicts) == 0 {
		return nil
	}
	return sdk.Preconditions(conflicts...)
}

// linesOf parses one file of ours; a file that is not there, or is a link to /dev/null, has no lines.
func linesOf(source sysctld.Source, path string) ([]sysctld.Line, error) {
	regular, err := source.Regular(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !regular {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := source.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, _ := sysctld.Parse(data, sysctld.Systemd)
	return lines, nil
}

func differences(source sysctld.Source, d desired, other string) ([]sdk.Violation, error) {
	path := ownedBy(other)
	lines, err := linesOf(source, path)
	if err != nil {
		return nil, err
	}
	last := map[string]sysctld.Line{}
	for _, line := range lines {
		last[line.Key] = line
	}
	var found []sdk.Violation
	for _, p := range d.parameters {
		if line, ok := last[string(p.key)]; ok && !line.Exclude && !sameValue(line.Value, p.value) {
			found = append(found, sdk.Violation{
				Field: p.field,
				Message: fmt.Sprintf("two documents set one parameter differently: Sysctl/%s sets %s to %s, Sysctl/%s to %s (%s line %d)",
					d.name, p.key, p.value, other, line.Value, path, line.Number),
				Hint: "keep each parameter in one document; if the other document is gone or no longer says so, delete " + path +
					" and run again",
			})
		}
	}
	return found, nil
}

// checkBoot refuses what would not hold at the next boot: a file that is read after ours and says something else.
func checkBoot(source sysctld.Source, d desired) error {
	own := sysctld.File{Path: d.sysctlFile(), Data: renderSysctl(d)}
	var overrides []sdk.Violation
	for _, by := range []struct {
		rules   sysctld.Rules
		program string
	}{{sysctld.Systemd, "systemd-sysctl"}, {sysctld.Procps, "sysctl --system"}} {
		configuration, err := sysctld.Load(source, by.rules, own)
		if err != nil {
			return err
		}
		for _, p := range d.parameters {
			setting, _ := configuration.Effective(p.key)
			if !setting.Excluded && sameValue(setting.Value, p.value) {
				continue
			}
			effect := "sets it to " + setting.Value
			if setting.Excluded {
				effect = "excludes it"
			}
			hint := "remove that line, give it the value of the document, or rename the file so that it sorts before " +
				ownedPrefix + d.name + ownedSuffix
			if setting.File == "/etc/sysctl.conf" {
				hint = "remove that line, or give it the value of the document: /etc/sysctl.conf is read after every other file"
			}
			text := fmt.Sprintf("another file would override the document at boot: %s: %s line %d %s", p.key, setting.File, setting.Line, effect)
			same := slices.IndexFunc(overrides, func(v sdk.Violation) bool { return strings.HasPrefix(v.Message, text+" (") })
			if same >= 0 { // both programs read it
				overrides[same].Message = fmt.Sprintf("%s, %s)", strings.TrimSuffix(overrides[same].Message, ")"), by.program)
				continue
			}
			overrides = append(overrides, sdk.Violation{
				Field: p.field, Hint: hint, Message: fmt.Sprintf("%s (%s)", text, by.program),
			})
		}
	}
	if len(overrides) == 0 {
		return nil
	}
	return sdk.Preconditions(overrides...)
}

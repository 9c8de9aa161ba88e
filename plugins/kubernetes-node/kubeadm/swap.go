package main

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// swapDropIn keeps a unit from starting. In the directory of a type it is for every unit of the type, also those that generators make of
// partitions, /etc/fstab and zram-generator.conf: systemd.unit(5). A mask of swap.target leaves those that devices and other targets start.
const swapDropIn = "# machineadm keeps swap off: spec.node.swap.\n" +
	"# To undo this, remove this file, then run: systemctl daemon-reload\n" +
	"[Unit]\nConditionPathExists=!/\n"

// swapServices turn swap on without a unit of the type swap: of zram-tools, zram-config, dphys-swapfile, systemd-swap, swapspace, and of
// the images of Armbian, Jetson and CentOS on Azure.
func swapServices() []string {
	return []string{
		"zramswap.service", "zram-config.service", "zram-swap.service", "dphys-swapfile.service", "systemd-swap.service", "swapspace.service",
		"armbian-zram-config.service", "nvzramconfig.service", "temp-disk-swapfile.service",
	}
}

// swapLine is what turns swap on in a file that the document shares with others.
type swapLine struct {
	path, replacement string
	line              *regexp.Regexp
}

func swapLines() []swapLine {
	return []swapLine{
		{"/etc/fstab", "# swap is off (machineadm): ${0}", regexp.MustCompile(`(?m)^[ \t]*[^#\s]\S*[ \t]+\S+[ \t]+swap(?:[ \t].*)?$`)},
		{"/etc/waagent.conf", "${1}n", regexp.MustCompile(`(?m)^([ \t]*ResourceDisk\.EnableSwap[ \t]*=[ \t]*)y.*$`)},
	}
}

// swapOff adds what turns swap off, now and at boot. Nothing undoes it.
func (n *node) swapOff(ctx context.Context, result *sdk.Plan) error {
	m := n.m.Field("spec.node.swap")
	services, err := m.Services.States(ctx, swapServices()...)
	if err != nil {
		return err
	}
	specs := []sdk.FileSpec{{Path: "/etc/systemd/system/swap.d/zz-machineadm-off.conf", Content: []byte(swapDropIn), Mode: 0o644}}
	var running []string
	for _, s := range services {
		if !s.Exists {
			continue
		}
		specs = append(specs, sdk.FileSpec{Path: "/etc/systemd/system/" + s.ID + ".d/zz-machineadm-off.conf", Content: []byte(swapDropIn), Mode: 0o644})
		if s.Active == "active" || s.Active == "activating" {
			running = append(running, s.ID)
		}
	}
	for _, l := range swapLines() {
		text, err := m.FS.ReadFile(l.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var info machine.Info
		if err == nil {
			info, err = m.FS.Stat(l.path)
		}
		if err != nil {
			return err
		}
		specs = append(specs, sdk.FileSpec{
			Path: l.path, Content: l.line.ReplaceAll(text, []byte(l.replacement)), Mode: info.Mode.Perm(),
			Part: &sdk.Part{Name: "swap", Content: []byte("off")},
		})
	}
	planned := len(result.Changes)
	for _, spec := range specs {
		change, err := sdk.File(m, spec)
		if err != nil {
			return err
		}
		result.Add(change)
	}
	written := len(result.Changes) > planned
	if m.Offline() {
		return nil
	}
	on, err := swaps(m)
	if err == nil && (written || len(running)+len(on) > 0) {
		result.Add(swapOffNow(m, running, on))
	}
	return err
}

// swaps returns the swap spaces of the machine, with their type and size.
func swaps(m sdk.Machine) ([]string, error) {
	text, err := m.FS.ReadFile("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[1:], err
}

// swapOffNow returns the change of the running system. Services end first, because one may turn swap on again.
func swapOffNow(m sdk.Machine, running, on []string) *sdk.Change {
	change := &sdk.Change{ID: "swap:off", Summary: "turn swap off (swapoff -a)", NeedsLive: true}
	for _, unit := range running {
		change.Diff += "stop " + unit + "\n"
	}
	for _, line := range on {
		change.Diff += "-" + strings.Join(strings.Fields(line), " ") + "\n"
	}
	if change.Diff == "" {
		change.Summary = "make systemd read that swap stays off"
	}
	change.Do = func(ctx context.Context, _ sdk.Progress) error {
		if err := m.Services.DaemonReload(ctx); err != nil {
			return err
		}
		for _, unit := range running {
			if err := m.Services.Do(ctx, unit, machine.Stop); err != nil {
				return err
			}
		}
		on, err := swaps(m)
		if err != nil || len(on) == 0 {
			return err
		}
		_, failed := m.Commands.Run(ctx, machine.Command{Name: "swapoff", Args: []string{"-a"}, Timeout: 24 * time.Hour})
		if on, err = swaps(m); err != nil || len(on) == 0 || ctx.Err() != nil {
			return err
		}
		still := sdk.Precondition("swap is still on: "+strings.Fields(on[0])[0], "reboot: swap stays off then; or free memory for what is in it, then run again")
		var e *machine.CommandError
		if errors.As(failed, &e) {
			return sdk.WithDetail(still, e.Stderr)
		}
		return still
	}
	return change
}

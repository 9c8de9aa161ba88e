package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// others are the services of time daemons that must not run beside this one.
func others() []string { return []string{"chrony", "chronyd", "ntp", "ntpd", "ntpsec", "busybox-ntpd"} }

func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.Timesync) (sdk.Plan, error) {
	if _, violations := sdk.ProviderConfig[struct{}](doc.Spec.ProviderConfig); len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := sdk.UnsupportedFields(unsupported(doc.Spec)...); err != nil {
		return sdk.Plan{}, err
	}
	const message, hint = "OpenRC does not start the services of this machine", "use another provider of Timesync, or install OpenRC"
	switch m.Target.Init {
	case target.InitOpenRC:
	case target.InitNone: // also of an empty image, into which OpenRC may come (SPEC G-8)
		return sdk.Plan{}, sdk.Precondition(message, hint)
	default:
		return sdk.Plan{}, sdk.Unsupported("", message, hint)
	}
	services := openrc{m.FS, m.Commands, m.Offline()}
	if err := services.startable(); err != nil {
		return sdk.Plan{}, err
	}
	m.Services = services
	var out sdk.Plan
	if doc.Spec.DisableOthers == nil || *doc.Spec.DisableOthers {
		off := false
		for _, other := range others() {
			changes, err := sdk.ServiceState(ctx, m, other, sdk.ServiceSpec{Enabled: &off, Running: &off})
			if err != nil {
				return sdk.Plan{}, err
			}
			out.Add(changes...)
		}
	}
	changes, err := sdk.Activate(ctx, m, sdk.Activation{Unit: service, Enable: true, Files: files(m.Target, doc.Spec), Check: check})
	out.Add(changes...)
	return out, err
}

// check has ntpd read the candidate.
func check(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
	for _, candidate := range candidates {
		if _, err := m.Commands.Run(ctx, machine.Command{Name: "ntpd", Args: []string{"-n", "-f", candidate}}); err != nil {
			return err
		}
	}
	return nil
}

// files are the configuration; without sources the distribution's stays.
func files(t target.Target, spec v1alpha1.TimesyncSpec) []sdk.FileSpec {
	var b strings.Builder
	for _, s := range spec.Servers {
		fmt.Fprintf(&b, "server %s\n", s.Address)
	}
	for _, p := range spec.Pools {
		fmt.Fprintf(&b, "servers %s\n", p.Address)
	}
	if b.Len() == 0 {
		return nil
	}
	path := "/etc/ntpd.conf"
	if t.Distribution == "debian" || slices.Contains(t.Like, "debian") {
		path = "/etc/openntpd/ntpd.conf"
	}
	return []sdk.FileSpec{{Path: path, Content: []byte(b.String()), Mode: 0o644}}
}

// sources are the sources of the document by their paths.
func sources(spec v1alpha1.TimesyncSpec) map[document.Path]v1alpha1.TimeSource {
	out := map[document.Path]v1alpha1.TimeSource{}
	for i, s := range spec.Servers {
		out[document.Path("spec.servers").Index(i)] = s.TimeSource
	}
	for i, p := range spec.Pools {
		out[document.Path("spec.pools").Index(i)] = p.TimeSource
	}
	return out
}

// unsupported are the fields that ntpd.conf(5) has nothing for. OpenNTPD sends its first requests in short intervals always.
func unsupported(spec v1alpha1.TimesyncSpec) []sdk.Violation {
	var out []sdk.Violation
	refuse := func(is bool, at document.Path) {
		if is {
			out = append(out, sdk.Violation{Field: string(at), Message: "OpenNTPD does not support it"})
		}
	}
	for at, s := range sources(spec) {
		refuse(s.IBurst != nil && !*s.IBurst, at.Field("iburst"))
		refuse(s.Prefer, at.Field("prefer"))
		refuse(s.MinPoll != nil, at.Field("minPoll"))
		refuse(s.MaxPoll != nil, at.Field("maxPoll"))
		refuse(s.NTS, at.Field("nts"))
		refuse(s.Key != nil, at.Field("key"))
	}
	for i, p := range spec.Pools {
		refuse(p.MaxSources != nil, document.Path("spec.pools").Index(i).Field("maxSources"))
	}
	refuse(spec.Profile != "", "spec.profile")
	refuse(len(spec.Fallback) > 0, "spec.fallback")
	refuse(len(spec.RefClocks) > 0, "spec.refClocks")
	refuse(spec.MakeStep != nil, "spec.makeStep")
	refuse(spec.RTCSync != nil, "spec.rtcSync")
	refuse(spec.WaitForSync != nil, "spec.waitForSync")
	refuse(spec.KeepDistributionSources, "spec.keepDistributionSources")
	slices.SortFunc(out, func(a, b sdk.Violation) int { return strings.Compare(a.Field, b.Field) })
	return out
}

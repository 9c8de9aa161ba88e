// Command machineadm-sysctl-plugin-filesonly serves Sysctl documents for images: it writes the file in /etc/sysctl.d that
// a machine reads when it boots, and nothing else. Source: sysctl.d(5).
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name: "filesonly", Version: "1.0.0", OS: []string{"linux"},
		Kinds: []sdk.Kind{sdk.For(v1alpha1.APIVersion, v1alpha1.KindSysctl, sdk.PhasePreparation, plan)},
		Fit:   fit,
	})
}

const onlyImages = "it writes what a boot reads, and cannot change a running kernel"

// fit answers active in an image, where a file is all that there is to configure.
func fit(_ context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	if !m.Offline() {
		return sdk.FitnessUnsupported, onlyImages, nil
	}
	if _, err := m.FS.Stat("/etc"); errors.Is(err, fs.ErrNotExist) {
		return sdk.FitnessInstalled, "an empty image", nil
	}
	return sdk.FitnessActive, "an image, which keeps kernel parameters in /etc/sysctl.d", nil
}

func plan(_ context.Context, m sdk.Machine, want v1alpha1.Sysctl) (sdk.Plan, error) {
	var plan sdk.Plan
	if _, violations := sdk.ProviderConfig[struct{}](want.Spec.ProviderConfig); len(violations) > 0 {
		return plan, sdk.InvalidConfig(violations...)
	}
	if err := express(want.Spec); err != nil {
		return plan, err
	}
	if !m.Offline() {
		return plan, sdk.Unsupported("", onlyImages, "use another provider, or --root with an image")
	}
	for text, value := range want.Spec.Parameters { // as the kind's other providers claim them
		key := v1alpha1.SysctlKey(v1alpha1.SysctlPath(text))
		m.Claim("sysctl:"+key.String(), string(document.PathOf("spec", "parameters", text)), strings.Join(strings.Fields(string(value)), " "))
	}
	change, err := sdk.File(m, sdk.FileSpec{
		Path: "/etc/sysctl.d/99-machineadm-" + want.Metadata.Name + ".conf", Content: render(want), Mode: 0o644,
	})
	plan.Add(change)
	return plan, err
}

// express refuses what other providers can do and this one cannot, so that the host asks the next one.
func express(spec v1alpha1.SysctlSpec) error {
	const hint = "leave spec.provider out or name another one, such as procfs"
	switch {
	case len(spec.Modules) > 0:
		return sdk.Unsupported("spec.modules", "modules are not loaded by filesonly", hint)
	case len(spec.Profiles) > 0:
		return sdk.Unsupported("spec.profiles", "profiles are not known to filesonly", hint)
	}
	return nil
}

func render(want v1alpha1.Sysctl) []byte {
	var optional []string
	for _, text := range want.Spec.IgnoreMissing {
		optional = append(optional, v1alpha1.SysctlPath(text))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Managed by machineadm, document Sysctl/%s: what is changed here is overwritten. See sysctl.d(5).\n",
		want.Metadata.Name)
	for _, text := range slices.Sorted(maps.Keys(want.Spec.Parameters)) {
		key := v1alpha1.SysctlPath(text)
		if slices.Contains(optional, key) {
			b.WriteByte('-')
		}
		fmt.Fprintf(&b, "%s = %s\n", key, strings.TrimSpace(string(want.Spec.Parameters[text])))
	}
	return b.Bytes()
}

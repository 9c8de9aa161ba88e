// Command machineadm-sysctl-plugin-filesonly serves Sysctl documents for images: it writes the file in /etc/sysctl.d that
// a machine reads when it boots, and nothing else. Source: sysctl.d(5).
package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

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
	return sdk.FitnessActive, "an image, which keeps kernel parameters in /etc/sysctl.d", nil
}

func plan(_ context.Context, m sdk.Machine, want v1alpha1.Sysctl) (sdk.Plan, error) {
	var plan sdk.Plan
	if violations := check(want.Spec); len(violations) > 0 {
		return plan, sdk.InvalidConfig(violations...)
	}
	if err := express(want.Spec); err != nil {
		return plan, err
	}
	if !m.Offline() {
		return plan, sdk.Unsupported("", onlyImages, "use another provider, or --root with an image")
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

func check(spec v1alpha1.SysctlSpec) []sdk.Violation {
	var all []sdk.Violation
	refuse := func(at document.Path, message, hint string) {
		all = append(all, sdk.Violation{Field: string(at), Message: message, Hint: hint})
	}
	root := document.Path("spec")
	if len(spec.Parameters)+len(spec.Profiles)+len(spec.Modules) == 0 {
		refuse(root, "asks for nothing", "give parameters, or remove the document")
	}
	if options := bytes.TrimSpace(spec.ProviderConfig); len(options) > 0 && !bytes.Equal(options, []byte("{}")) {
		refuse(root.Field("providerConfig"), "filesonly has no options", "remove it")
	}
	seen := map[string]bool{}
	for _, text := range slices.Sorted(maps.Keys(spec.Parameters)) {
		at := root.Field("parameters").Key(text)
		switch key, ok := normal(text); {
		case !ok:
			refuse(at, "is not a kernel parameter", "write it like net.ipv4.ip_forward")
		case seen[key]:
			refuse(at, "names a parameter that is there in another spelling", "keep one of the two")
		default:
			seen[key] = true
		}
		if strings.ContainsFunc(string(spec.Parameters[text]), unicode.IsControl) {
			refuse(at, "a value has no control characters", "write it on one line")
		}
	}
	for i, text := range spec.IgnoreMissing {
		// With a profile, the key may be one of the profile's: a provider that has the profiles decides that.
		if key, _ := normal(text); !seen[key] && len(spec.Profiles) == 0 {
			refuse(root.Field("ignoreMissing").Index(i), "is no parameter of this document", "correct or remove it")
		}
	}
	return all
}

func render(want v1alpha1.Sysctl) []byte {
	var optional []string
	for _, text := range want.Spec.IgnoreMissing {
		key, _ := normal(text)
		optional = append(optional, key)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Managed by machineadm, document Sysctl/%s: what is changed here is overwritten. See sysctl.d(5).\n",
		want.Metadata.Name)
	for _, text := range slices.Sorted(maps.Keys(want.Spec.Parameters)) {
		key, _ := normal(text)
		if slices.Contains(optional, key) {
			b.WriteByte('-')
		}
		fmt.Fprintf(&b, "%s = %s\n", key, strings.TrimSpace(string(want.Spec.Parameters[text])))
	}
	return b.Bytes()
}

// normal is a key with slashes, as in net/ipv4/conf/eth0.100/rp_filter: the first separator says which one parts the
// segments, and after a dot the two change places (sysctl.d(5)).
func normal(text string) (key string, ok bool) {
	if at := strings.IndexAny(text, "./"); at >= 0 && text[at] == '.' {
		text = strings.NewReplacer(".", "/", "/", ".").Replace(text)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_@:.-]*(/[A-Za-z0-9_@:.-]+)+$`).MatchString(text) {
		return "", false
	}
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "." || segment == ".." {
			return "", false
		}
	}
	return text, true
}

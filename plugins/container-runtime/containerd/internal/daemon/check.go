package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// checker has containerd itself read the new configuration and compares what it understood with what was meant. The exit
// status alone proves little: 1.x drops keys that it does not know without a word, 2.x with a warning.
type Checker struct {
	Installation Installation
	C            layout.Configuration
}

func (k Checker) Check(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
	proposed := candidates[k.C.Main.Path]
	if err := k.redirect(m, candidates); err != nil {
		return err
	}
	result, err := m.Commands.Run(ctx, commandOf(k.Installation.binary, "--config", proposed, "config", "dump"))
	if err != nil {
		failure, ok := errors.AsType[*machine.CommandError](err)
		if !ok || failure.Err != nil {
			return fmt.Errorf("have containerd read its new configuration: %w", err)
		}
		return sdk.WithDetail(sdk.Precondition(
			fmt.Sprintf("containerd %s cannot read the new configuration, nothing was changed%s", k.Installation.Release, k.suspect(failure.Stderr)),
			"correct the document, or "+k.C.Main.Path+" and what it imports; what containerd says is in details.json"), failure.Stderr)
	}
	var dump map[string]any
	if err := toml.Unmarshal(result.Stdout, &dump); err != nil { // never %w: it could quote a value
		return sdk.Precondition("what containerd prints of its new configuration is not TOML", "install a release of containerd")
	}
	return k.judge(dump, string(result.Stderr))
}

// redirect has the proposed main file import the proposed drop-in: what it imports by its own list is what is there now.
func (k Checker) redirect(m sdk.Machine, candidates map[string]string) error {
	if k.C.DropIn == nil {
		return nil
	}
	d, err := tomledit.Parse(k.C.Main.Content)
	if err != nil {
		return err
	}
	list, err := layout.ImportsOf(d, k.C.Main.Path)
	if err != nil {
		return err
	}
	files, err := layout.ImportedFiles(m, k.C.Main.Path, list, k.C.DropIn.Path)
	if err != nil || !slices.Contains(files, k.C.DropIn.Path) {
		return err
	}
	for i, file := range files {
		if file == k.C.DropIn.Path {
			files[i] = candidates[file]
		}
	}
	if err := d.Set([]string{"imports"}, files); err != nil {
		return err
	}
	return m.FS.WriteFile(candidates[k.C.Main.Path], d.Bytes(), 0o600)
}

// suspect names the field of a key that the daemon's complaint names; where it names none, a patch: the values of other
// fields are of the right type.
func (k Checker) suspect(complaint string) string {
	for _, s := range slices.Backward(k.C.Settings) {
		key := s.Path[len(s.Path)-1]
		if len(key) > 3 && s.Field != "" && (strings.Contains(complaint, key) || strings.Contains(complaint, goName(key))) {
			return fmt.Sprintf(" (perhaps for %s, which sets %s)", s.Field, settings.Dotted(s.Path))
		}
	}
	for _, s := range k.C.Settings {
		if strings.HasPrefix(s.Field, "spec.providerConfig.patches") {
			return fmt.Sprintf(" (perhaps for %s)", s.Field)
		}
	}
	return ""
}

// goName is the name of the field in containerd's structs: its decoder names these.
func goName(key string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(key, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// judge compares every setting with the dump.
func (k Checker) judge(dump map[string]any, said string) error {
	format, _ := dump["version"].(int64)
	unknown := unknownKeys(said)
	var wrong []string
	overridden := false
	for _, s := range k.C.Settings {
		now, ok := lookup(dump, inDump(s.Path, format))
		switch {
		case settings.Same(now, s.Value), !ok && settings.IsZero(s.Value):
		case slices.ContainsFunc(unknown, func(key string) bool { return strings.HasSuffix(settings.Dotted(s.Path), key) }):
			wrong = append(wrong, fmt.Sprintf("%s sets %s, which it does not know", s.Origin(), settings.Dotted(s.Path)))
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s sets %s, which it leaves out", s.Origin(), settings.Dotted(s.Path)))
		default:
			overridden = true
			wrong = append(wrong, fmt.Sprintf("%s sets %s, but another value is in effect", s.Origin(), settings.Dotted(s.Path)))
		}
	}
	if err := k.conflict(dump); err != nil || len(wrong) == 0 {
		return err
	}
	hint := "remove it from the document: this release has no such key"
	if overridden {
		hint = "remove it from the document, or from the file that " + k.C.Main.Path + " imports later than " + baseOf(k.C.DropIn)
	}
	return sdk.WithDetail(sdk.Precondition(fmt.Sprintf("containerd %s does not take all of the new configuration, nothing was changed: %s",
		k.Installation.Release, strings.Join(wrong, "; ")), hint), said)
}

func baseOf(spec *sdk.FileSpec) string {
	if spec == nil {
		return "all others"
	}
	return filepath.Base(spec.Path)
}

// conflict finds, in all files together, what keeps the Container Runtime Interface from starting.
func (k Checker) conflict(dump map[string]any) error {
	for _, plugin := range []string{settings.CRIPlugin, settings.ImagesPlugin} {
		at := []string{"plugins", plugin, "registry"}
		tree, _ := lookup(dump, append(slices.Clone(at), "config_path"))
		mirrors, _ := lookup(dump, append(slices.Clone(at), "mirrors"))
		if table, ok := mirrors.(map[string]any); ok && len(table) > 0 && tree != nil && tree != "" {
			return sdk.Precondition("a file that "+k.C.Main.Path+" imports describes registries in the old way ("+
				settings.Dotted(append(at, "mirrors"))+"), which excludes that of spec.registries", "move what it says to spec.registries and remove it there")
		}
	}
	for _, plugin := range []string{settings.CRIPlugin, settings.RuntimePlugin} {
		at := []string{"plugins", plugin, "containerd"}
		name, _ := lookup(dump, append(slices.Clone(at), "default_runtime_name"))
		text, _ := name.(string)
		if _, ok := lookup(dump, append(slices.Clone(at), "runtimes", text)); text != "" && !ok {
			return sdk.Precondition("the default runtime ("+settings.Dotted(append(at, "default_runtime_name"))+") is none of the runtimes"+k.suspect("default_runtime_name"),
				"list it in spec.runtimes, or name another one as spec.defaultRuntime")
		}
	}
	cni := []string{"plugins", settings.RuntimePlugin, "cni"}
	old, _ := lookup(dump, append(slices.Clone(cni), "bin_dir"))
	list, _ := lookup(dump, append(slices.Clone(cni), "bin_dirs"))
	if many, ok := list.([]any); ok && len(many) > 0 && old != nil && old != "" {
		return sdk.Precondition("two files of the configuration name directories of CNI plugins in two ways (bin_dir and bin_dirs), which exclude each other",
			"remove bin_dir from "+k.C.Main.Path+" and what it imports")
	}
	return nil
}

// unknownKeys are the keys that the daemon says it passes over, each as the end of a dotted path.
func unknownKeys(said string) []string {
	var keys []string
	for line := range strings.Lines(said) {
		if !strings.Contains(line, "Ignoring unknown key") {
			continue
		}
		found := regexp.MustCompile(`key=(?:"([^"]*)"|(\S+))`).FindStringSubmatch(line)
		if found == nil {
			continue
		}
		path := strings.Fields(found[1] + found[2])
		if plugin := regexp.MustCompile(`plugin=(\S+)`).FindStringSubmatch(line); plugin != nil {
			path = append([]string{"plugins", plugin[1]}, path...)
		}
		keys = append(keys, settings.Dotted(path))
	}
	return keys
}

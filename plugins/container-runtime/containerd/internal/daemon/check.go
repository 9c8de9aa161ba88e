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

// Checker has containerd read the candidate configuration and compares the result with the settings. The exit status does
// not suffice: 1.x drops unknown keys silently, 2.x with a warning.
type Checker struct {
	Installation  Installation
	Configuration layout.Configuration
	// Environment are the variables of the document, and Service the files that have them.
	Environment []settings.Variable
	Service     []sdk.FileSpec
}

func lookup(tree map[string]any, path ...string) any {
	var here any = tree
	for _, key := range path {
		table, _ := here.(map[string]any)
		here = table[key]
	}
	return here
}

// inDump is the path of a setting in `config dump`, which has the newest version of its daemon. In version 4 the servers
// are plugins. Source: serviceMigrate in containerd's cmd/containerd/server/config.
func inDump(path []string, format int64) []string {
	if format < 4 || len(path) != 2 {
		return path
	}
	plugin := func(id, key string) []string { return []string{"plugins", "io.containerd." + id, key} }
	switch tcp, isTCP := strings.CutPrefix(path[1], "tcp_"); {
	case path[0] == "grpc" && isTCP:
		return plugin("server.v1.grpc-tcp", tcp)
	case path[0] == "metrics" && path[1] == "grpc_histogram":
		return plugin("metrics.v1.grpc-prometheus", path[1])
	case path[0] == "debug" && !slices.Contains([]string{"address", "uid", "gid"}, path[1]):
		return path
	case slices.Contains([]string{"grpc", "ttrpc", "debug", "metrics"}, path[0]):
		return plugin("server.v1."+path[0], path[1])
	}
	return path
}

// unknownKeys are the keys that the daemon reports as ignored, each as the end of a dotted path.
func unknownKeys(output string) []string {
	var keys []string
	for line := range strings.Lines(output) {
		found := regexp.MustCompile(`Ignoring unknown key.* key=(?:"([^"]*)"|(\S+))`).FindStringSubmatch(line)
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

// goName is the name of a key's field in containerd's structs, which its decoder reports.
func goName(key string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(key, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// suspect names the field of a key that an error of the daemon names, or else a patch: other fields have the right type.
func (k Checker) suspect(output string) string {
	for _, s := range slices.Backward(k.Configuration.Settings) {
		key := s.Path[len(s.Path)-1]
		if len(key) > 3 && s.Field != "" && (strings.Contains(output, key) || strings.Contains(output, goName(key))) {
			return fmt.Sprintf(" (perhaps for %s, which sets %s)", s.Field, settings.Dotted(s.Path))
		}
	}
	for _, s := range k.Configuration.Settings {
		if strings.HasPrefix(s.Field, "spec.providerConfig.patches") {
			return fmt.Sprintf(" (perhaps for %s)", s.Field)
		}
	}
	return ""
}

// conflict finds, in all files together, what keeps the Container Runtime Interface from starting.
func (k Checker) conflict(dump map[string]any) error {
	main := k.Configuration.Main.Path
	given := func(value any) bool { return !settings.IsZero(value) }
	for _, at := range layout.InCRI() {
		cri, _ := lookup(dump, at...).(map[string]any)
		if given(lookup(cri, "registry", "config_path")) && given(lookup(cri, "registry", "mirrors")) {
			return sdk.Precondition("a file that "+main+" imports describes registries in the old way ("+
				settings.Dotted(append(at, "registry", "mirrors"))+"), which excludes that of spec.registries",
				"move what it says to spec.registries and remove it there")
		}
		name, _ := lookup(cri, "containerd", "default_runtime_name").(string)
		if name != "" && lookup(cri, "containerd", "runtimes", name) == nil {
			return sdk.Precondition("the default runtime ("+settings.Dotted(append(at, "containerd", "default_runtime_name"))+
				") is none of the runtimes"+k.suspect("default_runtime_name"), "list it in spec.runtimes, or name another one as spec.defaultRuntime")
		}
		if given(lookup(cri, "cni", "bin_dir")) && given(lookup(cri, "cni", "bin_dirs")) {
			return sdk.Precondition("two files of the configuration name directories of CNI plugins in two ways (bin_dir and bin_dirs), which exclude each other",
				"remove bin_dir from "+main+" and what it imports")
		}
	}
	return nil
}

// compare compares every setting with the dump.
func (k Checker) compare(dump map[string]any, output string) error {
	format, _ := dump["version"].(int64)
	unknown := unknownKeys(output)
	var wrong []string
	hint := "remove it from the document: this release has no such key"
	for _, s := range k.Configuration.Settings {
		now, path := lookup(dump, inDump(s.Path, format)...), settings.Dotted(s.Path)
		reason := ", but another value is in effect"
		switch {
		case settings.Same(now, s.Value), now == nil && settings.IsZero(s.Value):
			continue
		case slices.ContainsFunc(unknown, func(key string) bool { return strings.HasSuffix(path, key) }):
			reason = ", which it does not know"
		case now == nil:
			reason = ", which it leaves out"
		default:
			last := "all others"
			if k.Configuration.DropIn != nil {
				last = filepath.Base(k.Configuration.DropIn.Path)
			}
			hint = "remove it from the document, or from the file that " + k.Configuration.Main.Path + " imports later than " + last
		}
		wrong = append(wrong, s.Origin()+" sets "+path+reason)
	}
	if err := k.conflict(dump); err != nil || len(wrong) == 0 {
		return err
	}
	return sdk.WithDetail(sdk.Precondition(fmt.Sprintf("containerd %s does not take all of the new configuration, nothing was changed: %s",
		k.Installation.Release, strings.Join(wrong, "; ")), hint), output)
}

// redirect makes the candidate of the main file import the candidate of the drop-in: its own list imports the current one.
func (k Checker) redirect(m sdk.Machine, candidates map[string]string) error {
	c := k.Configuration
	if c.DropIn == nil {
		return nil
	}
	d, err := tomledit.Parse(c.Main.Content)
	if err != nil {
		return err
	}
	list, err := layout.ImportsOf(d, c.Main.Path)
	if err != nil {
		return err
	}
	files, err := layout.ImportedFiles(m, c.Main.Path, list, c.DropIn.Path)
	if err != nil || !slices.Contains(files, c.DropIn.Path) {
		return err
	}
	for i, file := range files {
		if file == c.DropIn.Path {
			files[i] = candidates[file]
		}
	}
	if err := d.Set([]string{"imports"}, files); err != nil {
		return err
	}
	return m.FS.WriteFile(candidates[c.Main.Path], d.Bytes(), 0o600)
}

// Check refuses candidates that containerd does not read as the document means them.
func (k Checker) Check(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
	if err := k.redirect(m, candidates); err != nil {
		return err
	}
	main := k.Configuration.Main.Path
	result, err := m.Commands.Run(ctx, commandOf(k.Installation.binary, "--config", candidates[main], "config", "dump"))
	if err != nil {
		failure, ok := errors.AsType[*machine.CommandError](err)
		if !ok || failure.Err != nil {
			return fmt.Errorf("have containerd read its new configuration: %w", err)
		}
		return sdk.WithDetail(sdk.Precondition(
			fmt.Sprintf("containerd %s cannot read the new configuration, nothing was changed%s", k.Installation.Release, k.suspect(failure.Stderr)),
			"correct the document, or "+main+" and what it imports; what containerd says is in details.json"), failure.Stderr)
	}
	var dump map[string]any
	if err := toml.Unmarshal(result.Stdout, &dump); err != nil { // never %w: it could quote a value
		return sdk.Precondition("what containerd prints of its new configuration is not TOML", "install a release of containerd")
	}
	return k.compare(dump, string(result.Stderr))
}

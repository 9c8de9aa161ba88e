package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// checker has containerd itself read the new configuration and compares what it understood with what was meant. The exit
// status alone proves little: 1.x drops keys that it does not know without a word, 2.x with a warning.
type checker struct {
	installation installation
	c            configuration
}

func (k checker) check(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
	proposed := candidates[k.c.main.Path]
	if err := k.redirect(m, candidates); err != nil {
		return err
	}
	result, err := m.Commands.Run(ctx, commandOf(k.installation.binary, "--config", proposed, "config", "dump"))
	if err != nil {
		failure, ok := errors.AsType[*machine.CommandError](err)
		if !ok || failure.Err != nil {
			return fmt.Errorf("have containerd read its new configuration: %w", err)
		}
		return sdk.WithDetail(sdk.Precondition(
			fmt.Sprintf("containerd %s cannot read the new configuration, nothing was changed%s", k.installation.release, k.suspect(failure.Stderr)),
			"correct the document, or "+k.c.main.Path+" and what it imports; what containerd says is in details.json"), failure.Stderr)
	}
	var dump map[string]any
	if err := toml.Unmarshal(result.Stdout, &dump); err != nil { // never %w: it could quote a value
		return sdk.Precondition("what containerd prints of its new configuration is not TOML", "install a release of containerd")
	}
	return k.judge(dump, string(result.Stderr))
}

// redirect has the proposed main file import the proposed drop-in: what it imports by its own list is what is there now.
func (k checker) redirect(m sdk.Machine, candidates map[string]string) error {
	if k.c.dropIn == nil {
		return nil
	}
	d, err := tomledit.Parse(k.c.main.Content)
	if err != nil {
		return err
	}
	list, err := importsOf(d, k.c.main.Path)
	if err != nil {
		return err
	}
	files, err := importedFiles(m, k.c.main.Path, list, k.c.dropIn.Path)
	if err != nil || !slices.Contains(files, k.c.dropIn.Path) {
		return err
	}
	for i, file := range files {
		if file == k.c.dropIn.Path {
			files[i] = candidates[file]
		}
	}
	if err := d.Set([]string{"imports"}, files); err != nil {
		return err
	}
	return m.FS.WriteFile(candidates[k.c.main.Path], d.Bytes(), 0o600)
}

// suspect names the field of a key that the daemon's complaint names; where it names none, a patch: the values of other
// fields are of the right type.
func (k checker) suspect(complaint string) string {
	for _, s := range slices.Backward(k.c.settings) {
		key := s.path[len(s.path)-1]
		if len(key) > 3 && s.field != "" && (strings.Contains(complaint, key) || strings.Contains(complaint, goName(key))) {
			return fmt.Sprintf(" (perhaps for %s, which sets %s)", s.field, dotted(s.path))
		}
	}
	for _, s := range k.c.settings {
		if strings.HasPrefix(s.field, "spec.providerConfig.patches") {
			return fmt.Sprintf(" (perhaps for %s)", s.field)
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
func (k checker) judge(dump map[string]any, said string) error {
	format, _ := dump["version"].(int64)
	unknown := unknownKeys(said)
	var wrong []string
	overridden := false
	for _, s := range k.c.settings {
		now, ok := lookup(dump, inDump(s.path, format))
		switch {
		case same(now, s.value), !ok && isZero(s.value):
		case slices.ContainsFunc(unknown, func(key string) bool { return strings.HasSuffix(dotted(s.path), key) }):
			wrong = append(wrong, fmt.Sprintf("%s sets %s, which it does not know", named(s), dotted(s.path)))
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s sets %s, which it leaves out", named(s), dotted(s.path)))
		default:
			overridden = true
			wrong = append(wrong, fmt.Sprintf("%s sets %s, but another value is in effect", named(s), dotted(s.path)))
		}
	}
	if err := k.conflict(dump); err != nil || len(wrong) == 0 {
		return err
	}
	hint := "remove it from the document: this release has no such key"
	if overridden {
		hint = "remove it from the document, or from the file that " + k.c.main.Path + " imports later than " + baseOf(k.c.dropIn)
	}
	return sdk.WithDetail(sdk.Precondition(fmt.Sprintf("containerd %s does not take all of the new configuration, nothing was changed: %s",
		k.installation.release, strings.Join(wrong, "; ")), hint), said)
}

func baseOf(spec *sdk.FileSpec) string {
	if spec == nil {
		return "all others"
	}
	return filepath.Base(spec.Path)
}

func named(s setting) string {
	if s.field == "" {
		return "machineadm"
	}
	return s.field
}

// conflict finds, in all files together, what keeps the Container Runtime Interface from starting.
func (k checker) conflict(dump map[string]any) error {
	for _, plugin := range []string{criPlugin, imagesPlugin} {
		at := []string{"plugins", plugin, "registry"}
		tree, _ := lookup(dump, append(slices.Clone(at), "config_path"))
		mirrors, _ := lookup(dump, append(slices.Clone(at), "mirrors"))
		if table, ok := mirrors.(map[string]any); ok && len(table) > 0 && tree != nil && tree != "" {
			return sdk.Precondition("a file that "+k.c.main.Path+" imports describes registries in the old way ("+
				dotted(append(at, "mirrors"))+"), which excludes that of spec.registries", "move what it says to spec.registries and remove it there")
		}
	}
	for _, plugin := range []string{criPlugin, runtimePlugin} {
		at := []string{"plugins", plugin, "containerd"}
		name, _ := lookup(dump, append(slices.Clone(at), "default_runtime_name"))
		text, _ := name.(string)
		if _, ok := lookup(dump, append(slices.Clone(at), "runtimes", text)); text != "" && !ok {
			return sdk.Precondition("the default runtime ("+dotted(append(at, "default_runtime_name"))+") is none of the runtimes"+k.suspect("default_runtime_name"),
				"list it in spec.runtimes, or name another one as spec.defaultRuntime")
		}
	}
	cni := []string{"plugins", runtimePlugin, "cni"}
	old, _ := lookup(dump, append(slices.Clone(cni), "bin_dir"))
	list, _ := lookup(dump, append(slices.Clone(cni), "bin_dirs"))
	if many, ok := list.([]any); ok && len(many) > 0 && old != nil && old != "" {
		return sdk.Precondition("two files of the configuration name directories of CNI plugins in two ways (bin_dir and bin_dirs), which exclude each other",
			"remove bin_dir from "+k.c.main.Path+" and what it imports")
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
		keys = append(keys, dotted(path))
	}
	return keys
}

func lookup(tree map[string]any, path []string) (any, bool) {
	var here any = tree
	for _, key := range path {
		table, ok := here.(map[string]any)
		if !ok {
			return nil, false
		}
		if here, ok = table[key]; !ok {
			return nil, false
		}
	}
	return here, true
}

// same compares what the daemon says with what was set: it has one kind of integer, lists of anything, and prints a table
// of a list with all the keys that such a table can have.
func same(now, want any) bool { return covers(general(now), general(want)) }

func covers(now, want any) bool {
	switch want := want.(type) {
	case []any:
		list, ok := now.([]any)
		return ok && slices.EqualFunc(list, want, covers)
	case map[string]any:
		table, ok := now.(map[string]any)
		for key, value := range want {
			has, given := table[key]
			ok = ok && (given && covers(has, value) || !given && isZero(value))
		}
		return ok
	}
	return reflect.DeepEqual(now, want)
}

func general(value any) any {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = general(v.Index(i).Interface())
		}
		return list
	case reflect.Map:
		table := map[string]any{}
		for _, key := range v.MapKeys() {
			table[key.String()] = general(v.MapIndex(key).Interface())
		}
		return table
	}
	return value
}

func isZero(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// Current is the current configuration of the daemon.
type Current struct {
	main mainDocument
	// imports is the desired list of the main file.
	imports []string
	// layers are the main file, without what an earlier run added, and the files that it imports by that list, in the
	// order in which containerd reads them.
	layers []layer
}

// layer is a file of the configuration. The document is nil where the file does not exist.
type layer struct {
	path string
	*tomledit.Document
	// own marks the drop-in that this plugin writes.
	own bool
}

// valueOf is the value of a layer for a setting. ok is false where the layer leaves the value of an earlier file.
func (l layer) valueOf(s settings.Setting) (value any, ok bool) {
	if l.own || l.Document == nil {
		return nil, false
	}
	value, ok = l.Get(s.Path...)
	if path, _, translates := inVersion2(s); !ok && translates && versionOf(l.Document) == 2 {
		value, ok = l.Get(path...)
	}
	// Outside of plugins, a zero does not replace the value of an earlier file.
	return value, ok && (s.Path[0] == "plugins" || !settings.IsZero(value))
}

// foreign are the layers that others write.
func (p Current) foreign() []layer {
	return slices.DeleteFunc(slices.Clone(p.layers), func(l layer) bool { return l.own || l.Document == nil })
}

// readable refuses files with which the daemon does not start or that it ignores, so that an image is refused like a
// machine on which containerd itself reads the configuration.
func (p Current) readable(r settings.Release) error {
	for _, l := range p.layers[1:] {
		switch {
		case l.own:
		case l.Document == nil:
			return sdk.Precondition(p.main.path+" imports "+l.path+", which is not there: containerd "+r.String()+" does not start so",
				"remove it from imports, or make the file")
		case versionOf(l.Document) > int64(r.Format()):
			return sdk.Precondition(fmt.Sprintf("%s, which %s imports, is of format version %d, and containerd %s reads none above %d",
				l.path, p.main.path, versionOf(l.Document), r, r.Format()), "write the file in version "+fmt.Sprint(r.Format()))
		}
	}
	return p.oneVersion(r)
}

// oneVersion refuses a mix of versions 2 and 3. Before 2.3, containerd translates all files or none, by the version of the
// last, and keeps one of two tables for the same plugin.
func (p Current) oneVersion(r settings.Release) error {
	if r.Major == 1 || r.TranslatesEachFile() {
		return nil
	}
	var two, three string
	behind := false
	for _, l := range p.layers {
		behind = behind || l.own
		if l.own {
			continue
		}
		version := versionOf(l.Document)
		switch {
		case version == 2 && l.Has("plugins"):
			two = l.path
		case version > 2 && (behind || l.Has("plugins", settings.RuntimePlugin) || l.Has("plugins", settings.ImagesPlugin)):
			three = l.path
		}
	}
	if two == "" || three == "" {
		return nil
	}
	return sdk.Precondition(fmt.Sprintf("%s is of format version 2 and %s of version 3: containerd %s drops the Container Runtime Interface's settings of one of them",
		two, three, r), "write both files in one version, or install containerd 2.3 or later")
}

// replaced refuses, on containerd 1.x, an imported file that replaces what the main file sets of a plugin.
func (p Current) replaced(r settings.Release, desired []settings.Setting) error {
	for _, l := range p.foreign()[1:] {
		for _, s := range desired {
			if len(s.Path) > 2 && s.Path[0] == "plugins" && l.Has("plugins", s.Path[1]) {
				return sdk.At(sdk.Precondition(fmt.Sprintf("%s, which %s imports, sets %s: containerd %s then forgets what the main file says of this plugin, %s among it",
					l.path, p.main.path, settings.Dotted(s.Path[:2]), r, s.Field),
					"move the keys of this table from "+l.path+" to "+p.main.path+", then run again"), s.Field)
			}
		}
	}
	return nil
}

// overridden refuses a file that containerd reads after ours and that sets another value.
func (p Current) overridden(r settings.Release, desired []settings.Setting) error {
	start := slices.IndexFunc(p.layers, func(l layer) bool { return l.own })
	if r.Major == 1 {
		start = 0
	}
	var wrong []sdk.Violation
	for _, l := range p.layers[start+1:] {
		for _, s := range desired {
			if value, ok := l.valueOf(s); ok && !settings.Same(value, s.Value) {
				wrong = append(wrong, sdk.Violation{
					Field: s.Field, Hint: "remove it from the document, or from " + l.path,
					Message: fmt.Sprintf("%s sets %s, but containerd %s reads another value in %s, which %s imports later",
						s.Origin(), settings.Dotted(s.Path), r, l.path, p.main.path),
				})
			}
		}
	}
	if wrong == nil {
		return nil
	}
	return sdk.Preconditions(wrong...)
}

// Read reads the main file and everything that it imports, with the imports that the document asks for.
func Read(m sdk.Machine, config string, r settings.Release, asked []string) (Current, error) {
	var p Current
	var err error
	if p.main, err = readMain(m, config, r); err != nil {
		return p, err
	}
	if p.imports, err = listImports(m, p.main, asked, r.Major > 1); err != nil {
		return p, err
	}
	p.layers = []layer{{path: p.main.path, Document: p.main.theirs}}
	own := settings.PathsOf(m.Target.OS).DropIn
	pending, err := ImportedFiles(m, p.main.path, p.imports, own)
	if err != nil {
		return p, err
	}
	for ; len(pending) > 0; pending = pending[1:] {
		l := layer{path: pending[0], own: pending[0] == own}
		if slices.ContainsFunc(p.layers, func(known layer) bool { return known.path == l.path }) {
			continue
		}
		text, err := m.FS.ReadFile(l.path)
		if err == nil {
			l.Document, err = tomledit.Parse(text)
		}
		if info, failure := m.FS.Stat(l.path); failure == nil && info.Mode.IsDir() {
			return p, sdk.Precondition(l.path+", which "+p.main.path+" imports, is a directory: containerd does not start so", "import the files in it, such as "+filepath.Join(l.path, "*.toml"))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, inFile(l.path, err)
		}
		p.layers = append(p.layers, l)
		if l.own || l.Document == nil {
			continue
		}
		list, err := ImportsOf(l.Document, l.path)
		if err != nil {
			return p, err
		}
		more, err := ImportedFiles(m, l.path, list, own)
		if err != nil {
			return p, err
		}
		pending = append(pending, more...)
	}
	return p, p.readable(r)
}

package activate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/sdk/internal/files"
)

// The kinds of items, as a summary names them.
const (
	fileKind        = "file"
	registryKind    = "registry value"
	environmentKind = "its environment" // at most one
)

// item is a part of the configuration: a file, the environment of the service, or a value of the registry.
type item struct {
	kind    string // fileKind, environmentKind or registryKind
	path    string
	step    string   // the step of the plan, of a drop-in that keeps a unit from starting
	loose   bool     // requires no restart
	outside []string // see files.Spec
	absent  bool     // a file that must not exist
	// want returns the desired state, given the current one.
	want func(have files.State) (files.State, error)
	diff func(have, want files.State) string
}

// observe returns the current and the desired state.
func (i item) observe(f files.System) (have, want files.State, err error) {
	if have, err = f.Read(i.path); err == nil {
		want, err = i.want(have)
	}
	if err == nil && i.kind == fileKind && !have.Matches(want) {
		at := i.path
		if i.absent {
			at = filepath.Dir(at)
		}
		err = f.Permit(at, i.outside)
	}
	return have, want, err
}

func fileItem(s files.Spec, loose bool) item {
	return item{
		kind: fileKind, path: s.Path, step: s.Step, loose: loose, absent: !s.Want.Exists, outside: s.Outside,
		want: s.Wanted,
		diff: func(have, want files.State) string { return files.Difference(s.Path, have, want, s.Sensitive) },
	}
}

// item makes the variables a part of an activation.
func (e Environment) item(unit string) item {
	return item{
		kind: environmentKind, path: environmentPath(unit),
		want: func(have files.State) (files.State, error) {
			list, err := e.merge(unit, entriesOf(have))
			return joined(list), err
		},
		diff: func(have, want files.State) string { return e.difference(unit, entriesOf(have), entriesOf(want)) },
	}
}

// item makes the value a part of an activation.
func (v RegistryValue) item() item {
	return item{
		kind: registryKind, path: v.path(),
		want: func(files.State) (files.State, error) { return v.state(), nil },
		diff: func(have, want files.State) string {
			return fmt.Sprintf("%s: %s -> %s\n", v.path(), registryText(have), registryText(want))
		},
	}
}

func (a *activator) specs() []files.Spec { return slices.Concat(a.Files, a.Companions) }

// items are the items of the configuration, after the drop-ins that keep units from starting.
func (a *activator) items(off []files.Spec) []item {
	var all []item
	for _, spec := range off {
		all = append(all, fileItem(spec, true))
	}
	for _, spec := range a.Files {
		all = append(all, fileItem(spec, false))
	}
	if a.Environment != nil {
		all = append(all, a.Environment.item(a.Unit))
	}
	for _, value := range a.Registry {
		all = append(all, value.item())
	}
	for _, spec := range a.Companions {
		all = append(all, fileItem(spec, true))
	}
	return all
}

// candidate returns the path of the candidate of a file.
func candidate(path string) string {
	dir, base := filepath.Split(path)
	return dir + atomicfile.CandidateName(base)
}

// digest identifies the desired configuration.
func (a *activator) digest() (string, error) {
	type file struct {
		Path    string
		Version files.State
	}
	var all []file
	for _, spec := range a.specs() {
		all = append(all, file{spec.Path, spec.Want})
	}
	if a.Environment != nil { // without the variables of others, who may change theirs meanwhile
		all = append(all, file{environmentPath(a.Unit), joined(a.Environment.entries())})
	}
	for _, value := range a.Registry {
		all = append(all, file{value.path(), value.state()})
	}
	if len(a.Conflicts) > 0 || a.Enable {
		all = append(all, file{"units", joined(append(slices.Clone(a.Conflicts), strconv.FormatBool(a.Enable)))})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of %s", a.Unit) // never %w: it could quote the content
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// hasUnitFiles reports whether systemd reads one of the files, or one that an interrupted activation swapped.
func (a *activator) hasUnitFiles(r *record) bool {
	return slices.ContainsFunc(a.Files, func(spec files.Spec) bool { return isUnitFile(spec.Path) }) ||
		r != nil && slices.ContainsFunc(r.Old, func(old oldFile) bool { return isUnitFile(old.Path) })
}

func isUnitFile(path string) bool {
	return strings.HasPrefix(path, "/etc/systemd/system/") || strings.Contains(path, "/lib/systemd/system/")
}

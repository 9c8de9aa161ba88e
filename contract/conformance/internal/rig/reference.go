package rig

import (
	"os"
	"path"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// Reference is an undisturbed run. Checks compare others with it.
type Reference struct {
	Before, After trees.Tree
	// Contents are the contents of the files that the run wrote.
	Contents map[string][]byte
	Run      process.Applied
	// Reason is set if there is no such run.
	Reason string
}

// written reads the files that the run made or changed.
func (want Reference) written(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, e := range want.After {
		before, existed := want.Before[name]
		if !e.Mode.IsRegular() || existed && before.Differs(e, trees.Aspects{Modes: true}) == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
	return out, nil
}

// OwnName reports whether a file has this name before or after the run. Every other name, and a name by G-12, is temporary.
func (want Reference) OwnName(name string) bool {
	return !atomicfile.Leftover(path.Base(name)) &&
		(want.Before[name].File() || want.After[name].File())
}

// NotComparable skips a check for the reason why there is no undisturbed run, or the other one.
func NotComparable(r Reference, other string) Result {
	if r.Reason != "" {
		return Skipped("%s", r.Reason)
	}
	return Skipped("%s", other)
}

package conformance

import (
	"os"
	"path"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// reference is an undisturbed run. Checks compare others with it.
type reference struct {
	before, after tree
	// contents are the contents of the files that the run wrote.
	contents map[string][]byte
	run      applied
	// reason is set if there is no such run.
	reason string
}

// written reads the files that the run made or changed.
func (want reference) written(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, e := range want.after {
		before, existed := want.before[name]
		if !e.mode.IsRegular() || existed && before.differs(e, aspects{modes: true}) == "" {
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

// ownName reports whether a file has this name before or after the run. Every other name, and a name by G-12, is temporary.
func (want reference) ownName(name string) bool {
	return !atomicfile.Leftover(path.Base(name)) &&
		(want.before[name].file() || want.after[name].file())
}

// notComparable skips a check for the reason why there is no undisturbed run, or the other one.
func notComparable(r reference, other string) result {
	if r.reason != "" {
		return skipped("%s", r.reason)
	}
	return skipped("%s", other)
}

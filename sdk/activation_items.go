package sdk

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
)

// item is one part of the configuration: a file, or what is swapped like one.
type item struct {
	path string
	// loose needs no restart.
	loose bool
	// absent says that there shall be none.
	absent bool
	// want is what it shall be, given what it is.
	want func(have version) (version, error)
	diff func(have, want version) string
}

func (a *activator) items() []item {
	var all []item
	for _, spec := range a.Files {
		all = append(all, spec.item())
	}
	if a.Environment != nil {
		all = append(all, a.Environment.item(a.Unit))
	}
	for _, spec := range a.Companions {
		companion := spec.item()
		companion.loose = true
		all = append(all, companion)
	}
	return all
}

func (s FileSpec) item() item {
	return item{
		path: s.Path, absent: s.Absent,
		want: func(version) (version, error) { return s.version(), nil },
		diff: func(have, want version) string { return difference(s.Path, have, want, s.Sensitive) },
	}
}

func (a *activator) specs() []FileSpec { return slices.Concat(a.Files, a.Companions) }

// claim records what the document owns of the units.
func (a *activator) claim(s sight) {
	if a.Environment != nil {
		claimUnit(a.machine, a.Unit, s.unit, "environment", a.Environment.entries()...)
	}
	claimUnit(a.machine, a.Unit, s.unit, "running", "true")
	if a.Enable {
		claimUnit(a.machine, a.Unit, s.unit, "enabled", "true")
	}
	for _, o := range s.others {
		claimUnit(a.machine, o.name, o.state, "running", "false")
		claimUnit(a.machine, o.name, o.state, "enabled", "false")
	}
}

// candidate is where a file lies while it is only proposed.
func candidate(path string) string {
	dir, base := filepath.Split(path)
	return dir + atomicfile.CandidateName(base)
}

// digest tells one wished configuration from another.
func (a *activator) digest() (string, error) {
	type file struct {
		Path    string
		Version version
	}
	var all []file
	for _, spec := range a.specs() {
		all = append(all, file{spec.Path, spec.version()})
	}
	if a.Environment != nil { // the wish, not the list that it makes: others may change theirs meanwhile
		all = append(all, file{environmentPath(a.Unit), joined(a.Environment.entries())})
	}
	if len(a.Instead) > 0 || a.Enable {
		all = append(all, file{"units", joined(append(slices.Clone(a.Instead), strconv.FormatBool(a.Enable)))})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of %s", a.Unit) // never %w: it could quote the content
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// hasUnitFiles says whether systemd itself reads one of the files, or one that an interrupted activation swapped.
func (a *activator) hasUnitFiles(r *record) bool {
	for _, spec := range a.Files {
		if isUnitFile(spec.Path) {
			return true
		}
	}
	return r != nil && slices.ContainsFunc(r.Old, func(old oldFile) bool { return isUnitFile(old.Path) })
}

func isUnitFile(path string) bool {
	return strings.HasPrefix(path, "/etc/systemd/system/") || strings.Contains(path, "/lib/systemd/system/")
}

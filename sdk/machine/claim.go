package machine

import (
	"path"
	"slices"
	"strings"
)

// Claim is one attribute or part of the machine that a document owns, in its desired state.
type Claim struct {
	// ID is canonical, for example "file:/etc/motd" or "unit:chrony.service#enabled".
	ID string
	// Field is the field path that asks for it; empty for the whole document.
	Field string
	// Value has the parts of the desired value; none when the thing has to be absent.
	Value []string
}

// Claim records that the document owns the thing id, with this desired value; no value at all means that the thing has
// to be absent. Two documents of a stream that claim one thing with different values are refused before anything is
// changed, so a plan function claims also what matches already. The helpers of package sdk claim what they manage.
//
// An ID names one attribute, or the part of it that the document owns: "sysctl:net.core.somaxconn", "file:/etc/motd",
// "file:/etc/hosts#node", "unit:chrony.service#running". Paths and names of units in it are brought to one spelling. The table
// in section 7 of contract/SPEC.md says of what the values are. An
// empty field is that of Field.
func (m Machine) Claim(id, field string, value ...string) {
	if m.Claims == nil {
		return
	}
	if field == "" {
		field = m.field
	}
	m.Claims(Claim{ID: m.canonicalID(id), Field: field, Value: value})
}

// Field returns the same machine with a field path for the claims of the helpers that are given it, so that a conflict
// is reported at this field.
func (m Machine) Field(field string) Machine {
	m.field = field
	return m
}

// canonicalID gives one spelling to what the target itself tells no difference in.
func (m Machine) canonicalID(id string) string {
	kind, name, _ := strings.Cut(id, ":")
	switch {
	case kind != "file" && kind != "directory" && kind != "unit":
		return id
	case m.Target.OS == "windows": // which compares names of files and services without regard to case
		name = strings.ToLower(strings.ReplaceAll(name, "/", `\`))
	case kind == "unit":
		unit, attribute, _ := strings.Cut(name, "#")
		if !hasUnitSuffix(unit) {
			unit += ".service"
		}
		name = unit + "#" + attribute
	default:
		file, part, divided := strings.Cut(name, "#")
		name = path.Clean(file)
		if divided {
			name += "#" + part
		}
	}
	return kind + ":" + name
}

func hasUnitSuffix(name string) bool {
	return slices.ContainsFunc([]string{
		".service", ".socket", ".target", ".timer", ".path", ".mount", ".automount", ".swap", ".slice", ".scope", ".device",
	}, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

package machine

import (
	"path"
	"slices"
	"strings"
)

// Claim is an attribute or a part of the machine that a document owns, with its desired value.
type Claim struct {
	// ID is canonical, for example "file:/etc/motd" or "unit:chrony.service#enabled".
	ID string
	// Field is the path of the document's field that requires it; empty for the whole document.
	Field string
	// Value has the parts of the desired value; none means absent.
	Value []string
}

// Claim records that the document owns id with this desired value; no value means absent. The host refuses two documents of
// a stream that claim one ID with different values before it changes anything, so a plan function also claims what already
// matches. The helpers of package sdk claim what they manage.
//
// An ID names one attribute or part that the document owns: "sysctl:net.core.somaxconn", "file:/etc/motd",
// "file:/etc/hosts#node", "unit:chrony.service#running". Paths and unit names in it are normalised. Section 7 of
// contract/SPEC.md defines the values. An empty field means that of Field.
func (m Machine) Claim(id, field string, value ...string) {
	if m.Claims == nil {
		return
	}
	if field == "" {
		field = m.field
	}
	m.Claims(Claim{ID: m.canonicalID(id), Field: field, Value: value})
}

// Field returns the same machine with a field path for its claims, so that a conflict is reported at this field.
func (m Machine) Field(field string) Machine {
	m.field = field
	return m
}

// canonicalID normalises IDs that mean the same on the target.
func (m Machine) canonicalID(id string) string {
	kind, name, _ := strings.Cut(id, ":")
	switch {
	case kind != "file" && kind != "directory" && kind != "unit":
		return id
	case m.Target.OS == "windows": // names of files and services are case-insensitive
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

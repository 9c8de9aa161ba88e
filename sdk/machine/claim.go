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
	// Assumed is a value that the document does not ask for, see Machine.Assume.
	Assumed bool
}

// canonicalID normalises IDs that mean the same on a target of this operating system.
func canonicalID(goos, id string) string {
	kind, name, _ := strings.Cut(id, ":")
	switch {
	case kind == "registry": // names of keys can have a slash
		name = strings.ToLower(name)
	case kind != "file" && kind != "directory" && kind != "link" && kind != "unit":
		return id
	case goos == "windows": // names of files and services are case-insensitive
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

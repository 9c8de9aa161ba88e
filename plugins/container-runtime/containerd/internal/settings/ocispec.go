package settings

import (
	_ "embed"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

//go:embed ocispec.txt
var specTable string

// specFields checks a value of the patch of a specification, at a path of ocispec.txt. containerd does not read a specification with a value of another
// type, and drops a field that it does not have, which is not certain of releases after the table. Source: loadBaseOCISpecs of containerd's CRI plugin.
func (r *resolver) specFields(at document.Path, table string, value any) {
	inside := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		inside = v
	case []any:
		for i, item := range v {
			r.specField(at.Index(i), table, "#", item)
		}
	}
	for _, key := range sortedKeys(inside) {
		r.specField(at.Key(key), table, key, inside[key])
	}
}

func (r *resolver) specField(at document.Path, table, key string, value any) {
	if value == nil || table == "process" && key == "rlimits" || table == "" && key == "ociVersion" {
		return // null removes; the others have a field, or none
	}
	var known []string
	for line := range strings.Lines(specTable) {
		f := strings.Fields(line)
		if ok, _ := path.Match(strings.TrimSuffix(f[0], "/"), table); !ok { // each pattern is valid
			continue
		}
		for _, name := range f[2:] {
			if name != "*" && !strings.EqualFold(name, key) { // as encoding/json compares them
				known = append(known, name)
				continue
			}
			if text, _ := value.(string); key == "#" && strings.HasPrefix(table, "process/capabilities/") && !strings.HasPrefix(text, "CAP_") {
				r.warn(at, "is no name of a capability, and the runtime does not grant it: write it like CAP_NET_ADMIN")
			}
			if !r.refuse(!isJSON(f[1], value), at, "is of another type than this field, and containerd starts without its plugin for the kubelet", "write it as a "+f[1]) {
				r.specFields(at, strings.TrimPrefix(table+"/"+name, "/"), value)
			}
			return
		}
	}
	if known == nil {
		return // of another system, or any value
	}
	message := "is no field of a specification here, and containerd ignores it: "
	if near := document.Nearest(key, known); near != "" {
		r.warn(at, message+"did you mean "+near+"?")
		return
	}
	r.warn(at, message+"correct its name and its place, or remove it")
}

// isJSON reports whether a value decodes into a type of ocispec.txt.
func isJSON(what string, value any) bool {
	number, isNumber := value.(json.Number)
	ok := what == "any"
	switch what {
	case "bool":
		_, ok = value.(bool)
	case "text":
		_, ok = value.(string)
	case "int":
		_, err := strconv.ParseInt(number.String(), 10, 64)
		ok = isNumber && err == nil
	case "natural":
		_, err := strconv.ParseUint(number.String(), 10, 64)
		ok = isNumber && err == nil
	case "list":
		_, ok = value.([]any)
	case "mapping":
		_, ok = value.(map[string]any)
	}
	return ok
}

package settings

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
)

//go:embed patchkeys.txt
var patchKeyTable string

// patchFault says why containerd does not use a value of its configuration. It ends, or leaves the plugin out, for a value of another type, and ignores
// a key that it does not have, which is not certain of releases that the table does not have.
func patchFault(at []string, value any) (message, hint string, certain bool) {
	if len(at) > 1 && at[0] == "plugins" && !strings.Contains(at[1], ".") {
		return "is in the table of no plugin", "write the whole name of the plugin, such as io.containerd.grpc.v1.cri for containerd 1.x", true
	}
	if len(at) > 1 {
		if message, hint, certain = patchFault(at[:1], nil); message != "" {
			return message, hint, certain
		}
	}
	table, key := strings.Join(at[:len(at)-1], "/"), at[len(at)-1]
	var keys []string
	for line := range strings.Lines(patchKeyTable) {
		f := strings.Fields(line)
		if ok, _ := path.Match(strings.TrimSuffix(f[0], "/"), table); !ok { // each pattern is valid
			continue
		}
		keys = append(keys, f[2:]...)
		if slices.Contains(f[2:], key) || slices.Contains(f[2:], "*") && f[1] != "any" {
			if slices.ContainsFunc(strings.Split(f[1], "|"), func(what string) bool { return hasType(what, value) }) {
				return "", "", false
			}
			return "gets a value of another type, and containerd does not start, or starts without the plugin", "write it " + typeHints()[f[1]], true
		}
	}
	if keys == nil || slices.Contains(keys, "*") {
		return "", "", false
	}
	if near := document.Nearest(key, keys); near != "" {
		return "which containerd does not have, and ignores", "did you mean " + near + "?", false
	}
	return "which containerd does not have, and ignores", "remove it, or correct its spelling and its table", false
}

func typeHints() map[string]string {
	return map[string]string{
		"bool": "as true or false, without quotes", "int": "in digits, without quotes", "float": "as a number with a point", "text": "in quotes", "list": "in brackets",
		"duration": "like \"5m0s\"", "level": "as one of trace, debug, info, warn, error, fatal, panic", "int|text": "in digits",
		"plugins": "as a list of whole names, such as io.containerd.grpc.v1.cri",
	}
}

func hasType(what string, value any) bool {
	text, isText := value.(string)
	list, isList := value.([]any)
	ok := what == "any" || what == "table" // of which another value contradicts what is in the table
	switch what {
	case "bool":
		_, ok = value.(bool)
	case "int":
		_, ok = value.(int64)
	case "float":
		_, ok = value.(float64)
		ok = ok || hasType("int", value)
	case "text":
		ok = isText
	case "list":
		ok = isList
	case "duration":
		_, err := time.ParseDuration(text)
		ok = isText && (err == nil || text == "")
	case "level":
		ok = slices.Contains([]string{"", "trace", "debug", "info", "warn", "error", "fatal", "panic"}, text) && isText
	case "plugins":
		ok = isList && !slices.ContainsFunc(list, func(item any) bool { name, isName := item.(string); return !isName || !strings.Contains(name, ".") })
	}
	return ok
}

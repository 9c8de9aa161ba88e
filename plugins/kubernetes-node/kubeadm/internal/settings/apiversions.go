package settings

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

//go:embed apiversions.txt
var apiVersions string

// registersAPI reports whether the API server of a minor version starts with an item of its runtime-config. Source: pkg/server/resourceconfig of
// apiserver.
func registersAPI(item string, minor int) bool {
	key, value, _ := strings.Cut(item, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if group, ok := strings.CutPrefix(key, "api/"); ok {
		return slices.Contains([]string{"all", "ga", "beta", "alpha"}, group) && (value == "true" || value == "false")
	}
	if _, err := strconv.ParseBool(cmp.Or(value, "true")); err != nil {
		return false
	}
	group, rest, _ := strings.Cut(key, "/")
	group = cmp.Or(group, "/")
	wanted, resource, _ := strings.Cut(rest, "/")
	for line := range strings.Lines(apiVersions) {
		name, versions, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name != group {
			continue
		}
		for version := range strings.FieldsSeq(versions) {
			version, releases, limited := strings.Cut(version, ":")
			first, last, _ := strings.Cut(releases, "-")
			from, _ := strconv.Atoi(first) // digits, as the next
			to, _ := strconv.Atoi(last)
			if version == wanted && (!limited || from <= minor && minor <= to) {
				return resource == strings.ToLower(resource) && !strings.Contains(resource, "/")
			}
		}
	}
	return false
}

package machine

import (
	"fmt"
	"slices"
	"strings"
)

// installSection is the [Install] section of a unit file, see systemd.unit(5): the units of each assignment.
type installSection map[string][]string

// links returns the names, below the unit directory, of the links that enabling the unit creates.
func (s installSection) links(unit string) []string {
	links := slices.Clone(s["Alias"])
	for _, by := range []struct{ key, suffix string }{
		{"WantedBy", ".wants/"}, {"RequiredBy", ".requires/"}, {"UpheldBy", ".upholds/"},
	} {
		for _, target := range s[by.key] {
			links = append(links, target+by.suffix+unit)
		}
	}
	return links
}

// parseInstall reads the [Install] section of a unit file. An empty assignment clears the earlier ones. Specifiers are
// refused, because only the running manager can expand them.
func parseInstall(data []byte) (installSection, error) {
	section, inside := installSection{}, false
	for _, line := range logicalLines(string(data)) {
		key, value, assigned := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(line, "["):
			inside = line == "[Install]"
		case !inside || !assigned || !slices.Contains([]string{"Alias", "Also", "WantedBy", "RequiredBy", "UpheldBy"}, key):
		case value == "":
			delete(section, key)
		case strings.Contains(value, "%"):
			return nil, fmt.Errorf("the specifier in %s= of [Install]: %w", key, ErrUnsupported)
		default:
			for _, name := range strings.Fields(value) {
				if _, err := unitName(name); err != nil || !hasUnitSuffix(name) {
					return nil, fmt.Errorf("%s= of [Install] holds a word that is not a unit name", key)
				}
				section[key] = append(section[key], name)
			}
		}
	}
	return section, nil
}

// logicalLines returns the lines of a unit file, trimmed, without comments and with continued lines joined, see
// systemd.syntax(7). A comment between continued lines does not end them.
func logicalLines(text string) []string {
	var lines []string
	joined := ""
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimRight(line, "\r")
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") {
			continue
		}
		body, continued := strings.CutSuffix(line, `\`)
		joined += body + " "
		if !continued {
			lines, joined = append(lines, strings.TrimSpace(joined)), ""
		}
	}
	return append(lines, strings.TrimSpace(joined))
}

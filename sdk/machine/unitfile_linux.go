package machine

import (
	"fmt"
	"strings"
)

// installSection is what a unit asks for when it is enabled, see systemd.unit(5), section [Install].
type installSection struct {
	wants, requires, upholds, aliases, also []string
}

// links returns the link names below the unit directory that enabling the unit makes.
func (s installSection) links(unit string) []string {
	links := append([]string(nil), s.aliases...)
	for _, group := range []struct {
		targets []string
		suffix  string
	}{{s.wants, ".wants/"}, {s.requires, ".requires/"}, {s.upholds, ".upholds/"}} {
		for _, target := range group.targets {
			links = append(links, target+group.suffix+unit)
		}
	}
	return links
}

// parseInstall reads the [Install] section of a unit file. An assignment of nothing clears what came before it.
// Specifiers are refused: what they stand for is known to the running manager alone.
func parseInstall(data []byte) (installSection, error) {
	var section installSection
	lists := map[string]*[]string{
		"WantedBy": &section.wants, "RequiredBy": &section.requires, "UpheldBy": &section.upholds,
		"Alias": &section.aliases, "Also": &section.also,
	}
	inside := false
	for number, line := range logicalLines(string(data)) {
		if strings.HasPrefix(line, "[") {
			inside = line == "[Install]"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !inside || !ok {
			continue
		}
		list, known := lists[strings.TrimSpace(key)]
		if !known {
			continue
		}
		value = strings.TrimSpace(value)
		if value == "" {
			*list = nil
			continue
		}
		for name := range strings.FieldsSeq(value) {
			if strings.Contains(name, "%") {
				return installSection{}, fmt.Errorf("line %d: specifiers in [Install]: %w", number, ErrUnsupported)
			}
			if _, err := unitName(name); err != nil || !hasUnitSuffix(name) {
				return installSection{}, fmt.Errorf("line %d: [Install] names no unit", number)
			}
			*list = append(*list, name)
		}
	}
	return section, nil
}

// logicalLines yields lines with their number, comments left out and continued lines joined, see systemd.syntax(7):
// a comment between continued lines does not end them.
func logicalLines(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		var joined strings.Builder
		first, number := 0, 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimRight(line, "\r\n")
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") {
				continue
			}
			if joined.Len() == 0 {
				first = number
			}
			if body, continued := strings.CutSuffix(line, `\`); continued {
				joined.WriteString(body + " ")
				continue
			}
			joined.WriteString(line)
			complete := strings.TrimSpace(joined.String())
			joined.Reset()
			if complete != "" && !yield(first, complete) {
				return
			}
		}
		if complete := strings.TrimSpace(joined.String()); complete != "" {
			yield(first, complete)
		}
	}
}

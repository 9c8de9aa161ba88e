package machine

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// unitName completes and checks a unit name, see systemd.unit(5). A template without an instance is refused.
func unitName(unit string) (string, error) {
	if !regexp.MustCompile(`^[a-zA-Z0-9:_\\@][a-zA-Z0-9:_.\\@-]{0,199}$`).MatchString(unit) {
		return "", fmt.Errorf("unit %s: %w: not a unit name", printable(unit), fs.ErrInvalid)
	}
	if !hasUnitSuffix(unit) {
		unit += ".service"
	}
	if strings.Contains(unit, "@.") {
		return "", fmt.Errorf("unit %s: %w: a template without an instance", printable(unit), fs.ErrInvalid)
	}
	return unit, nil
}

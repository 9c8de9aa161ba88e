package machine

import (
	"fmt"
	"io/fs"
	"strings"
)

// unitName completes and checks a unit name, see systemd.unit(5). Templates without an instance name no unit.
func unitName(unit string) (string, error) {
	bad := func(why string) (string, error) {
		return "", fmt.Errorf("unit %s: %w: %s", printable(unit), fs.ErrInvalid, why)
	}
	if unit == "" || strings.HasPrefix(unit, "-") || strings.HasPrefix(unit, ".") || len(unit) > 200 {
		return bad("not a unit name")
	}
	for _, r := range unit {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(`:-_.\@`, r):
		default:
			return bad("not a unit name")
		}
	}
	if !hasUnitSuffix(unit) {
		unit += ".service"
	}
	if strings.Contains(unit, "@.") {
		return bad("a template is no unit; name an instance of it")
	}
	return unit, nil
}

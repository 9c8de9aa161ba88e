package settings

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func isText(text string) bool { return utf8.ValidString(text) }

// resolver collects everything that is wrong with a document, so that all of it is reported at once. Nothing it says
// quotes a value.
type resolver struct {
	spec       v1alpha1.ContainerRuntimeSpec
	at         Paths
	violations []sdk.Violation
	warnings   []sdk.Warning
}

func (r *resolver) refuse(field document.Path, message, hint string) {
	r.violations = append(r.violations, sdk.Violation{Field: string(field), Message: message, Hint: hint})
}

func (r *resolver) warn(field document.Path, message string) {
	r.warnings = append(r.warnings, sdk.Warning{Field: string(field), Message: message})
}

func cgroupDrivers() []string { return []string{"systemd", "cgroupfs"} }

// oneOf refuses a value that is given and is none of these.
func (r *resolver) oneOf(field document.Path, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		r.refuse(field, "is not a value of this field", "use one of "+strings.Join(known, ", "))
	}
}

// directory refuses what is no absolute path in its shortest form.
func (r *resolver) directory(field document.Path, value string) {
	if value == "" {
		return
	}
	if err := checkPath(value, r.at.Windows); err != nil {
		r.refuse(field, err.Error(), r.pathHint("an absolute path", "/var/lib/example", `C:\ProgramData\example`))
	}
}

func (r *resolver) directories(field document.Path, values []string) {
	for i, value := range values {
		if value == "" {
			r.refuse(field.Index(i), "is empty", "remove it")
		}
		if slices.Contains(values[:i], value) {
			r.refuse(field.Index(i), "is listed twice", "remove one of the two")
		}
		r.directory(field.Index(i), value)
	}
}

func (r *resolver) pathHint(what, linux, windows string) string {
	example := linux
	if r.at.Windows {
		example = windows
	}
	return fmt.Sprintf("write %s without . and .. and doubled or trailing separators, such as %s", what, example)
}

// secretText refuses an empty secret, and one that is not text: what it is written to is.
func (r *resolver) secretText(field document.Path, s v1alpha1.Secret) {
	switch text := string(s.Reveal()); {
	case s.IsZero():
	case text == "":
		r.refuse(field, "is empty", "remove it, or give its value")
	case HasControl(text) || !isText(text):
		r.refuse(field, "has control characters", "look for a line end behind it")
	}
}

package settings

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

// resolver collects every violation of a document. Its messages never quote a value.
type resolver struct {
	spec       v1alpha1.ContainerRuntimeSpec
	at         Paths
	violations []sdk.Violation
	elsewhere  []sdk.Violation // paths of another operating system
	warnings   []sdk.Warning
}

// refuse records a violation where bad is true. It returns bad.
func (r *resolver) refuse(bad bool, field document.Path, message, hint string) bool {
	if bad {
		r.violations = append(r.violations, sdk.Violation{Field: string(field), Message: message, Hint: hint})
	}
	return bad
}

// invalid records an error as a violation. It reports whether there was one.
func (r *resolver) invalid(err error, field document.Path, hint string) bool {
	return err != nil && r.refuse(true, field, err.Error(), hint)
}

func (r *resolver) warn(field document.Path, message string) {
	r.warnings = append(r.warnings, sdk.Warning{Field: string(field), Message: message})
}

// list refuses entries that are empty or listed twice, and checks the others.
func (r *resolver) list(field document.Path, values []string, check func(at document.Path, value string)) {
	for i, value := range values {
		at := field.Index(i)
		if !r.refuse(value == "", at, "is empty", "remove it") &&
			!r.refuse(slices.Contains(values[:i], value), at, "is listed twice", "remove one of the two") {
			check(at, value)
		}
	}
}

// path refuses a path that fails a check. One that is valid on the other operating system is a part of a valid document.
func (r *resolver) path(field document.Path, check func(string, bool) error, value, what, linux, windows string) {
	example := linux
	if r.at.Windows {
		example = windows
	}
	if err := check(value, r.at.Windows); err != nil && check(value, !r.at.Windows) == nil {
		r.elsewhere = append(r.elsewhere, sdk.Violation{
			Field: string(field), Message: "is a path of another operating system",
			Hint: "write a path such as " + example + ", or limit the document by metadata.when.os",
		})
		return
	}
	r.invalid(check(value, r.at.Windows), field,
		fmt.Sprintf("write %s without . and .. and doubled or trailing separators, such as %s", what, example))
}

// directory refuses a path that is not absolute and in its shortest form.
func (r *resolver) directory(field document.Path, value string) {
	if value != "" {
		r.path(field, checkPath, value, "an absolute path", "/var/lib/example", `C:\ProgramData\example`)
		if name := strings.ToLower(path.Ext(value)); slices.Contains([]string{".toml", ".conf", ".conflist", ".json", ".yaml", ".yml"}, name) {
			r.warn(field, "has the name of a file, and containerd looks for the files of a directory here: write the directory alone")
		}
	}
}

// secretText refuses a secret that is empty or not text.
func (r *resolver) secretText(field document.Path, s v1alpha1.Secret) {
	text := string(s.Reveal())
	r.refuse(text == "" && !s.IsZero(), field, "is empty", "remove it, or give its value")
	r.refuse(form.HasControl(text) || !utf8.ValidString(text), field, "has control characters", "look for a line end at its end")
}

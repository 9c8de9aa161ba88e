package settings

import (
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/sdk"
)

func (d Desired) build(r Release) *builder {
	b := &builder{Desired: d, release: r}
	b.windows()
	b.daemon()
	b.interfaces()
	b.pulls()
	b.handlers()
	b.registries()
	return b
}

// Unsupported returns the fields that a release or the operating system lacks. Another provider may have them.
func (d Desired) Unsupported(r Release) []sdk.Violation { return d.build(r).unsupported }

// Settings returns the settings of the document for a release, by path, with the patches on top. The violations are
// patches that conflict with other settings.
func (d Desired) Settings(r Release) ([]Setting, []sdk.Violation) {
	b := d.build(r)
	violations := b.patch()
	b.cgroups()
	slices.SortStableFunc(b.all, func(a, b Setting) int { return slices.Compare(a.Path, b.Path) })
	return b.all, violations
}

// Overridden warns of patches that win over a field of the document.
func (d Desired) Overridden(r Release) []sdk.Warning {
	plain := d
	plain.patches = nil
	own, _ := plain.Settings(r)
	all, _ := d.Settings(r)
	var warnings []sdk.Warning
	for _, s := range all {
		at := slices.IndexFunc(own, func(o Setting) bool { return o.Is(s.Path...) && o.Field != s.Field })
		if at >= 0 {
			warnings = append(warnings, sdk.Warning{Field: s.Field, Message: fmt.Sprintf("sets %s and so wins over %s", Dotted(s.Path), own[at].Field)})
		}
	}
	return warnings
}

// patch adds the patches: the later of two equal paths wins. A value in the place of a table, or a table in the place of
// a value, is refused.
func (b *builder) patch() []sdk.Violation {
	var violations []sdk.Violation
	for _, p := range b.patches {
		if p.version != 0 && p.version != b.release.Written() {
			continue
		}
		for _, v := range p.values {
			at := slices.IndexFunc(b.all, func(o Setting) bool { return within(o.Path, v.Path) })
			message, hint := "", "correct or remove it"
			if other := misplaced(v.Path, b.release); other != "" {
				message = fmt.Sprintf("sets %s, which containerd %s does not read", Dotted(v.Path), b.release)
				hint = "write version = 2 or version = 3 in a patch that is for one of them: CRI is at " + other + " there"
			} else if at < 0 {
				b.all = append(b.all, v)
			} else if len(b.all[at].Path) == len(v.Path) {
				b.all[at] = v
			} else {
				message = fmt.Sprintf("sets %s, and %s sets %s: one of them is a table and the other is not",
					Dotted(v.Path), b.all[at].Field, Dotted(b.all[at].Path))
			}
			if message != "" {
				violations = append(violations, sdk.Violation{Field: v.Field, Message: message, Hint: hint})
			}
		}
	}
	return violations
}

// misplaced is the place of CRI in a release, where a path names the place of the other version. The settings of
// container streams have one place in both.
func misplaced(path []string, r Release) string {
	if len(path) < 3 || path[0] != "plugins" {
		return ""
	}
	streaming := []string{
		"disable_tcp_service", "stream_server_address", "stream_server_port", "stream_idle_timeout",
		"enable_tls_streaming", "x509_key_pair_streaming",
	}
	switch two := r.Written() == 2; {
	case two && (path[1] == ImagesPlugin || path[1] == RuntimePlugin):
		return Dotted([]string{"plugins", CRIPlugin})
	case !two && path[1] == CRIPlugin && !slices.Contains(streaming, path[2]):
		return Dotted([]string{"plugins", ImagesPlugin}) + " and " + Dotted([]string{"plugins", RuntimePlugin})
	}
	return ""
}

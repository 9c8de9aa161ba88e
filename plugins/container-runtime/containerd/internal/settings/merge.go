package settings

import (
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/sdk"
)

// patch puts the patches on top: of equal paths the later counts. A value where something else has a table, or a table
// where something else has a value, is refused.
func (b *builder) patch() []sdk.Violation {
	var violations []sdk.Violation
	refuse := func(field document.Path, message, hint string) {
		violations = append(violations, sdk.Violation{Field: string(field), Message: message, Hint: hint})
	}
	for _, p := range b.patches {
		if p.version != 0 && p.version != b.release.written() {
			continue
		}
		for _, v := range p.values {
			if other := misplaced(v.path, b.release); other != "" {
				refuse(p.field, fmt.Sprintf("sets %s, which containerd %s does not read", Dotted(v.path), b.release),
					"write version = 2 or version = 3 in a patch that is for one of them: CRI is at "+other+" there")
				continue
			}
			s := Setting{Path: v.path, Value: v.value, Field: string(p.field)}
			if at := slices.IndexFunc(b.all, func(o Setting) bool { return within(o.Path, v.path) }); at < 0 {
				b.all = append(b.all, s)
			} else if len(b.all[at].Path) == len(v.path) {
				b.all[at] = s
			} else {
				refuse(p.field, fmt.Sprintf("sets %s, and %s sets %s: one of them is a table and the other is not",
					Dotted(v.path), b.all[at].Field, Dotted(b.all[at].Path)), "correct or remove it")
			}
		}
	}
	return violations
}

// misplaced is where the CRI of a release is, when a path names the other version's place for it. What streams the output
// of containers stays where it was.
func misplaced(path []string, r Release) string {
	if len(path) < 3 || path[0] != "plugins" {
		return ""
	}
	streaming := []string{
		"disable_tcp_service", "stream_server_address", "stream_server_port", "stream_idle_timeout",
		"enable_tls_streaming", "x509_key_pair_streaming",
	}
	switch two := r.written() == 2; {
	case two && (path[1] == ImagesPlugin || path[1] == RuntimePlugin):
		return Dotted([]string{"plugins", CRIPlugin})
	case !two && path[1] == CRIPlugin && !slices.Contains(streaming, path[2]):
		return Dotted([]string{"plugins", ImagesPlugin}) + " and " + Dotted([]string{"plugins", RuntimePlugin})
	}
	return ""
}

// overridden are warnings: a patch that says otherwise than a field of the document wins.
func (d Desired) Overridden(r Release) []sdk.Warning {
	plain := d
	plain.patches = nil
	own, _ := plain.Settings(r)
	all, _ := d.Settings(r)
	var warnings []sdk.Warning
	for _, s := range all {
		at := slices.IndexFunc(own, func(o Setting) bool { return slices.Equal(o.Path, s.Path) && o.Field != s.Field })
		if at >= 0 {
			warnings = append(warnings, sdk.Warning{Field: s.Field, Message: fmt.Sprintf("sets %s and so wins over %s", Dotted(s.Path), own[at].Field)})
		}
	}
	return warnings
}

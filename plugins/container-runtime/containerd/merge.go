package main

import (
	"fmt"
	"maps"
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
				refuse(p.field, fmt.Sprintf("sets %s, which containerd %s does not read", dotted(v.path), b.release),
					"write version = 2 or version = 3 in a patch that is for one of them: CRI is at "+other+" there")
				continue
			}
			s := setting{path: v.path, value: v.value, field: string(p.field)}
			if at := slices.IndexFunc(b.all, func(o setting) bool { return within(o.path, v.path) }); at < 0 {
				b.all = append(b.all, s)
			} else if len(b.all[at].path) == len(v.path) {
				b.all[at] = s
			} else {
				refuse(p.field, fmt.Sprintf("sets %s, and %s sets %s: one of them is a table and the other is not",
					dotted(v.path), b.all[at].field, dotted(b.all[at].path)), "correct or remove it")
			}
		}
	}
	return violations
}

// within says whether one of two paths leads to the other.
func within(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// misplaced is where the CRI of a release is, when a path names the other version's place for it. What streams the output
// of containers stays where it was.
func misplaced(path []string, r release) string {
	if len(path) < 3 || path[0] != "plugins" {
		return ""
	}
	streaming := []string{
		"disable_tcp_service", "stream_server_address", "stream_server_port", "stream_idle_timeout",
		"enable_tls_streaming", "x509_key_pair_streaming",
	}
	switch two := r.written() == 2; {
	case two && (path[1] == imagesPlugin || path[1] == runtimePlugin):
		return dotted([]string{"plugins", criPlugin})
	case !two && path[1] == criPlugin && !slices.Contains(streaming, path[2]):
		return dotted([]string{"plugins", imagesPlugin}) + " and " + dotted([]string{"plugins", runtimePlugin})
	}
	return ""
}

// overridden are warnings: a patch that says otherwise than a field of the document wins.
func (d desired) overridden(r release) []sdk.Warning {
	plain := d
	plain.patches = nil
	own, _ := plain.settings(r)
	all, _ := d.settings(r)
	var warnings []sdk.Warning
	for _, s := range all {
		at := slices.IndexFunc(own, func(o setting) bool { return slices.Equal(o.path, s.path) && o.field != s.field })
		if at >= 0 {
			warnings = append(warnings, sdk.Warning{Field: s.field, Message: fmt.Sprintf("sets %s and so wins over %s", dotted(s.path), own[at].field)})
		}
	}
	return warnings
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

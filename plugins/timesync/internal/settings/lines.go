package settings

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

// Line is a directive that providerConfig adds to the configuration of chronyd or ntpd.
type Line struct {
	Text  string
	Field document.Path
}

// Words returns the line split at its blanks, the name of the directive in lower case, or nil for a comment.
func (l Line) Words() []string { return Words(l.Text) }

// Words returns a line of a configuration split at its blanks, the name of the directive in lower case, or nil for a comment.
func Words(line string) []string {
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsRune("#!;%", rune(words[0][0])) {
		return nil
	}
	words[0] = strings.ToLower(words[0])
	return words
}

// line adds the source that a directive names, with the directive in place of what the other fields render. Directives that
// are no sources stay in Lines, as does a source that the daemon only watches.
func (r *resolver) line(l Line) {
	words := l.Words()
	if len(words) == 0 {
		words = []string{""}
	}
	has := func(option string) bool { return slices.Contains(words, option) }
	name := words[0]
	if has("noselect") {
		name = ""
	}
	switch name {
	case "server", "pool", "peer":
		s := Source{
			Pool: words[0] == "pool", Prefer: has("prefer"), NTS: has("nts"), Field: string(l.Field),
			Line: l.Text, authenticated: has("nts") || has("key"),
		}
		for _, word := range words[1:] {
			if s.Address == "" && word != "-4" && word != "-6" { // which ntpd accepts ahead of the address
				s.Address = word
			}
		}
		canonical := strings.ToLower(s.Address)
		if ip, err := netip.ParseAddr(s.Address); err == nil {
			canonical = ip.String()
		}
		r.once(canonical, l.Field)
		r.result.Sources = append(r.result.Sources, s)
	case "refclock":
		r.result.RefClocks = append(r.result.RefClocks, RefClock{Line: l.Text, Field: string(l.Field)})
	case "sourcedir", "broadcastclient", "multicastclient", "manycastclient":
		r.result.unnamed = true
		fallthrough
	default:
		r.result.Lines = append(r.result.Lines, l)
	}
}

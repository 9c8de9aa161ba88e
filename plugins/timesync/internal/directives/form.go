package directives

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

// network is a network, an address, the beginning of one as 192.168, or a host.
var network = regexp.MustCompile(`^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}(?:/(?:[12]?[0-9]|3[0-2]))?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:/(?:[0-9]{1,2}|1[01][0-9]|12[0-8]))?|[A-Za-z][A-Za-z0-9.-]*)$`)

// fits reports whether a word has a form: TEXT, NUMBER, WHOLE for a whole number, LEAST..MOST for one with bounds, of which the second can be
// absent, ADDRESS, NETWORK, or values with | between.
func fits(form, word string) bool {
	var err error
	switch form {
	case "TEXT":
		return true
	case "NUMBER":
		_, err = strconv.ParseFloat(word, 64)
		return err == nil
	case "ADDRESS":
		_, err = netip.ParseAddr(word)
		return err == nil
	case "NETWORK":
		return network.MatchString(word)
	}
	least, most, bounded := strings.Cut(form, "..")
	if !bounded && form != "WHOLE" {
		return slices.ContainsFunc(strings.Split(form, "|"), func(value string) bool { return strings.EqualFold(value, word) })
	}
	n, err := strconv.ParseInt(word, 10, 64)
	atLeast, noLeast := strconv.ParseInt(least, 10, 64)
	atMost, noMost := strconv.ParseInt(most, 10, 64)
	return err == nil && (noLeast != nil || n >= atLeast) && (noMost != nil || n <= atMost)
}

// takes reports whether a line has the arguments of its directive.
func (d Directive) takes(words []string) bool {
	given := words[1:]
	if i := slices.IndexFunc(given, func(word string) bool { return d.Comments && strings.HasPrefix(word, "#") }); i >= 0 {
		given = given[:i]
	}
	for i, form := range d.Form {
		form, optional := strings.CutSuffix(form, "?")
		switch {
		case form == "...":
			for last := strings.TrimSuffix(d.Form[i-1], "?"); len(given) > 0 && fits(last, given[0]); {
				given = given[1:]
			}
		case len(given) > 0 && fits(form, given[0]) && (form != "TEXT" || !slices.Contains(d.Flags, given[0])):
			given = given[1:]
		case !optional:
			return false
		}
	}
	return d.Form == nil || len(given) == 0 || d.Flags != nil && d.takesOptions(given)
}

// takesOptions reports whether words are flags and options of the directive.
func (d Directive) takesOptions(words []string) bool {
	for i := 0; i < len(words); i++ {
		if slices.Contains(d.Flags, strings.ToLower(words[i])) {
			continue
		}
		form, known := d.option(words[i])
		if i++; !known || i == len(words) || !fits(form, words[i]) {
			return false
		}
	}
	return true
}

// option returns the form of the value of an option.
func (d Directive) option(name string) (form string, known bool) {
	for _, option := range d.Options {
		switch other, form, has := strings.Cut(option, "="); {
		case !strings.EqualFold(other, name):
		case !has:
			return "NUMBER", true
		case form == "":
			return "TEXT", true
		default:
			return form, true
		}
	}
	return "", false
}

// usage is the hint for a line with other arguments.
func (d Directive) usage(words []string) string {
	names := slices.Clone(d.Flags)
	for _, option := range d.Options {
		name, _, _ := strings.Cut(option, "=")
		names = append(names, name)
	}
	for _, word := range words[1:] {
		if near := document.Nearest(strings.ToLower(word), names); near != "" && !slices.Contains(names, strings.ToLower(word)) {
			return "did you mean " + near + "?"
		}
	}
	text := "write it like " + words[0]
	for _, form := range d.Form {
		if other, optional := strings.CutSuffix(form, "?"); optional {
			form = "[" + other + "]"
		}
		text += " " + form
	}
	if d.Flags != nil {
		text += ", and behind it options with their values, or none"
	}
	return text
}

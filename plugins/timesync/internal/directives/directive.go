package directives

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// Rule reports whether a line defeats a document.
type Rule func(words []string, want settings.Settings) bool

// Directive is what a directive of a manual means for a document.
type Directive struct {
	// Source reports that the directive adds or removes sources.
	Source bool
	// Value reports that the daemon uses one line of the directive, the last that it reads. Otherwise the lines add up.
	Value bool
	// Same is the name of another directive that sets the same thing, or of which this one decides whether it counts.
	Same string
	// Part distinguishes the values of a directive that has one for each interface or each family of addresses.
	Part func(words []string) string
	// Opposes matches a line that a setting of the document excludes, in its own lines as in others.
	Opposes Rule
	// Limits matches a line of another author that keeps the daemon from using the sources of the document. A document may
	// have such a line itself.
	Limits Rule
	// Excludes matches a line of the document itself with which the daemon uses none of its sources.
	Excludes Rule
	// Files reports that the directive includes files.
	Files bool
	// Form are the arguments, a word each: see fits for the forms. One with ? behind it can be absent, and ... means more of the last one.
	// It is nil for a directive whose arguments are not looked at, and empty for one without arguments.
	Form []string
	// Otherwise are the arguments of a directive that has two forms.
	Otherwise []string
	// Flags and Options can follow the form in any order: a flag is one word, an option is NAME, which is followed by a number, or NAME=FORM,
	// where no form is any text.
	Flags, Options []string
	// Some reports that at least one of them follows.
	Some bool
	// Gone is what became of a directive without effect, which the daemon still accepts.
	Gone string
	// Comments reports that # begins a comment behind the arguments.
	Comments bool
}

// network is a network, an address, the beginning of one as 192.168, or a host.
var network = lazyregexp.New(`^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}(?:/(?:[12]?[0-9]|3[0-2]))?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:/(?:[0-9]{1,2}|1[01][0-9]|12[0-8]))?|[A-Za-z][A-Za-z0-9.-]*)$`)

// The forms of the name of a host, or its address, and of a user.
var (
	host = lazyregexp.New(`^(?:[A-Za-z0-9_.-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[!-~]+)?)$`)
	user = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*\$?$`)
)

// The forms of words that a daemon takes and does not find, or cuts off: an identifier of four characters, the address of a clock of ntpd, what
// ntpd logs, and an interface.
func patterns() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"REFID":  regexp.MustCompile(`^[!-~]{1,4}$`),
		"CLOCK":  regexp.MustCompile(`^127\.127\.[0-9]{1,2}\.[0-9]{1,3}$`),
		"EVENTS": regexp.MustCompile(`^[=+-]?(?:all|(?:all|clock|peer|sync|sys)(?:info|events|status|statistics|all))$`),
		"IFACE":  regexp.MustCompile(`^[A-Za-z0-9_.:%/@*-]+$`),
	}
}

// fits reports whether a word has a form: TEXT, NUMBER, WHOLE for a whole number, LEAST..MOST for one with bounds, of which the second can be
// absent, ADDRESS, HOST, NETWORK, NAME of a user, KEYS for numbers of keys and a range (1 ... 9) of them, PATH, ADDRESS|PATH, DEVICE, a name of patterns, or values
// with | between.
func fits(form, word string) bool {
	var err error
	if pattern := patterns()[form]; pattern != nil {
		return pattern.MatchString(word)
	}
	switch form {
	case "TEXT":
		return true
	case "HOST":
		return host().MatchString(word)
	case "NAME":
		return user().MatchString(word)
	case "KEYS":
		return strings.Trim(word, "0123456789(.)") == ""
	case "DEVICE": // or a number, or the name of an interface of the network
		return !regexp.MustCompile(`^(?:ptp|pps|rtc|tty)`).MatchString(word)
	case "PATH":
		return strings.HasPrefix(word, "/")
	case "ADDRESS|PATH":
		return fits("ADDRESS", word) || fits("PATH", word)
	case "NUMBER":
		_, err = strconv.ParseFloat(word, 64)
		return err == nil
	case "ADDRESS":
		_, err = netip.ParseAddr(word)
		return err == nil
	case "NETWORK":
		return network().MatchString(word)
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
	return d.takesForm(d.Form, given) || d.Otherwise != nil && d.takesForm(d.Otherwise, given)
}

func (d Directive) takesForm(all, given []string) bool {
	for i, form := range all {
		form, optional := strings.CutSuffix(form, "?")
		switch {
		case form == "...":
			for last := strings.TrimSuffix(all[i-1], "?"); len(given) > 0 && fits(last, given[0]); {
				given = given[1:]
			}
		case len(given) > 0 && fits(form, given[0]) && (form != "TEXT" || !slices.Contains(d.Flags, given[0])):
			given = given[1:]
		case !optional:
			return false
		}
	}
	return all == nil || len(given) == 0 && !d.Some || len(given) > 0 && d.Flags != nil && d.takesOptions(given)
}

// takesOptions reports whether words are flags and options of the directive.
func (d Directive) takesOptions(words []string) bool {
	polls := map[string]float64{"minpoll": -100, "maxpoll": 100}
	for i := 0; i < len(words); i++ {
		if slices.Contains(d.Flags, strings.ToLower(words[i])) {
			continue
		}
		form, known := d.option(words[i])
		if i++; !known || i == len(words) || !fits(form, words[i]) {
			return false
		}
		if name := strings.ToLower(words[i-1]); polls[name] != 0 {
			polls[name] = Number(words[i], polls[name])
		}
	}
	return polls["minpoll"] <= polls["maxpoll"]
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

// Number parses a number. For a text that is not a number it returns otherwise.
func Number(text string, otherwise float64) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return otherwise
	}
	return n
}

package directives

import (
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Manual has every directive of a manual by its name. A directive without any meaning here is harmless.
type Manual map[string]Directive

// Set adds directives that mean the same.
func (m Manual) Set(d Directive, names string) {
	for name := range strings.FieldsSeq(names) {
		m[name] = d
	}
}

// Take says of directives which arguments they take, in the words of Directive.Form. Behind / is another form.
func (m Manual) Take(form, names string) {
	for name := range strings.FieldsSeq(names) {
		d := m[name]
		one, other, _ := strings.Cut(form, " / ")
		d.Form, d.Otherwise = append([]string{}, strings.Fields(one)...), strings.Fields(other)
		if other == "" {
			d.Otherwise = nil
		}
		m[name] = d
	}
}

// TakeOptions says of directives which flags and options can follow their arguments.
func (m Manual) TakeOptions(flags, options, names string) {
	for name := range strings.FieldsSeq(names) {
		d := m[name]
		d.Flags, d.Options = strings.Fields(flags), strings.Fields(options)
		m[name] = d
	}
}

// TakeSome says of directives which options follow their arguments, at least one.
func (m Manual) TakeSome(options, names string) {
	m.TakeOptions("", options, names)
	for name := range strings.FieldsSeq(names) {
		d := m[name]
		d.Some = true
		m[name] = d
	}
}

// value returns what a line sets, empty for a line that adds to others.
func (m Manual) value(words []string) string {
	d := m[words[0]]
	switch {
	case !d.Value:
		return ""
	case d.Part != nil && len(words) > 1:
		return words[0] + " " + d.Part(words)
	case d.Same != "":
		return d.Same
	}
	return words[0]
}

// Defeats returns a function that reports whether a line of another author defeats a document, whose own lines are own. A
// value that the document sets has no other line, because files are read in an order that each distribution chooses.
func (m Manual) Defeats(own string, want settings.Settings) func(words []string) bool {
	set := map[string]bool{}
	for _, words := range Parse([]byte(own)) {
		set[m.value(words)] = true
	}
	delete(set, "")
	return func(words []string) bool {
		d := m[words[0]]
		return d.Source && want.ReplacesSources() || set[m.value(words)] ||
			d.Opposes != nil && d.Opposes(words, want) || d.Limits != nil && d.Limits(words, want)
	}
}

// Refuse returns why lines of providerConfig cannot be what they say beside the other settings of the document, which are
// rendered as fields.
func (m Manual) Refuse(fields string, want settings.Settings) []sdk.Violation {
	set := map[string]string{}
	for _, words := range Parse([]byte(fields)) {
		set[m.value(words)] = "the fields of the document"
	}
	delete(set, "")
	all := m.refuseSources(want)
	for _, l := range want.Lines {
		words := l.Words()
		if len(words) == 0 {
			continue
		}
		d, known := m[words[0]]
		value := m.value(words)
		refuse := func(message, hint string) {
			all = append(all, sdk.Violation{Field: string(l.Field), Message: message, Hint: hint})
		}
		switch other, twice := set[value]; {
		case !known:
			refuse("\""+words[0]+"\" is not a directive of the daemon", "correct the name")
		case d.Files:
			refuse(words[0]+" includes files that the plan does not have", "write their lines as items of providerConfig.directives")
		case !d.takes(words):
			refuse(notTaken(words[0]), d.usage(words))
		case twice:
			refuse(words[0]+" is set by "+other+" as well, and the daemon uses one of the two", "remove one of the two")
		case d.Opposes != nil && d.Opposes(words, want):
			refuse("\""+words[0]+"\" contradicts the other fields of the document", "remove one of the two")
		case d.Excludes != nil && d.Excludes(words, want):
			refuse("with \""+words[0]+"\" and this value the daemon uses none of the sources of the document", "remove it, or change the sources")
		}
		if value != "" {
			set[value] = string(l.Field)
		}
	}
	return all
}

// Warn warns of lines of providerConfig without effect.
func (m Manual) Warn(want settings.Settings) (all []sdk.Warning) {
	for _, l := range want.Lines {
		if words := l.Words(); len(words) > 0 && m[words[0]].Gone != "" {
			all = append(all, sdk.Warning{Field: string(l.Field), Message: words[0] + " has no effect: " + m[words[0]].Gone})
		}
	}
	return all
}

// refuseSources returns which directives of sources, as the document writes them, have other arguments.
func (m Manual) refuseSources(want settings.Settings) (all []sdk.Violation) {
	check := func(line, field string) {
		if words := settings.Words(line); len(words) > 0 && !m[words[0]].takes(words) {
			all = append(all, sdk.Violation{Field: field, Message: notTaken(words[0]), Hint: m[words[0]].usage(words)})
		}
	}
	for _, s := range want.Sources {
		check(s.Line, s.Field)
	}
	for _, c := range want.RefClocks {
		check(c.Line, c.Field)
	}
	return all
}

func notTaken(name string) string {
	return "has not the arguments of " + name + ", so that the daemon does not start, or takes another value"
}

// Below returns a rule for a document with sources: the first number of the line is less than least.
func Below(least float64) Rule {
	return func(words []string, want settings.Settings) bool {
		return want.HasSources() && len(words) > 1 && Number(words[1], least) < least
	}
}

// Exceeds reports whether the first number of a line is more than most.
func Exceeds(words []string, most int) bool {
	return len(words) > 1 && Number(words[1], 0) > float64(most)
}

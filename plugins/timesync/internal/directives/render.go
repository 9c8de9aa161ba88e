package directives

import (
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Header is the first line of a file or block of a document.
const Header = "# Written by machineadm for a Timesync document. Changes are overwritten."

// config is the providerConfig of daemons with directives.
type config struct {
	// Directives are further lines of the configuration.
	Directives []string `json:"directives,omitempty"`
}

// Resolve returns the settings of a document and of the directives that its providerConfig adds, or all of its violations.
func Resolve(doc v1alpha1.Timesync) (settings.Settings, []sdk.Violation) {
	c, violations := sdk.ProviderConfig[config](doc.Spec.ProviderConfig)
	var lines []settings.Line
	for i, line := range c.Directives {
		field := document.Path("spec.providerConfig.directives").Index(i)
		if strings.TrimSpace(line) == "" || strings.ContainsAny(line, "\n\r\x00") {
			violations = append(violations, sdk.Violation{
				Field: string(field), Message: "must be one line", Hint: "write each directive as an item of its own",
			})
			continue
		}
		lines = append(lines, settings.Line{Text: line, Field: field})
	}
	want, more := settings.Resolve(doc, lines...)
	return want, append(more, violations...)
}

// The intervals of chronyd and ntpd when a source has none.
const defaultMinPoll, defaultMaxPoll = 6, 10

// Source returns the directive of a source, in the form that chronyd and ntpd share. Source: chrony.conf(5), ntp.conf(5).
func Source(s settings.Source) string {
	if s.Line != "" {
		return s.Line
	}
	// Both daemons silently change an interval that contradicts the default of the other one.
	if s.MinPoll == nil && s.MaxPoll != nil && *s.MaxPoll < defaultMinPoll {
		s.MinPoll = s.MaxPoll
	}
	if s.MaxPoll == nil && s.MinPoll != nil && *s.MinPoll > defaultMaxPoll {
		s.MaxPoll = s.MinPoll
	}
	words := []string{"server", s.Address}
	if s.Pool {
		words[0] = "pool"
	}
	flag := func(on bool, word string) {
		if on {
			words = append(words, word)
		}
	}
	number := func(value *int, word string) {
		if value != nil {
			words = append(words, word, strconv.Itoa(*value))
		}
	}
	flag(s.Burst(), "iburst")
	flag(s.Prefer, "prefer")
	number(s.MinPoll, "minpoll")
	number(s.MaxPoll, "maxpoll")
	number(s.MaxSources, "maxsources")
	flag(s.NTS, "nts")
	if s.Key != nil {
		number(&s.Key.ID, "key")
	}
	return strings.Join(words, " ")
}

// Seconds is a duration as a decimal number of seconds without exponent.
func Seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

package pluginv1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEvents: whatever events a plugin sends, those that pass are ones that agree with each other: each change is started
// once, is in hand alone, and is changed before a finished without an error.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"", "saca", "sacasbcbf", "saf", "sasb", "ca", "sasa", "sacasa", "saF", "wwpf", "d"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		var events sequence
		started, inHand, warnings := map[string]int{}, "", 0
		for len(script) > 0 {
			var event Event
			event, script = nextEvent(script)
			pass, err := events.take(event)
			if err != nil {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.NotEmpty(t, e.Clause)
				return
			}
			switch e := event.(type) {
			case Started:
				started[e.Change.ID]++
				require.Empty(t, inHand, "two changes are in hand")
				require.Equal(t, 1, started[e.Change.ID])
				require.NotEmpty(t, e.Change.ID)
				inHand = e.Change.ID
			case Changed:
				require.Equal(t, inHand, e.ID)
				inHand = ""
			case Warning:
				if pass {
					warnings++
				}
				require.LessOrEqual(t, warnings, MaxWarnings)
			case Finished:
				require.True(t, inHand == "" || e.Error != nil)
				return
			}
			require.Equal(t, event != nil, pass || isWarning(event))
		}
	})
}

func isWarning(e Event) bool {
	_, is := e.(Warning)
	return is
}

// nextEvent reads one event of a script: a letter, and for some the id of a change.
func nextEvent(script []byte) (Event, []byte) {
	kind, rest := script[0], script[1:]
	id := ""
	if len(rest) > 0 && strings.IndexByte("scd", kind) >= 0 {
		id, rest = string(rest[:1]), rest[1:]
	}
	switch kind {
	case 's':
		return Started{Change: Change{ID: id, Summary: "do " + id}}, rest
	case 'c':
		return Changed{ID: id}, rest
	case 'w':
		return Warning{Message: "w"}, rest
	case 'p':
		return Progress{Message: "p"}, rest
	case 'f':
		return Finished{}, rest
	case 'F':
		return Finished{Error: &Error{Message: "no"}}, rest
	case 'd':
		return Finished{Deferred: []Change{{ID: id, Summary: "x"}}}, rest
	}
	return nil, rest
}

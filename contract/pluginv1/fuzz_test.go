package pluginv1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
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

// FuzzParts: whatever parts a plugin sends, those that pass form an object of at most the requested size that begins with
// begin, and a request that is only to validate gets none.
func FuzzParts(f *testing.F) {
	for _, seed := range []string{"", "b", "bdd", "dbd", "bdbd", "bz", "bn", "bdddddd"} {
		f.Add([]byte(seed), false)
	}
	f.Add([]byte("b"), true)
	f.Fuzz(func(t *testing.T, script []byte, none bool) {
		const most = 10
		parts, size, begun := fetched{most: most, none: none}, 0, false
		for _, kind := range script {
			message := &pb.Chunk{}
			switch kind {
			case 'b':
				message.Part = &pb.Chunk_Begin{Begin: &pb.Begin{}}
			case 'e':
				message.Part = &pb.Chunk_Begin{}
			case 'n':
			default:
				message.Part = &pb.Chunk_Data{Data: make([]byte, kind%4)}
			}
			got, err := parts.take(message)
			if err != nil {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.NotEmpty(t, e.Clause)
				return
			}
			require.False(t, none)
			if got.Begin {
				begun, size = true, 0
				continue
			}
			size += len(got.Data)
			require.True(t, begun)
			require.NotEmpty(t, got.Data)
			require.LessOrEqual(t, size, most)
		}
		require.Equal(t, begun || none, parts.end() == nil)
	})
}

package files

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// named are the directives of a name.
func named(all []node, names ...string) []node {
	return slices.DeleteFunc(slices.Clone(all), func(n node) bool { return !slices.Contains(names, n.Label) })
}

func chrony(t *testing.T, all []node, want v1alpha1.TimesyncSpec) {
	t.Helper()
	sources(t, all, want)
	clocks := named(all, "refclock")
	if len(want.RefClocks) > 0 {
		require.Len(t, clocks, len(want.RefClocks))
	}
	for i, c := range want.RefClocks {
		expected := map[string]string{"driver": strings.ToUpper(c.Driver), "parameter": c.Device}
		if c.Poll != nil {
			expected["poll"] = strconv.Itoa(*c.Poll)
		}
		if c.Prefer {
			expected["prefer"] = ""
		}
		if c.Offset != "" {
			expected["offset"] = seconds(t, c.Offset)
		}
		assert.Equal(t, expected, clocks[i].options())
	}
	if want.MakeStep != nil {
		steps := named(all, "makestep")
		require.Len(t, steps, 1)
		limit := strconv.Itoa(*want.MakeStep.Limit)
		assert.Equal(t, map[string]string{"threshold": seconds(t, want.MakeStep.Threshold), "limit": limit}, steps[0].options())
	}
	if want.RTCSync != nil {
		assert.Equal(t, *want.RTCSync, len(named(all, "rtcsync")) > 0)
	}
	if len(keys(want)) > 0 {
		require.Len(t, named(all, "keyfile"), 1)
		assert.Equal(t, "machineadm.keys", filepath.Base(named(all, "keyfile")[0].Value))
	}
}

func ntp(t *testing.T, all []node, want v1alpha1.TimesyncSpec) {
	t.Helper()
	sources(t, all, want)
	if want.MakeStep != nil {
		tinkers := named(all, "tinker")
		require.NotEmpty(t, tinkers)
		assert.Equal(t, map[string]string{"step": seconds(t, want.MakeStep.Threshold), "panic": "0"}, tinkers[len(tinkers)-1].options())
	}
	if ids := keys(want); len(ids) > 0 {
		var trusted []string
		for _, k := range named(all, "trustedkey") {
			for _, n := range k.Nodes {
				trusted = append(trusted, n.Value)
			}
		}
		assert.Subset(t, trusted, ids)
		assert.NotEmpty(t, named(all, "keys"))
	}
}

// sources compares the servers and pools. An interval that the document does not set may follow from the other one.
func sources(t *testing.T, all []node, want v1alpha1.TimesyncSpec) {
	t.Helper()
	type source struct {
		name, address string
		options       map[string]string
	}
	var expected, got []source
	add := func(name string, s v1alpha1.TimeSource, maxSources *int) {
		o := map[string]string{}
		for option, on := range map[string]bool{"iburst": s.IBurst == nil || *s.IBurst, "prefer": s.Prefer, "nts": s.NTS && want.Provider == "chronyd"} {
			if on {
				o[option] = ""
			}
		}
		for option, value := range map[string]*int{"minpoll": s.MinPoll, "maxpoll": s.MaxPoll, "maxsources": maxSources} {
			if value != nil {
				o[option] = strconv.Itoa(*value)
			}
		}
		if s.Key != nil {
			o["key"] = strconv.Itoa(s.Key.ID)
		}
		expected = append(expected, source{name, s.Address, o})
	}
	for _, s := range want.Servers {
		add("server", s.TimeSource, nil)
	}
	for _, p := range want.Pools {
		add("pool", p.TimeSource, p.MaxSources)
	}
	if len(expected) == 0 {
		return
	}
	for _, n := range named(all, "server", "pool", "peer") {
		o := n.options()
		for _, e := range expected {
			_, minSet := e.options["minpoll"]
			_, maxSet := e.options["maxpoll"]
			if e.address == n.Value && minSet != maxSet {
				maps.DeleteFunc(o, func(option, _ string) bool { return option == "minpoll" && !minSet || option == "maxpoll" && !maxSet })
			}
		}
		got = append(got, source{n.Label, n.Value, o})
	}
	if want.KeepDistributionSources || want.Profile != "" {
		assert.Subset(t, got, expected)
	} else {
		assert.ElementsMatch(t, expected, got)
	}
}

// keys are the numbers of the keys.
func keys(want v1alpha1.TimesyncSpec) []string {
	var ids []string
	for _, s := range want.Servers {
		if s.Key != nil {
			ids = append(ids, strconv.Itoa(s.Key.ID))
		}
	}
	return ids
}

func seconds(t *testing.T, duration string) string {
	t.Helper()
	d, err := time.ParseDuration(duration)
	require.NoError(t, err)
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// timesyncd compares the lists, which an empty assignment resets, and the intervals.
func timesyncd(t *testing.T, all []node, want v1alpha1.TimesyncSpec) {
	t.Helper()
	got := map[string][]string{}
	for _, section := range named(all, "Time") {
		for _, assignment := range section.Nodes {
			if len(assignment.Nodes) == 0 {
				delete(got, assignment.Label)
			}
			for _, value := range assignment.Nodes {
				got[assignment.Label] = append(got[assignment.Label], value.Value)
			}
		}
	}
	expected := map[string][]string{}
	add := func(s v1alpha1.TimeSource, now bool) {
		if !now {
			return
		}
		expected["NTP"] = append(expected["NTP"], s.Address)
		for key, poll := range map[string]*int{"PollIntervalMinSec": s.MinPoll, "PollIntervalMaxSec": s.MaxPoll} {
			if poll != nil {
				expected[key] = []string{strconv.Itoa(1 << *poll)}
			}
		}
	}
	for _, preferred := range []bool{true, false} { // timesyncd tries them in the order of the list
		for _, s := range want.Servers {
			add(s.TimeSource, s.Prefer == preferred)
		}
		for _, p := range want.Pools {
			add(p.TimeSource, p.Prefer == preferred)
		}
	}
	if len(want.Fallback) > 0 {
		expected["FallbackNTP"] = want.Fallback
	}
	if len(want.ProviderConfig) > 0 {
		var own struct{ RootDistanceMaxSec json.Number }
		require.NoError(t, json.Unmarshal(want.ProviderConfig, &own))
		expected["RootDistanceMaxSec"] = []string{own.RootDistanceMaxSec.String()}
	}
	if want.Profile == "" {
		assert.Equal(t, expected, got)
	} else {
		assert.NotEmpty(t, got["NTP"])
	}
}

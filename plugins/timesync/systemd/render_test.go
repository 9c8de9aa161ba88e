package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

func number(n int) *int { return &n }

func server(address string) settings.Source {
	return settings.Source{Address: address, Field: "spec.servers[" + address + "]"}
}

func servers(all ...settings.Source) settings.Settings { return settings.Settings{Sources: all} }

func polled(address string, shortest, longest *int) settings.Source {
	s := server(address)
	s.MinPoll, s.MaxPoll = shortest, longest
	return s
}

// TestRender: the lists are reset before they are filled, and the preferred servers come first.
func TestRender(t *testing.T) {
	t.Parallel()
	preferred := server("b")
	preferred.Prefer = true
	second := server("d")
	second.Prefer = true
	for name, c := range map[string]struct {
		want  settings.Settings
		lines string
	}{
		"nothing":           {settings.Settings{}, ""},
		"one server":        {servers(server("a")), "NTP=\nNTP=a\nFallbackNTP=\n"},
		"preferred servers": {servers(server("a"), preferred, server("c"), second), "NTP=\nNTP=b d a c\nFallbackNTP=\n"},
		"fallback":          {settings.Settings{Fallback: []string{"f", "g"}}, "FallbackNTP=\nFallbackNTP=f g\n"},
		"both": {
			settings.Settings{Sources: []settings.Source{server("a")}, Fallback: []string{"f"}},
			"NTP=\nNTP=a\nFallbackNTP=\nFallbackNTP=f\n",
		},
		"beside others": {
			settings.Settings{Sources: []settings.Source{server("a")}, Fallback: []string{"f"}, KeepDistributionSources: true},
			"NTP=a\nFallbackNTP=f\n",
		},
		"beside other servers": {
			settings.Settings{Sources: []settings.Source{server("a")}, KeepDistributionSources: true}, "NTP=a\n",
		},
		"intervals": {
			servers(polled("a", number(4), number(10))), "NTP=\nNTP=a\nFallbackNTP=\nPollIntervalMinSec=16\nPollIntervalMaxSec=1024\n",
		},
		"longest below the default shortest": {
			servers(polled("a", nil, number(4))), "NTP=\nNTP=a\nFallbackNTP=\nPollIntervalMinSec=16\nPollIntervalMaxSec=16\n",
		},
		"shortest alone": {servers(polled("a", number(4), nil)), "NTP=\nNTP=a\nFallbackNTP=\nPollIntervalMinSec=16\nPollIntervalMaxSec=2048\n"},
		"shortest above the default longest": {
			servers(polled("a", number(12), nil)), "NTP=\nNTP=a\nFallbackNTP=\nPollIntervalMinSec=4096\nPollIntervalMaxSec=4096\n",
		},
		"longest alone": {servers(polled("a", nil, number(5))), "NTP=\nNTP=a\nFallbackNTP=\nPollIntervalMinSec=32\nPollIntervalMaxSec=32\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := render(desired(c.want))
			require.Equal(t, "# Written by machineadm for a Timesync document. Changes are overwritten.\n[Time]\n"+c.lines, text)
			require.Equal(t, desired(c.want), parse([]byte(text)))
		})
	}
}

// TestUnsupported: every field that timesyncd cannot express is refused, all at once.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	all := server("a")
	all.NTS, all.MaxSources, all.Key, all.MinPoll = true, number(2), &settings.Key{}, number(3)
	for name, c := range map[string]struct {
		want   settings.Settings
		fields []string
	}{
		"nothing": {settings.Settings{RTCSync: &yes}, nil},
		"a source": {servers(all), []string{
			"spec.servers[a].nts", "spec.servers[a].key", "spec.servers[a].maxSources", "spec.servers[a].minPoll",
		}},
		"clocks":            {settings.Settings{RefClocks: []settings.RefClock{{Field: "spec.profile"}}}, []string{"spec.profile"}},
		"step":              {settings.Settings{MakeStep: &settings.MakeStep{}}, []string{"spec.makeStep"}},
		"real-time clock":   {settings.Settings{RTCSync: &no}, []string{"spec.rtcSync"}},
		"the same interval": {servers(polled("a", number(4), number(4)), polled("b", number(4), number(4))), nil},
		"other intervals": {
			servers(polled("a", number(4), number(6)), polled("b", number(5), number(6))), []string{"spec.servers[b].minPoll"},
		},
		"an interval alone": {servers(server("a"), polled("b", nil, number(6))), []string{"spec.servers[b].maxPoll"}},
		"too short":         {servers(polled("a", number(4), number(3))), []string{"spec.servers[a].maxPoll"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fields []string
			for _, v := range unsupported(c.want) {
				require.NotEmpty(t, v.Message)
				require.NotEmpty(t, v.Hint)
				fields = append(fields, v.Field)
			}
			require.Equal(t, c.fields, fields)
		})
	}
}

// TestProfiles: the servers of a profile can be expressed, its clocks cannot.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for profile, c := range map[string]struct{ servers, refused []string }{
		"aws":    {[]string{"169.254.169.123"}, nil},
		"gcp":    {[]string{"metadata.google.internal"}, nil},
		"azure":  {nil, []string{"spec.profile"}},
		"vmware": {nil, []string{"spec.profile"}},
	} {
		want, violations := settings.Resolve(v1alpha1.Timesync{Spec: v1alpha1.TimesyncSpec{Profile: profile}})
		require.Empty(t, violations)
		require.Equal(t, c.servers, addresses(want), profile)
		var refused []string
		for _, v := range unsupported(want) {
			refused = append(refused, v.Field)
		}
		require.Equal(t, c.refused, refused, profile)
	}
}

// TestParse reads what other authors write.
func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []assignment
	}{
		"empty":            {"", nil},
		"commented out":    {"[Time]\n#NTP=a\n;NTP=b\n", []assignment{{"#NTP", "a"}, {";NTP", "b"}}},
		"another section":  {"[Match]\nNTP=a\n[Time]\nNTP = b c \n", []assignment{{"NTP", "b c"}}},
		"no section":       {"NTP=a\n", nil},
		"CRLF and a BOM":   {"\ufeff[Time]\r\nNTP=a\r\nFallbackNTP=\r\n", []assignment{{"NTP", "a"}, {"FallbackNTP", ""}}},
		"continued":        {"[Time]\nNTP=a \\\n FallbackNTP=b\n", []assignment{{"NTP", "a   FallbackNTP=b"}}},
		"undocumented key": {"[Time]\nServers=a\n", []assignment{{"NTP", "a"}}},
		"garbage":          {"[Time\x00\xff\n=\n[Time]\n=x\nNTP\n", []assignment{{"", "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, parse([]byte(c.text)))
		})
	}
}

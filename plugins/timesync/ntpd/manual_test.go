package main

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestManual: the table has each directive of ntp.conf(5) of both implementations.
func TestManual(t *testing.T) {
	t.Parallel()
	names, err := os.ReadFile("testdata/directives.txt")
	require.NoError(t, err)
	assert.Equal(t, strings.Fields(string(names)), slices.Sorted(maps.Keys(manual())))
}

// TestArguments: a directive with arguments that the daemon does not take is refused. The daemon itself decides: testenv/timesync.
func TestArguments(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/arguments.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		result, directive, _ := strings.Cut(strings.TrimSpace(line), " ")
		if result == "#" {
			continue
		}
		_, violations := resolve(timesync(t, `{"providerConfig":{"directives":["`+directive+`"]}}`))
		if result == "yes" || result == "reference" {
			assert.Empty(t, violations, directive)
		} else if assert.Len(t, violations, 1, directive) {
			assert.Contains(t, violations[0].Message, "has not the arguments of ", directive)
		}
	}
}

// lines plans a document twice, and returns the lines of the files of all authors. LINE is that of another author.
func lines(t *testing.T, unit string, files map[string]string, line, spec string) (all []string, err error) {
	t.Helper()
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{"/etc/passwd": "ntp:x:12:34::/:/bin/false\nntpsec:x:12:34::/:/bin/false\n"})
	for name, text := range files {
		f.WriteFiles(t, map[string]string{name: strings.ReplaceAll(text, "LINE", line)})
	}
	want, violations := resolve(timesync(t, spec))
	require.Empty(t, violations)
	for range 2 {
		c, err := read(f.Machine, unit, nil)
		require.NoError(t, err)
		specs, err := c.desired(want)
		if err != nil {
			return nil, err
		}
		before := all
		all = nil
		for _, s := range specs {
			if s.Absent {
				continue
			}
			f.WriteFiles(t, map[string]string{s.Path: string(s.Content)})
			if path.Ext(s.Path) == ".conf" {
				all = append(all, strings.Split(strings.TrimSpace(string(s.Content)), "\n")...)
			}
		}
		require.True(t, before == nil || slices.Equal(before, all), "%v\n%v", before, all)
	}
	return all, nil
}

// TestDefeats: in every layout a line that defeats the document is turned off, a harmless one stays, and the plan refuses a line
// that it can do neither to.
func TestDefeats(t *testing.T) {
	t.Parallel()
	const (
		oneServer = `{"servers":[{"address":"ntp1.example.com"}]}`
		isLast    = "which ntpd reads after /etc/ntpsec/ntp.d/zz-machineadm.conf"
	)
	layouts := map[string]struct {
		unit  string
		files map[string]string
	}{
		"NTPsec":            {ntpsecUnit, map[string]string{"/etc/ntpsec/ntp.conf": "LINE\n"}},
		"a drop-in":         {ntpsecUnit, map[string]string{"/etc/ntpsec/ntp.conf": "", "/etc/ntpsec/ntp.d/site.conf": "LINE\n"}},
		"the last drop-in":  {ntpsecUnit, map[string]string{"/etc/ntpsec/ntp.conf": "", "/etc/ntpsec/ntp.d/zzz.conf": "LINE\n"}},
		"reference":         {"ntpd.service", map[string]string{"/etc/ntp.conf": "LINE\n"}},
		"reference, a file": {"ntpd.service", map[string]string{"/etc/ntp.conf": "includefile /etc/site.conf\n", "/etc/site.conf": "LINE\n"}},
	}
	for name, c := range map[string]struct {
		spec    string
		off, on []string
		last    []string          // refused in the last drop-in
		refused map[string]string // the line and the message
	}{
		"sources": {
			spec: oneServer,
			off: []string{
				"server a", "pool a iburst", "peer a", "refclock local", "fudge 127.127.1.0 stratum 10", "broadcastclient", "multicastclient", "manycastclient 224.0.1.1",
				"unpeer ntp1.example.com", "unconfig ntp1.example.com", "disable ntp", "tos minclock 4 minsane 3", "tos floor 3", "tos ceiling 2 minsane 3",
				"tos maxdist 0.1",
			},
			on: []string{
				"disable monitor", "disable kernel", "tos maxdist 16", "tos orphan 5", "tinker panic 0 step 0", "restrict default kod nomodify noquery limited", "restrict 127.0.0.1",
				"driftfile /d", "leapfile /usr/share/x", "interface ignore wildcard", "keys /etc/ntp/keys", "enable ntp", "logfile /l",
			},
			refused: map[string]string{
				"disable ntp monitor":                  `has the line "disable ntp monitor", which defeats the document and says more than that: monitor`,
				"tos floor 3 maxclock 5":               "says more than that: maxclock",
				"restrict default ignore":              "with which ntpd gets no answer",
				"restrict -4 default notrust":          "with which ntpd gets no answer",
				"restrict ntp1.example.com ignore":     "with which ntpd gets no answer",
				"interface ignore all":                 "with which ntpd gets no answer",
				"nic drop all":                         "with which ntpd gets no answer",
				"interface ignore all\nnic listen lo":  "with which ntpd gets no answer",
				"restrict default ignore\nserver a\n#": "with which ntpd gets no answer",
			},
		},
		"the document itself": {
			spec:    `{"servers":[{"address":"192.0.2.1"}],"providerConfig":{"directives":["restrict 127.0.0.1","restrict default ignore"]}}`,
			refused: map[string]string{"logfile /l": "spec.providerConfig.directives[1]"},
			on:      []string{"restrict source nomodify"},
		},
		"sources that are excepted": {
			spec: `{"servers":[{"address":"192.0.2.1"}],"providerConfig":{"directives":["restrict 192.0.2.1","interface listen eth0"]}}`,
			on:   []string{"restrict default ignore", "interface ignore all", "restrict default ignore\nrestrict source"},
		},
		"sources are kept":       {spec: `{"servers":[{"address":"a"}],"keepDistributionSources":true}`, on: []string{"server b", "tos minclock 4 minsane 3"}, off: []string{"disable ntp", "unpeer a", "tos floor 2"}},
		"a server in directives": {spec: `{"providerConfig":{"directives":["server -4 ntp.example.com iburst","server 127.127.28.0"]}}`, off: []string{"server a", "tos minclock 4 minsane 3", "disable ntp"}},
		"multicast":              {spec: `{"providerConfig":{"directives":["multicastclient 224.0.1.1"]}}`, off: []string{"server a", "disable ntp"}},
		"real-time clock": {
			spec: `{"rtcSync":true}`, off: []string{"disable kernel", "tinker step 0", "tinker stepfwd 1"}, on: []string{"server a", "tinker step 0.4", "tinker panic 0", "tinker stepout 300"},
			refused: map[string]string{"tinker step 0 panic 0": "says more than that: panic"},
		},
		"steps": {
			spec: `{"makeStep":{"threshold":"1s","limit":-1}}`, on: []string{"server a", "tinker stepout 300"}, last: []string{"tinker panic 1000", "tinker step 0"},
		},
		"smeared": {spec: `{"servers":[{"address":"216.239.35.0"}]}`, off: []string{"leapfile /usr/share/x"}},
		"a value": {
			spec: `{"providerConfig":{"directives":["driftfile /d","tos maxdist 16","mru maxage 9"]}}`, on: []string{"logfile /l", "tos orphan 5", "mru mindepth 9"},
			last: []string{"driftfile /x", "tos maxdist 3", "mru maxage 3"},
		},
		"what is enabled": {
			spec: `{"providerConfig":{"directives":["enable stats"]}}`, off: []string{"disable stats"}, on: []string{"disable monitor", "enable stats"},
			refused: map[string]string{"disable monitor stats": "says more than that: monitor"},
		},
	} {
		for layout, l := range layouts {
			run := func(line string, check func(t *testing.T, got []string, err error)) {
				t.Run(name+"/"+layout+"/"+line, func(t *testing.T) {
					t.Parallel()
					got, err := lines(t, l.unit, l.files, line, c.spec)
					check(t, got, err)
				})
			}
			for _, line := range slices.Concat(c.off, c.on) {
				run(line, func(t *testing.T, got []string, err error) {
					t.Helper()
					require.NoError(t, err)
					line, _, _ := strings.Cut(line, "\n")
					require.Equal(t, slices.Contains(c.off, line), slices.Contains(got, "#machineadm# "+line), got)
					require.Equal(t, !slices.Contains(c.off, line), slices.Contains(got, line), got)
				})
			}
			for line, want := range c.refused {
				run(line, func(t *testing.T, _ []string, err error) {
					t.Helper()
					require.ErrorContains(t, err, want)
				})
			}
			for _, line := range c.last {
				run(line, func(t *testing.T, got []string, err error) {
					t.Helper()
					if layout == "the last drop-in" {
						require.ErrorContains(t, err, "/etc/ntpsec/ntp.d/zzz.conf has the line \""+line+"\", "+isLast)
						return
					}
					require.NoError(t, err)
					require.Contains(t, got, line)
				})
			}
		}
	}
}

// TestServersOfTheNetwork: whatever gives ntpd other servers while it runs is turned off, or the plan warns with the file.
func TestServersOfTheNetwork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ unit, file, text, warning string }{
		"Debian":         {ntpsecUnit, "/etc/dhcp/dhclient-exit-hooks.d/ntpsec", "[ \"$IGNORE_DHCP\" = yes ] || cp /etc/ntpsec/ntp.conf $dhcp\n", ""},
		"another":        {ntpsecUnit, "/etc/NetworkManager/dispatcher.d/ntp", "ntpq -c \":config server $s\"\n", "remove it, or the lines that add servers"},
		"reference":      {"ntp.service", "/etc/dhcp/dhclient-exit-hooks.d/ntp", "cp /etc/ntp.conf /run/ntp.conf.dhcp\n", "remove it, or the lines that add servers"},
		"Red Hat":        {"ntpd.service", "/etc/dhcp/dhclient.d/ntp.sh", "[ \"$PEERNTP\" = no ] || echo server >>/etc/ntp.conf\n", ""},
		"dhcpcd":         {"ntpd.service", "/usr/lib/dhcpcd/dhcpcd-hooks/50-ntp.conf", ": ${NTP_CONF:=/etc/ntp.conf}\n", "remove it, or the lines that add servers"},
		"another daemon": {"ntpd.service", "/usr/lib/dhcpcd/dhcpcd-hooks/50-openntpd", "echo server >/etc/ntpd.conf\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.WriteFiles(t, map[string]string{"/etc/ntp.conf": "", "/etc/ntpsec/ntp.conf": "", c.file: c.text})
			got, err := read(f.Machine, c.unit, nil)
			require.NoError(t, err)
			want, _ := resolve(timesync(t, `{"servers":[{"address":"a"}]}`))
			_, err = got.desired(want)
			require.NoError(t, err)
			if c.warning == "" {
				require.Empty(t, got.warnings)
				return
			}
			require.Len(t, got.warnings, 1)
			require.Contains(t, got.warnings[0].Message, c.file+" adds servers of the network to "+c.unit)
			require.Contains(t, got.warnings[0].Message, c.warning)
		})
	}
}

// TestDirectivesRefused: a directive that cannot be what it says beside the rest of the document is found by validate.
func TestDirectivesRefused(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{"makeStep":{"threshold":"1s","limit":-1},"providerConfig":{"directives":["tinker step 2"]}}`:                                        "tinker step is set by spec.makeStep as well",
		`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"c4n4ry-8"}}}],"providerConfig":{"directives":["keys /k"]}}`: "keys is set by the fields of the document as well",
		`{"servers":[{"address":"a"}],"providerConfig":{"directives":["disable ntp"]}}`:                                                       "\"disable\" contradicts the other fields",
		`{"providerConfig":{"directives":["disable stats","enable stats"]}}`:                                                                  "\"disable\" contradicts the other fields",
		`{"servers":[{"address":"a"}],"providerConfig":{"directives":["unpeer a"]}}`:                                                          "\"unpeer\" contradicts the other fields",
		`{"servers":[{"address":"time.google.com"}],"providerConfig":{"directives":["leapfile /l"]}}`:                                         "\"leapfile\" contradicts the other fields",
		`{"providerConfig":{"directives":["sever a"]}}`:                                                                                       "\"sever\" is not a directive of the daemon",
		`{"providerConfig":{"directives":["includefile /etc/site.conf"]}}`:                                                                    "includefile includes files",
		`{"servers":[{"address":"time.google.com"}],"providerConfig":{"directives":["server -4 time.cloudflare.com iburst"]}}`:                "inserts leap seconds",
		`{"servers":[{"address":"a"}],"providerConfig":{"directives":["server -6 a"]}}`:                                                       "is the same source as spec.servers[0].address",
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			violations := validate(timesync(t, spec))
			require.Len(t, violations, 1)
			require.Equal(t, "spec.providerConfig.directives[0]", violations[0].Field)
			require.Contains(t, violations[0].Message, want)
		})
	}
	require.Empty(t, validate(timesync(t, `{"servers":[{"address":"dc1.example.com","prefer":true}],"providerConfig":{"directives":["tinker panic 0","tos maxdist 16","disable monitor"]}}`)))
}

// TestOrphan: an ntpd that follows its own clock is not synchronized with the sources of the document.
func TestOrphan(t *testing.T) {
	t.Parallel()
	f := live(t)
	f.Commands.On(question, machine.Result{Stdout: []byte("leap=00, stratum=5, refid=127.0.0.1, offset=0.0\n")})
	for spec, want := range map[string]bool{`{"servers":[{"address":"a"}]}`: false, `{"providerConfig":{"directives":["tos orphan 5"]}}`: true} {
		doc, _ := directives.Resolve(timesync(t, spec))
		s, err := statusOf(doc)(t.Context(), f.Machine, false)
		require.NoError(t, err)
		require.Equal(t, want, s.Synchronized)
	}
}

// TestDistance: a server beyond the limit that is in force after the activation cannot be used.
func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, spec string
		seconds    float64
	}{
		{"tos maxdist 16", `{"servers":[{"address":"a"}]}`, 16},
		{"tos maxdist 0.1", `{"servers":[{"address":"a"}]}`, 1.5},
		{"", `{"servers":[{"address":"a"}]}`, 1.5},
		{"tos maxdist 9", `{"servers":[{"address":"a"}],"providerConfig":{"directives":["tos maxdist 16"]}}`, 16},
	} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/ntp.conf": c.line + "\n"})
		got, err := read(f.Machine, "ntpd.service", nil)
		require.NoError(t, err)
		want, _ := resolve(timesync(t, c.spec))
		_, err = got.desired(want)
		require.NoError(t, err)
		require.InDelta(t, c.seconds, got.distance.Seconds(), 1e-9, c.line)
	}
}

// TestOptions: the configuration file is the one that the options name, of the unit and of its file of variables.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command         []string
		variables, want string
		refused         bool
	}{
		{nil, "", "/etc/ntp.conf", false},
		{nil, "#OPTIONS=\"-c /etc/site.conf\"\nOPTIONS=\"-4\"\n", "/etc/ntp.conf", false},
		{nil, "OPTIONS=\"-4 -c /etc/site.conf\"\n", "/etc/site.conf", false},
		{[]string{"x", "-c", "/etc/other.conf"}, "OPTIONS=-c/etc/site.conf\n", "/etc/site.conf", false},
		{[]string{"x", "-c", "/etc/other.conf", "$OPTIONS"}, "OPTIONS=\n", "/etc/other.conf", false},
		{nil, "OPTIONS=\"-c /run/site.conf\"\n", "", true},
	} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/ntp.conf": "", "/etc/site.conf": "", "/etc/other.conf": "", "/etc/sysconfig/ntpd": c.variables})
		got, err := read(f.Machine, "ntpd.service", c.command)
		if c.refused {
			require.ErrorContains(t, err, "reads /run/site.conf, which a program generates")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got.files[0].Path)
	}
}

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
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestManual: the table has each directive of chrony.conf(5), and those that chronyd only still accepts.
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
		_, violations := resolve(timesync(t, `{"servers":[{"address":"a.example.com","nts":true},{"address":"x.example.com","nts":true}],"providerConfig":{"directives":["`+directive+`"]}}`))
		if result == "yes" {
			assert.Empty(t, violations, directive)
		} else if assert.Len(t, violations, 1, directive) {
			assert.Contains(t, violations[0].Message, "has not the arguments of ", directive)
		}
	}
}

// The layouts of the distributions: drop-ins read first, last, and none. LINE is that of another author.
var layouts = map[string]map[string]string{
	"drop-ins first":      {"/etc/chrony/chrony.conf": "confdir /etc/chrony/conf.d\nLINE\n"},
	"drop-ins last":       {"/etc/chrony/chrony.conf": "LINE\nconfdir /etc/chrony/conf.d\n"},
	"no drop-ins":         {"/etc/chrony.conf": "LINE\n"},
	"another drop-in":     {"/etc/chrony/chrony.conf": "confdir /etc/chrony/conf.d\n", "/etc/chrony/conf.d/site.conf": "LINE\n"},
	"an include":          {"/etc/chrony.conf": "include /etc/chrony.d/*.conf\n", "/etc/chrony.d/zz.conf": "LINE\n"},
	"an include below it": {"/etc/chrony.conf": "include /etc/chrony.d/a.conf\n", "/etc/chrony.d/a.conf": "include /etc/site/b.conf\n", "/etc/site/b.conf": "LINE\n"},
}

// lines plans a document and returns the lines of the files of all authors.
func lines(t *testing.T, files map[string]string, line, spec string) (all []string, warnings []sdk.Warning, err error) {
	t.Helper()
	f := machinetest.New(t)
	texts := map[string]string{}
	for name, text := range files {
		texts[name] = strings.ReplaceAll(text, "LINE", line)
	}
	f.WriteFiles(t, texts)
	f.WriteFiles(t, map[string]string{"/etc/passwd": "_chrony:x:12:34::/:/bin/false\n"})
	want, violations := resolve(timesync(t, spec))
	require.Empty(t, violations)
	for range 2 { // the second time plans what the first one wrote
		c, err := read(f.Machine, nil)
		if err != nil {
			return nil, nil, err
		}
		specs, err := c.desired(want)
		if err != nil {
			return nil, nil, err
		}
		before := all
		all, warnings = nil, c.warnings
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
	return all, warnings, nil
}

const oneServer = `{"servers":[{"address":"ntp1.example.com"}]}`

// TestDefeats: in every layout a line that defeats the document is turned off, and a harmless one stays.
func TestDefeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec     string
		off, on  []string
		document string // a line that the document has then
	}{
		"sources": {
			spec: oneServer,
			off: []string{
				"pool 2.debian.pool.ntp.org iburst", "peer a", "refclock SHM 0", "sourcedir /run/chrony-dhcp", "initstepslew 1 a",
				"minsources 2", "authselectmode require", "maxdistance 0.1", "maxjitter 0.01", "maxstratum 1", "minstratum 3",
				"bindacqaddress 127.0.0.1", "bindacqdevice lo",
			},
			on: []string{
				"minsources 1", "authselectmode prefer", "maxdistance 16", "maxjitter 1", "maxstratum 15", "minstratum 0", "bindacqaddress 192.0.2.1",
				"local stratum 10", "makestep 1 3", "maxchange 1000 1 2", "leapsectz right/UTC", "rtcsync", "nosystemcert", "allow all", "port 0",
			},
		},
		"a pool":         {spec: `{"pools":[{"address":"p.example.com"}]}`, on: []string{"minsources 4"}, off: []string{"minsources 5"}},
		"authentication": {spec: `{"servers":[{"address":"a.example.com","nts":true}]}`, on: []string{"authselectmode require"}},
		"steps": {
			spec: `{"makeStep":{"threshold":"1s","limit":3}}`, off: []string{"makestep 0.1 1", "maxchange 1000 1 2"}, on: []string{"pool a", "minsources 9"},
			document: "makestep 1 3",
		},
		"real-time clock":           {spec: `{"rtcSync":true}`, off: []string{"rtcfile /var/lib/chrony/rtc"}, on: []string{"rtcsync", "rtcdevice /dev/rtc1"}},
		"no real-time clock":        {spec: `{"rtcSync":false}`, off: []string{"rtcsync"}, on: []string{"rtcfile /var/lib/chrony/rtc"}},
		"sources are kept":          {spec: `{"servers":[{"address":"ntp1.example.com"}],"keepDistributionSources":true}`, on: []string{"pool a", "sourcedir /run/x"}, off: []string{"minsources 2"}},
		"smeared":                   {spec: `{"servers":[{"address":"216.239.35.0"}]}`, off: []string{"leapsectz right/UTC", "leapseclist /usr/share/x"}},
		"a server in directives":    {spec: `{"providerConfig":{"directives":["server 10.0.0.5 port 11123 iburst xleave"]}}`, off: []string{"pool a", "sourcedir /run/x", "minsources 2"}, document: "server 10.0.0.5 port 11123 iburst xleave"},
		"a clock in directives":     {spec: `{"providerConfig":{"directives":["refclock PHC /dev/ptp_ena poll 0 delay 0.000010 prefer"]}}`, off: []string{"pool a", "sourcedir /run/x"}, document: "refclock PHC /dev/ptp_ena poll 0 delay 0.000010 prefer"},
		"a directory in directives": {spec: `{"providerConfig":{"directives":["sourcedir /etc/site"]}}`, off: []string{"pool a", "sourcedir /run/x"}, document: "sourcedir /etc/site"},
		"a source that is watched": {
			spec: `{"providerConfig":{"directives":["server 10.0.0.5 noselect"]}}`, on: []string{"pool a", "sourcedir /run/x", "minsources 2"},
			document: "server 10.0.0.5 noselect",
		},
		"a name of the same": {
			spec: `{"providerConfig":{"directives":["leapsectz right/UTC","ntsdumpdir /d","rtconutc","clientloglimit 9"]}}`,
			off:  []string{"leapseclist /usr/share/zoneinfo/leap-seconds.list", "ntscachedir /x", "hwclockfile /etc/adjtime", "noclientlog"},
			on:   []string{"ntsrefresh 9", "rtcdevice /dev/rtc1"}, document: "leapsectz right/UTC",
		},
		"a value": {
			spec: `{"providerConfig":{"directives":["maxupdateskew 5","driftfile /d","hwtimestamp eth0","bindaddress 192.0.2.1","allow 192.0.2.0/24","MaxDistance 1"]}}`,
			off: []string{
				"maxupdateskew 100.0", "driftfile /var/lib/chrony/drift", "hwtimestamp eth0 minpoll 1", "bindaddress 0.0.0.0", "maxdistance 16",
			},
			on:       []string{"hwtimestamp *", "bindaddress ::1", "allow 10.0.0.0/8", "deny 10.0.0.0/8", "pool a", "logdir /var/log/chrony"},
			document: "maxupdateskew 5",
		},
	} {
		for layout, files := range layouts {
			for _, lineOff := range slices.Concat(c.off, c.on) {
				t.Run(name+"/"+layout+"/"+lineOff, func(t *testing.T) {
					t.Parallel()
					got, _, err := lines(t, files, lineOff, c.spec)
					require.NoError(t, err)
					require.Equal(t, slices.Contains(c.off, lineOff), slices.Contains(got, "#machineadm# "+lineOff), got)
					require.Equal(t, slices.Contains(c.on, lineOff), slices.Contains(got, lineOff), got)
					require.True(t, c.document == "" || slices.Contains(got, c.document), got)
				})
			}
		}
	}
}

// TestWinningFile: a file that cannot be edited and wins is named.
func TestWinningFile(t *testing.T) {
	t.Parallel()
	const step = `{"makeStep":{"threshold":"1s","limit":3}}`
	for name, c := range map[string]struct {
		files            map[string]string
		line, spec, want string
	}{
		"later":                {map[string]string{"/etc/chrony.conf": "confdir /etc/chrony.d\ninclude /run/x.conf\n", "/run/x.conf": "LINE\n"}, "makestep 9 9", step, `/run/x.conf has the line "makestep 9 9"`},
		"earlier":              {map[string]string{"/etc/chrony.conf": "include /run/x.conf\nconfdir /etc/chrony.d\n", "/run/x.conf": "LINE\n"}, "makestep 9 9", step, ""},
		"no drop-ins":          {map[string]string{"/etc/chrony.conf": "include /run/x.conf\n", "/run/x.conf": "LINE\n"}, "makestep 9 9", step, ""},
		"of its own directory": {map[string]string{"/etc/chrony.conf": "confdir /etc/chrony.d /usr/share/chrony.d\n", "/usr/share/chrony.d/x.conf": "LINE\n"}, "makestep 9 9", step, `/usr/share/chrony.d/x.conf has the line`},
		"another value":        {map[string]string{"/etc/chrony.conf": "confdir /etc/chrony.d\ninclude /run/x.conf\n", "/run/x.conf": "LINE\n"}, "rtcsync", step, ""},
		"turned off":           {map[string]string{"/etc/chrony.conf": "confdir /etc/chrony.d\ninclude /run/x.conf\n", "/run/x.conf": "LINE\n"}, "pool a", oneServer, ""},
		"no fixed name":        {map[string]string{"/etc/chrony.conf": "include /etc/chrony*/x.conf\n"}, "", step, "whose directory has no fixed name"},
		"clients":              {layouts["drop-ins first"], "deny 192.0.2.0/24", `{"providerConfig":{"directives":["allow 192.0.2.0/24"]}}`, `/etc/chrony/chrony.conf has the line "deny 192.0.2.0/24"`},
		"all clients":          {layouts["drop-ins first"], "cmddeny all", `{"providerConfig":{"directives":["cmdallow 192.0.2.0/24"]}}`, `and the document has "cmdallow 192.0.2.0/24"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := lines(t, c.files, c.line, c.spec)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestServersOfTheNetwork: whatever adds servers while chronyd runs is turned off, or the plan warns with the file.
func TestServersOfTheNetwork(t *testing.T) {
	t.Parallel()
	const main, helper = "/etc/chrony.conf", "/usr/libexec/chrony-helper update-daemon\n"
	for file, c := range map[string]struct{ text, warning string }{
		"/etc/dhcp/dhclient.d/chrony.sh":                                {"[ \"$PEERNTP\" = no ] || " + helper, ""},
		"/etc/dhcp/dhclient-exit-hooks.d/chrony":                        {"echo \"server $s\" >/run/chrony-dhcp/x.sources\nchronyc reload sources\n", ""},
		"/usr/lib/networkd-dispatcher/off.d/chrony":                     {"chronyc onoffline\n", ""},
		"/usr/lib/NetworkManager/dispatcher.d/20-chrony":                {"chrony_helper=" + helper, "mask it: ln -s /dev/null /etc/NetworkManager/dispatcher.d/20-chrony"},
		"/etc/NetworkManager/dispatcher.d/dhcp":                         {"chronyc=/usr/bin/chronyc\n$chronyc add  server $s\n", "remove it, or the lines that add servers"},
		"/etc/networkd-dispatcher/routable.d/20-chrony":                 {"chronyc -m \"add peer $s\"\n", "remove it, or the lines that add servers"},
		"/etc/NetworkManager/dispatcher.d/30-ntp":                       {"subprocess.run([\"chronyc\", \"add\", \"server\", s])\n", "remove it, or the lines that add servers"},
		"/etc/network/if-up.d/ntp":                                      {"echo \"server $s\" >>/etc/chrony/chrony.conf\n", "remove it, or the lines that add servers"},
		"/etc/ppp/ip-up.d/ntp":                                          {"sed -i \"s/^pool.*/pool $s/\" /etc/chrony.conf\n", "remove it, or the lines that add servers"},
		"/etc/network/if-up.d/chrony":                                   {"grep -q ^pool /etc/chrony.conf && chronyc burst 1/1\n", ""},
		"/var/lib/dhclient/chrony.servers.eth0":                         {"192.0.2.7 iburst\n", "that a helper adds to chronyd"},
		"/run/netconfig/chrony.servers":                                 {"192.0.2.7 iburst\n", "that a helper adds to chronyd"},
		"/etc/systemd/system/timers.target.wants/chrony-dnssrv@x.timer": {"", "disable it: systemctl disable --now 'chrony-dnssrv@x.timer'"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := lines(t, map[string]string{main: "", file: c.text}, "", oneServer)
			require.NoError(t, err)
			if c.warning == "" {
				require.Empty(t, warnings)
				return
			}
			require.Len(t, warnings, 1)
			require.Contains(t, warnings[0].Message, file)
			require.Contains(t, warnings[0].Message, c.warning)
			for _, shared := range []string{`{"rtcSync":true}`, `{"servers":[{"address":"a"}],"keepDistributionSources":true}`} {
				_, warnings, err = lines(t, map[string]string{main: "", file: c.text}, "", shared)
				require.NoError(t, err)
				require.Empty(t, warnings)
			}
		})
	}
}

// TestDirectivesRefused: a directive that cannot be what it says beside the rest of the document is found by validate.
func TestDirectivesRefused(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{"makeStep":{"threshold":"1s","limit":3},"providerConfig":{"directives":["makestep 2 2"]}}`:                                                           "[0]: makestep is set by the fields of the document as well",
		`{"providerConfig":{"directives":["maxdistance 2","MaxDistance 3"]}}`:                                                                                  "[1]: maxdistance is set by spec.providerConfig.directives[0] as well",
		`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"c4n4ry-8"}}}],"providerConfig":{"directives":["keyfile /etc/chrony.keys"]}}`: "[0]: keyfile is set by the fields of the document as well",
		`{"rtcSync":true,"providerConfig":{"directives":["rtcfile /r"]}}`:                                                                                      "[0]: \"rtcfile\" contradicts the other fields",
		`{"rtcSync":false,"providerConfig":{"directives":["rtcsync"]}}`:                                                                                        "[0]: \"rtcsync\" contradicts the other fields",
		`{"profile":"gcp","providerConfig":{"directives":["leapsectz right/UTC"]}}`:                                                                            "[0]: \"leapsectz\" contradicts the other fields",
		`{"providerConfig":{"directives":["clientloglimit 9","noclientlog"]}}`:                                                                                 "[1]: noclientlog is set by spec.providerConfig.directives[0] as well",
		`{"servers":[{"address":"a"},{"address":"b"}],"providerConfig":{"directives":["minsources 3"]}}`:                                                       "[0]: with \"minsources\" and this value the daemon uses none of the sources",
		`{"servers":[{"address":"a"}],"providerConfig":{"directives":["authselectmode require"]}}`:                                                             "[0]: with \"authselectmode\" and this value the daemon uses none of the sources",
		`{"servers":[{"address":"a"}],"providerConfig":{"directives":["bindacqaddress 127.0.0.1"]}}`:                                                           "[0]: with \"bindacqaddress\" and this value the daemon uses none of the sources",
		`{"providerConfig":{"directives":["sever a"]}}`:                                                                                                        "[0]: \"sever\" is not a directive of the daemon",
		`{"providerConfig":{"directives":["include /etc/site.conf"]}}`:                                                                                         "[0]: include includes files that the plan does not have",
		`{"servers":[{"address":"192.0.2.1"}],"providerConfig":{"directives":["server 192.0.2.1 port 11123"]}}`:                                                "[0]: is the same source as spec.servers[0].address",
		`{"profile":"aws","providerConfig":{"directives":["refclock PHC /dev/ptp_ena"]}}`:                                                                      "[0]: a clock of the machine inserts leap seconds",
		`{"servers":[{"address":"time.google.com"}],"providerConfig":{"directives":["pool 2.debian.pool.ntp.org"]}}`:                                           "[0]: inserts leap seconds, and spec.servers[0] spreads them",
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			violations := validate(timesync(t, spec))
			require.Len(t, violations, 1)
			require.Contains(t, violations[0].Field+": "+violations[0].Message, "spec.providerConfig.directives"+want)
			require.NotContains(t, violations[0].Message, "c4n4ry")
		})
	}
	for _, spec := range []string{
		`{"servers":[{"address":"a","nts":true},{"address":"b"}],"providerConfig":{"directives":["authselectmode require","minsources 2"]}}`,
		`{"pools":[{"address":"a"}],"providerConfig":{"directives":["minsources 4","bindacqaddress 192.0.2.1"]}}`,
		`{"profile":"azure","makeStep":{"threshold":"1s","limit":-1},"providerConfig":{"directives":["allow 10.0.0.0/8","allow 192.0.2.0/24","maxdistance 0.5","# a comment"]}}`,
		`{"rtcSync":true,"providerConfig":{"directives":["rtcsync","hwtimestamp eth0","hwtimestamp eth1","bindcmdaddress ::1","bindcmdaddress 127.0.0.1"]}}`,
	} {
		require.Empty(t, validate(timesync(t, spec)))
	}
}

// TestLocalReference: a chronyd that serves its own clock is not synchronized with the sources of the document.
func TestLocalReference(t *testing.T) {
	t.Parallel()
	f := live(t)
	f.Commands.On("chronyc -n -c tracking", machine.Result{
		Stdout: []byte("7F7F0101,127.127.1.1,10,1795366800.5,0.0,0.0,0.0,-1.5,0.0,0.2,0.0,0.0,0.0,Normal\n"),
	})
	for spec, want := range map[string]bool{oneServer: false, `{"providerConfig":{"directives":["local stratum 8"]}}`: true} {
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
		{"maxdistance 16", oneServer, 16},
		{"maxdistance 0.1", oneServer, 3},
		{"", oneServer, 3},
		{"maxdistance 16", `{"servers":[{"address":"a"}],"providerConfig":{"directives":["maxdistance 0.5"]}}`, 0.5},
	} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/chrony.conf": c.line + "\n"})
		got, err := read(f.Machine, nil)
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
		{nil, "", "/etc/chrony.conf", false},
		{nil, "#OPTIONS=\"-f /etc/site.conf\"\nOPTIONS=\"-4\"\n", "/etc/chrony.conf", false},
		{nil, "OPTIONS=\"-4 -f /etc/site.conf\"\n", "/etc/site.conf", false},
		{[]string{"x", "-f", "/etc/other.conf"}, "OPTIONS=-f/etc/site.conf\n", "/etc/site.conf", false},
		{[]string{"x", "-f", "/etc/other.conf", "$OPTIONS"}, "OPTIONS=\n", "/etc/other.conf", false},
		{nil, "OPTIONS=\"-f /run/site.conf\"\n", "", true},
	} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/chrony.conf": "", "/etc/site.conf": "", "/etc/other.conf": "", "/etc/sysconfig/chronyd": c.variables})
		got, err := read(f.Machine, c.command)
		if c.refused {
			require.ErrorContains(t, err, "reads /run/site.conf, which a program generates")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got.files[0].path)
	}
}

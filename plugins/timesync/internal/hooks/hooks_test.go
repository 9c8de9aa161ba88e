package hooks_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/timesync/internal/hooks"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestTurnOff: a script that reads PEERNTP is turned off, and of any other the plan warns.
func TestTurnOff(t *testing.T) {
	t.Parallel()
	const (
		adds  = "#!/bin/sh\nchronyc add server \"$DHCP4_NTP_SERVERS\"\n"
		reads = "[ \"$PEERNTP\" = no ] || chronyc add server \"$new_ntp_servers\"\n"
		text  = " adds servers of the network to chronyd while it runs, beside the document's; "
		nm    = "NetworkManager/dispatcher.d/20-chrony"
	)
	for name, c := range map[string]struct {
		files    map[string]string
		shared   bool // with the document's
		want     string
		warnings []string
	}{
		"none":     {files: map[string]string{"/etc/" + nm: "#!/bin/sh\n# chronyc add server\nchronyc onoffline\n"}},
		"dhclient": {files: map[string]string{"/etc/dhcp/dhclient.d/chrony.sh": reads, "/etc/sysconfig/network": "A=1\n"}, want: "A=1\n# BEGIN machineadm\nPEERNTP=no\n# END machineadm\n"},
		"two":      {files: map[string]string{"/etc/dhcp/dhclient.d/chrony.sh": reads, "/usr/lib/" + nm: reads, "/etc/sysconfig/network": "PEERNTP=yes\n"}, want: "#machineadm# PEERNTP=yes\n# BEGIN machineadm\nPEERNTP=no\n# END machineadm\n"},
		"shared":   {files: map[string]string{"/etc/dhcp/dhclient.d/chrony.sh": reads, "/etc/" + nm: adds, "/etc/sysconfig/network": "#machineadm# PEERNTP=yes\n# BEGIN machineadm\nPEERNTP=no\n# END machineadm\n"}, shared: true, want: "PEERNTP=yes\n"},
		"an interface": {
			files: map[string]string{
				"/etc/dhcp/dhclient.d/chrony.sh": reads, "/etc/sysconfig/network-scripts/ifcfg-eth0": "DEVICE=eth0\nPEERNTP=yes\n",
				"/etc/sysconfig/network-scripts/ifcfg-eth1": "PEERNTP=\"no\"\n", "/etc/sysconfig/network-scripts/ifcfg-eth2": "#PEERNTP=yes\n",
			},
			want:     "# BEGIN machineadm\nPEERNTP=no\n# END machineadm\n",
			warnings: []string{"/etc/sysconfig/network-scripts/ifcfg-eth0 lets /etc/dhcp/dhclient.d/chrony.sh add servers of the network to chronyd, beside the document's; remove the line PEERNTP"},
		},
		"NetworkManager": {files: map[string]string{"/usr/lib/" + nm: adds}, warnings: []string{"/usr/lib/" + nm + text + "mask it: ln -s /dev/null /etc/" + nm}},
		"replaced":       {files: map[string]string{"/usr/lib/" + nm: adds, "/etc/" + nm: "#!/bin/sh\n"}},
		"masked":         {files: map[string]string{"/usr/lib/" + nm: adds, "/etc/" + nm: "-> empty", "/etc/NetworkManager/dispatcher.d/empty": ""}},
		"of a directory": {files: map[string]string{"/etc/NetworkManager/dispatcher.d/no-wait.d/x": adds}, warnings: []string{"/etc/NetworkManager/dispatcher.d/no-wait.d/x" + text + "remove it, or the lines that add servers"}},
		"networkd": {
			files:    map[string]string{"/etc/networkd-dispatcher/routable.d/20-chrony": "/usr/lib/chrony/chrony-helper update-daemon\n"},
			warnings: []string{"/etc/networkd-dispatcher/routable.d/20-chrony" + text + "remove it, or the lines that add servers"},
		},
		"dhcpcd": {
			files:    map[string]string{"/usr/lib/dhcpcd/dhcpcd-hooks/62-chrony.conf": "/usr/libexec/chrony/chrony-helper update-daemon\n"},
			warnings: []string{"/usr/lib/dhcpcd/dhcpcd-hooks/62-chrony.conf" + text + "remove it, or the lines that add servers"},
		},
		"an older dhclient": {
			files:    map[string]string{"/etc/dhcp/dhclient-exit-hooks.d/chrony": "/usr/lib/chrony/chrony-helper update-daemon\n"},
			warnings: []string{"/etc/dhcp/dhclient-exit-hooks.d/chrony" + text + "remove it, or the lines that add servers"},
		},
		"wicked": {files: map[string]string{"/etc/netconfig.d/ntp-runtime": "/usr/lib/chrony/helper update-daemon\n"}, warnings: []string{"/etc/netconfig.d/ntp-runtime" + text + "remove it, or the lines that add servers"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.WriteFiles(t, c.files)
			scripts, err := hooks.Find(f.Machine, regexp.MustCompile(`chrony[-/]helper|chronyc add server`))
			require.NoError(t, err)
			specs, warnings, err := hooks.TurnOff(f.Machine, scripts, "chronyd", !c.shared)
			require.NoError(t, err)
			var messages []string
			for _, w := range warnings {
				messages = append(messages, w.Message)
			}
			require.Equal(t, c.warnings, messages)
			if c.want == "" {
				require.Empty(t, specs)
				return
			}
			require.Len(t, specs, 1)
			require.Equal(t, "/etc/sysconfig/network", specs[0].Path)
			require.Equal(t, c.want, string(specs[0].Content))
		})
	}
}

package promise_test

import "slices"

// distribution is what the packages of an operating system put where documents of machineadm look, without what no plugin reads.
type distribution struct {
	name  string
	files map[string]string
	links map[string]string
	// units are those that the packages enable.
	enabled []string
}

const (
	chronyUnit     = "[Unit]\nConflicts=ntpsec.service\n[Service]\nExecStart=/usr/sbin/chronyd $DAEMON_OPTS\n[Install]\nAlias=chronyd.service\nWantedBy=multi-user.target\n"
	chronydUnit    = "[Service]\nExecStart=/usr/sbin/chronyd $OPTIONS\n[Install]\nWantedBy=multi-user.target\n"
	ntpsecUnit     = "[Service]\nExecStart=/usr/libexec/ntpsec/ntp-systemd-wrapper\n[Install]\nAlias=ntp.service\nAlias=ntpd.service\nWantedBy=multi-user.target\n"
	timesyncdUnit  = "[Unit]\nConflicts=chronyd.service ntpd.service\n[Service]\nExecStart=!!/usr/lib/systemd/systemd-timesyncd\n[Install]\nWantedBy=sysinit.target\nAlias=dbus-org.freedesktop.timesync1.service\n"
	containerdUnit = "[Service]\nExecStartPre=-/sbin/modprobe overlay\nExecStart=/usr/bin/containerd\nDelegate=yes\n[Install]\nWantedBy=multi-user.target\n"
	kubeletUnit    = "[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n"
	sssdUnit       = "[Service]\nEnvironmentFile=-/etc/default/sssd\nExecStart=/usr/sbin/sssd -i ${DEBUG_LOGGER}\n[Install]\nWantedBy=multi-user.target\n"
	debianKrb5     = "[libdefaults]\n\tdefault_realm = EXAMPLE.ORG\n\tkdc_timesync = 1\n[realms]\n\tEXAMPLE.ORG = {\n\t\tkdc = kerberos.example.org\n\t}\n"
	rhelKrb5       = "includedir /etc/krb5.conf.d/\n[logging]\n default = FILE:/var/log/krb5libs.log\n[libdefaults]\n dns_lookup_realm = false\n"
	passwd         = "root:x:0:0:root:/root:/bin/bash\n_chrony:x:103:103::/var/lib/chrony:/usr/sbin/nologin\nchrony:x:104:104::/var/lib/chrony:/sbin/nologin\nntp:x:38:38::/var/lib/ntp:/sbin/nologin\nsssd:x:105:105::/:/sbin/nologin\n"
	group          = "root:x:0:\n_chrony:x:103:\nchrony:x:104:\nntp:x:38:\nsssd:x:105:\n"
	debianFstab    = "UUID=1 / ext4 errors=remount-ro 0 1\n/dev/sda2 none swap sw 0 0\n# /swap.img none swap sw 0 0\n"
)

// runs reports whether a time daemon is installed, by the name of its provider.
func (d distribution) runs(provider string) bool {
	units := map[string][]string{"chronyd": {"chrony", "chronyd"}, "ntpd": {"ntpsec"}, "systemd": {"systemd-timesyncd"}}
	return slices.ContainsFunc(units[provider], func(name string) bool { return d.files["usr/lib/systemd/system/"+name+".service"] != "" })
}

func distributions() []distribution {
	return []distribution{
		{
			name: "debian 12",
			files: map[string]string{
				"etc/os-release":                                           "ID=debian\nVERSION_ID=\"12\"\n",
				"etc/passwd":                                               passwd,
				"etc/group":                                                group,
				"etc/fstab":                                                debianFstab,
				"etc/sysctl.conf":                                          "#net.ipv4.ip_forward=1\n",
				"etc/sysctl.d/README.sysctl":                               "see sysctl.d(5)\n",
				"usr/lib/sysctl.d/50-default.conf":                         "net.ipv4.conf.default.rp_filter = 2\nnet.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n",
				"etc/chrony/chrony.conf":                                   "confdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\nsourcedir /run/chrony-dhcp\nsourcedir /etc/chrony/sources.d\nkeyfile /etc/chrony/chrony.keys\ndriftfile /var/lib/chrony/chrony.drift\nmaxupdateskew 100.0\nrtcsync\nmakestep 1 3\nleapsectz right/UTC\n",
				"etc/chrony/chrony.keys":                                   "# keys\n",
				"etc/chrony/conf.d/README":                                 "files that end in .conf\n",
				"etc/default/chrony":                                       "DAEMON_OPTS=\"-F 1\"\n",
				"etc/ntpsec/ntp.conf":                                      "driftfile /var/lib/ntpsec/ntp.drift\nleapfile /usr/share/zoneinfo/leap-seconds.list\ntos maxclock 11\ntos minclock 4 minsane 3\npool 0.debian.pool.ntp.org iburst\npool 1.debian.pool.ntp.org iburst\nrestrict default kod nomodify noquery limited\nrestrict 127.0.0.1\n",
				"etc/default/ntpsec":                                       "NTPD_OPTS=\"-g -N\"\nIGNORE_DHCP=\"\"\nNTPSEC_CERTBOT_CERT_NAME=\"\"\n",
				"etc/systemd/timesyncd.conf":                               "[Time]\n#NTP=\n#FallbackNTP=0.debian.pool.ntp.org 1.debian.pool.ntp.org\n",
				"etc/containerd/config.toml":                               "version = 2\n\n[plugins]\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    [plugins.\"io.containerd.grpc.v1.cri\".cni]\n      bin_dir = \"/usr/lib/cni\"\n      conf_dir = \"/etc/cni/net.d\"\n  [plugins.\"io.containerd.internal.v1.opt\"]\n    path = \"/var/lib/containerd\"\n",
				"var/lib/dpkg/status":                                      "Package: containerd\nStatus: install ok installed\nVersion: 1.6.20~ds1-1+deb12u1\n\nPackage: chrony\nStatus: install ok installed\nVersion: 4.3-2+deb12u1\n\nPackage: ntpsec\nStatus: install ok installed\nVersion: 1.2.2+dfsg1-1+deb12u1\n",
				"etc/krb5.conf":                                            debianKrb5,
				"usr/lib/systemd/system/chrony.service":                    chronyUnit,
				"usr/lib/systemd/system/ntpsec.service":                    ntpsecUnit,
				"usr/lib/systemd/system/systemd-timesyncd.service":         timesyncdUnit,
				"usr/lib/systemd/system/containerd.service":                containerdUnit,
				"usr/lib/systemd/system/kubelet.service":                   kubeletUnit,
				"usr/lib/systemd/system/sssd.service":                      sssdUnit,
				"usr/lib/systemd/system/zramswap.service":                  "[Service]\nExecStart=/usr/sbin/zramswap start\n[Install]\nWantedBy=multi-user.target\n",
				"usr/sbin/chronyd":                                         "ELF",
				"etc/dhcp/dhclient-exit-hooks.d/chrony":                    "if [ \"$PEERNTP\" != no ]; then chronyc add server $s; fi\n",
				"etc/dhcp/dhclient-exit-hooks.d/timesyncd":                 "NTP=$new_ntp_servers > /run/systemd/timesyncd.conf.d/01-dhclient.conf\n",
				"usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nEnvironmentFile=-/etc/default/kubelet\n",
			},
			enabled: []string{"multi-user.target.wants/containerd.service", "multi-user.target.wants/kubelet.service"},
		},
		{
			name: "ubuntu 24.04",
			files: map[string]string{
				"etc/os-release":                                   "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n",
				"etc/passwd":                                       passwd,
				"etc/group":                                        group,
				"etc/fstab":                                        "LABEL=root / ext4 defaults 0 1\n/swap.img\tnone\tswap\tsw\t0\t0\n",
				"etc/sysctl.d/10-network-security.conf":            "net.ipv4.conf.default.rp_filter=2\nnet.ipv4.conf.all.rp_filter=2\n",
				"etc/sysctl.d/99-cloudimg-ipv6.conf":               "net.ipv6.conf.all.use_tempaddr = 0\n",
				"etc/chrony/chrony.conf":                           "confdir /etc/chrony/conf.d\npool ntp.ubuntu.com iburst maxsources 4\npool 0.ubuntu.pool.ntp.org iburst maxsources 1\nsourcedir /run/chrony-dhcp\nsourcedir /etc/chrony/sources.d\nkeyfile /etc/chrony/chrony.keys\nrtcsync\nmakestep 1 3\n",
				"etc/systemd/timesyncd.conf":                       "[Time]\n#NTP=\n",
				"usr/lib/systemd/system/chrony.service":            chronyUnit,
				"usr/lib/systemd/system/systemd-timesyncd.service": timesyncdUnit,
				"usr/lib/systemd/system/containerd.service":        containerdUnit,
				"usr/lib/systemd/system/sssd.service":              sssdUnit,
				"var/lib/dpkg/status":                              "Package: containerd.io\nStatus: install ok installed\nVersion: 1.7.27-1\n\nPackage: chrony\nStatus: install ok installed\nVersion: 4.5-1ubuntu4.2\n",
				"etc/containerd/config.toml":                       "#   Copyright 2018-2022 Docker Inc.\n\ndisabled_plugins = [\"cri\"]\n\n#root = \"/var/lib/containerd\"\n",
				"etc/waagent.conf":                                 "Provisioning.Agent=auto\nResourceDisk.Format=n\nResourceDisk.EnableSwap=y\n",
				"usr/lib/networkd-dispatcher/routable.d/chrony":    "chronyc online\n",
			},
			links:   map[string]string{"etc/sysctl.d/99-sysctl.conf": "../sysctl.conf", "bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib"},
			enabled: []string{"multi-user.target.wants/containerd.service", "sysinit.target.wants/systemd-timesyncd.service"},
		},
		{
			name: "debian 13",
			files: map[string]string{
				"etc/os-release":                                   "ID=debian\nVERSION_ID=\"13\"\n",
				"etc/passwd":                                       passwd,
				"etc/group":                                        group,
				"usr/lib/sysctl.d/50-default.conf":                 "kernel.core_uses_pid = 1\nnet.ipv4.conf.*.rp_filter = 2\n",
				"usr/lib/sysctl.d/55-map-count.conf":               "vm.max_map_count=1048576\n",
				"etc/systemd/timesyncd.conf":                       "[Time]\n#NTP=\n",
				"etc/systemd/timesyncd.conf.d/50-site.conf":        "[Time]\nRootDistanceMaxSec=10\n",
				"usr/lib/systemd/system/systemd-timesyncd.service": timesyncdUnit,
				"usr/lib/systemd/system/containerd.service":        containerdUnit,
				"etc/containerd/config.toml":                       "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n  runtime_type = 'io.containerd.runc.v2'\n\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]\n  BinaryName = '/usr/bin/nvidia-container-runtime'\n",
				"var/lib/dpkg/status":                              "Package: containerd\nStatus: install ok installed\nVersion: 2.1.4~ds1-1\n",
				"etc/krb5.conf":                                    debianKrb5,
			},
			enabled: []string{"multi-user.target.wants/containerd.service", "sysinit.target.wants/systemd-timesyncd.service"},
		},
		{
			name: "rhel 9",
			files: map[string]string{
				"etc/os-release":                                 "ID=\"rhel\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"9.4\"\n",
				"etc/passwd":                                     passwd,
				"etc/group":                                      group,
				"etc/sysctl.conf":                                "# sysctl settings are defined through files in\n",
				"usr/lib/sysctl.d/50-redhat.conf":                "net.ipv4.conf.default.rp_filter = 1\nkernel.kptr_restrict = 1\n",
				"etc/chrony.conf":                                "pool 2.rhel.pool.ntp.org iburst\nsourcedir /run/chrony-dhcp\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nkeyfile /etc/chrony.keys\nntsdumpdir /var/lib/chrony\nleapsectz right/UTC\nlogdir /var/log/chrony\n",
				"etc/sysconfig/chronyd":                          "# Command-line options for chronyd\nOPTIONS=\"-F 2\"\n",
				"etc/sysconfig/network":                          "",
				"usr/lib/systemd/system/chronyd.service":         "[Service]\nEnvironmentFile=-/etc/sysconfig/chronyd\nExecStart=/usr/sbin/chronyd $OPTIONS\n[Install]\nWantedBy=multi-user.target\n",
				"usr/lib/systemd/system/containerd.service":      containerdUnit,
				"usr/lib/systemd/system/sssd.service":            sssdUnit,
				"etc/containerd/config.toml":                     "version = 2\nroot = \"/data/containerd\"\n",
				"etc/krb5.conf":                                  rhelKrb5,
				"etc/krb5.conf.d/crypto-policies":                "[libdefaults]\npermitted_enctypes = aes256-cts-hmac-sha384-192\n",
				"etc/NetworkManager/dispatcher.d/20-chrony-dhcp": "chronyc reload sources\n",
			},
			links:   map[string]string{"etc/sysctl.d/99-sysctl.conf": "../sysctl.conf"},
			enabled: []string{"multi-user.target.wants/chronyd.service"},
		},
		{
			name: "opensuse",
			files: map[string]string{
				"etc/os-release":                            "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"\n",
				"etc/passwd":                                passwd,
				"etc/group":                                 group,
				"etc/sysctl.conf":                           "",
				"etc/sysctl.d/70-yast.conf":                 "net.ipv4.ip_forward = 0\nnet.ipv6.conf.all.forwarding = 0\n",
				"etc/chrony.conf":                           "driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nkeyfile /etc/chrony.keys\nlogdir /var/log/chrony\ninclude /etc/chrony.d/*.conf\n",
				"etc/chrony.d/pool.conf":                    "pool 2.opensuse.pool.ntp.org iburst\n",
				"etc/sysconfig/network/config":              "NETCONFIG_NTP_POLICY=\"auto\"\n",
				"usr/lib/systemd/system/chronyd.service":    chronydUnit,
				"usr/lib/systemd/system/containerd.service": "[Service]\nExecStart=/usr/sbin/containerd --config /etc/containerd/config.toml\n[Install]\nWantedBy=multi-user.target\n",
				"etc/containerd/config.toml":                "version = 2\n",
				"etc/krb5.conf":                             "[libdefaults]\n    dns_canonicalize_hostname = false\nincludedir /etc/krb5.conf.d\n",
			},
			enabled: []string{"multi-user.target.wants/chronyd.service"},
		},
		{
			name: "amazon linux 2023",
			files: map[string]string{
				"etc/os-release":                            "ID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n",
				"etc/chrony.conf":                           "confdir /etc/chrony.d\nsourcedir /run/chrony.d\nsourcedir /etc/chrony.d\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nkeyfile /etc/chrony.keys\nleapsectz right/UTC\n",
				"etc/chrony.d/link-local.sources":           "server 169.254.169.123 prefer iburst minpoll 4 maxpoll 4\n",
				"etc/chrony.d/amazon-pool.sources":          "pool 2.amazon.pool.ntp.org iburst\n",
				"usr/lib/systemd/system/chronyd.service":    chronydUnit,
				"usr/lib/systemd/system/containerd.service": containerdUnit,
				"etc/containerd/config.toml":                "version = 2\nimports = [\"/etc/eks/*.toml\"]\n",
			},
			links:   map[string]string{"run/chrony.d/x.sources": "/etc/chrony.d/link-local.sources"},
			enabled: []string{"multi-user.target.wants/chronyd.service", "multi-user.target.wants/containerd.service"},
		},
		{
			name: "alpine",
			files: map[string]string{
				"etc/os-release":              "ID=alpine\nVERSION_ID=3.21.0\n",
				"etc/sysctl.conf":             "# content of this file will override /etc/sysctl.d/*\n",
				"lib/sysctl.d/00-alpine.conf": "net.ipv4.tcp_syncookies = 1\n",
				"etc/chrony/chrony.conf":      "pool pool.ntp.org iburst\ninitstepslew 10 pool.ntp.org\ndriftfile /var/lib/chrony/chrony.drift\nrtcsync\ncmdport 0\n",
				"etc/init.d/chronyd":          "#!/sbin/openrc-run\ncommand=/usr/sbin/chronyd\n",
				"etc/containerd/config.toml":  "version = 3\n",
			},
		},
		{name: "empty", files: map[string]string{"etc/os-release": "ID=debian\nVERSION_ID=\"12\"\n"}},
	}
}

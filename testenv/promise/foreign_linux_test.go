package promise_test

import "math/rand/v2"

// foreign are files that an administrator, a package or another tool leaves, and texts that such a file can have.
type foreign struct{ paths, texts []string }

// strange is one of them.
func strange(r *rand.Rand) (path, text string) {
	all := foreignFiles()
	f := all[r.IntN(len(all))]
	return pick(r, f.paths...), pick(r, f.texts...)
}

func foreignFiles() []foreign {
	return []foreign{
		{
			paths: []string{"etc/sysctl.d/10-site.conf", "etc/sysctl.d/zz-site.conf", "etc/sysctl.conf", "etc/sysctl.d/99-machineadm-a.conf", "etc/sysctl.d/99-machineadm-c.conf", "usr/lib/sysctl.d/zz-site.conf", "run/sysctl.d/zz-site.conf", "etc/ufw/sysctl.conf"},
			texts: []string{
				"kernel.panic = 1\n",
				"kernel.panic=10\nvm.swappiness=0",
				"-net.ipv4.ip_forward\n",
				"net/ipv4/ip_forward = 0\n",
				"net.ipv4.conf.*.rp_filter = 2\n",
				"; no\n#no\n\n",
				"vm.swappiness\n",
				"kernel.panic = 1\nkernel.panic = 10\n",
			},
		},
		{
			paths: []string{"etc/chrony/conf.d/site.conf", "etc/chrony/conf.d/machineadm.conf", "etc/chrony.d/site.conf", "etc/chrony/conf.d/zz.conf", "etc/chrony/sources.d/site.sources"},
			texts: []string{
				"server 192.0.2.9\n",
				"makestep 0.1 -1\n",
				"minsources 3\nmaxdistance 0.1\n",
				"cmddeny all\nlogdir /var/log\n",
				"local stratum 10\n",
				"refclock PHC /dev/ptp0 poll 0\n",
				"include /etc/chrony/more/*.conf\n",
				"! comment\n% comment\nserver ntp9.example.com iburst # x\n",
				"confdir /etc/chrony/conf.d\n",
			},
		},
		{
			paths: []string{"etc/ntpsec/ntp.d/zzz.conf", "etc/ntpsec/ntp.d/zz-machineadm.conf", "etc/ntp.conf", "etc/ntpsec/ntp.conf"},
			texts: []string{
				"server ntp9.example.com\n",
				"disable ntp\ntos floor 2\n",
				"restrict 192.0.2.0/24\n",
				"tos minsane 3\ntinker panic 0\n",
				"includefile /etc/ntp/more.conf\n",
			},
		},
		{
			paths: []string{"etc/systemd/timesyncd.conf.d/zzz.conf", "etc/systemd/timesyncd.conf.d/zz-machineadm.conf", "run/systemd/timesyncd.conf.d/01-dhclient.conf", "etc/systemd/timesyncd.conf"},
			texts: []string{
				"[Time]\nNTP=ntp9.example.com\n",
				"[Time]\nNTP=\nFallbackNTP=\n",
				"[Time]\nFallbackNTP=a b c\nRootDistanceMaxSec=0.1\n",
				"NTP=a\n",
				"[Time]\nNTP=a \\\n b\n",
			},
		},
		{
			paths: []string{"etc/containerd/config.toml", "etc/containerd/conf.d/zzz.toml", "etc/containerd/conf.d/zz-machineadm.toml", "etc/eks/site.toml", "etc/containerd/conf.d/10-nvidia.toml"},
			texts: []string{
				"not toml",
				"version = 2\n",
				"version = 3\n",
				"version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"x/pause:3.9\"\n",
				"version = 3\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\nsandbox = 'x/pause:3.9'\n",
				"version = 3\nimports = ['/etc/containerd/conf.d/*.toml', '/etc/eks/*.toml']\n",
				"version = 2\nimports = [\"conf.d/*.toml\"]\n",
				"disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\nversion = 2\n",
				"[plugins.cri]\nsystemd_cgroup = true\n",
				"version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"r.example.com\"]\nendpoint = [\"https://m.example.com\"]\n",
				"version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = false\n",
			},
		},
		{
			paths: []string{"etc/krb5.conf", "etc/krb5.conf.d/site.conf", "etc/krb5.conf.d/machineadm.conf"},
			texts: []string{
				"",
				"x\n",
				debianKrb5,
				rhelKrb5,
				"[libdefaults]\nincludedir /etc/krb5.conf.d/\n",
				"include /etc/krb5.site\n",
				"module /x:y\n[libdefaults]\n default_realm = A.B\n",
			},
		},
		{
			paths: []string{"etc/sssd/sssd.conf", "etc/sssd/conf.d/site.conf", "etc/sssd/conf.d/machineadm.conf"},
			texts: []string{
				"[sssd]\ndomains = x\nservices = nss, pam\n[domain/x]\nid_provider = ldap\n",
				"[sssd]\nconfig_file_version = 2\n",
				"[domain/ad.example.com]\nid_provider = ad\nad_maximum_machine_account_password_age = 0\n",
				"no section\n",
			},
		},
		{
			paths: []string{"etc/systemd/system/containerd.service.d/site.conf", "etc/systemd/system/containerd.service.d/zzz.conf", "run/systemd/system/containerd.service.d/x.conf", "etc/systemd/system/service.d/all.conf", "etc/systemd/system/containerd.service"},
			texts: []string{
				"[Service]\nExecStart=\nExecStart=/usr/bin/containerd --config /etc/other.toml\n",
				"[Service]\nEnvironment=HTTPS_PROXY=http://old:1\n",
				"[Service]\nEnvironmentFile=/etc/environment\n",
				"[Service]\nUnsetEnvironment=HTTPS_PROXY\n",
				"[Service]\nExecStart=/opt/containerd\n",
				"[Unit]\nRequires=x.service\n",
				containerdUnit,
			},
		},
		{
			paths: []string{"etc/systemd/system/chrony.service.d/site.conf", "etc/systemd/system/chronyd.service.d/site.conf", "etc/systemd/system/systemd-timesyncd.service.d/site.conf", "etc/systemd/system/ntpsec.service.d/site.conf"},
			texts: []string{
				"[Service]\nExecStart=\nExecStart=/usr/sbin/chronyd -f /etc/other.conf\n",
				"[Unit]\nConditionPathExists=/x\n",
				"[Install]\nWantedBy=x.target\n",
				"[Service]\nEnvironment=A=b\n",
			},
		},
		{
			paths: []string{"etc/default/chrony", "etc/sysconfig/chronyd", "etc/default/ntpsec", "etc/sysconfig/ntpd", "etc/sysconfig/network"},
			texts: []string{
				"DAEMON_OPTS=\"-F 1 -f /etc/other.conf\"\n",
				"OPTIONS=\"-x\"\n",
				"NTPD_OPTS=\"-g -c /etc/other.conf\"\n",
				"PEERNTP=yes\n",
				"IGNORE_DHCP=\"no\"\n",
			},
		},
		{
			paths: []string{"etc/fstab", "etc/waagent.conf", "etc/systemd/zram-generator.conf", "etc/systemd/system/swap.d/x.conf", "etc/systemd/system/dev-sda2.swap"},
			texts: []string{
				"/dev/sda2 none swap sw 0 0",
				"a b swap\n\n\tc\td\tswap\tx\n",
				"ResourceDisk.EnableSwap = y\n",
				"[zram0]\n",
				"[Swap]\nWhat=/dev/sda2\n",
				"",
			},
		},
		{
			paths: []string{"etc/modules-load.d/machineadm-a.conf", "etc/modules-load.d/site.conf", "etc/modprobe.d/x.conf"},
			texts: []string{
				"overlay\n",
				"br_netfilter\n# x\n",
				"blacklist overlay\n",
				"install br_netfilter /bin/false\n",
			},
		},
	}
}

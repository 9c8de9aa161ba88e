package nodes

import "slices"

// Layer is a set of Debian packages on top of the base system, separated by spaces. It is built once, and shared by all tests that
// name it. Packages that conflict with each other go into layers that are not used together.
type Layer string

// The layers of the tests. Packages of nodes are named here alone.
const (
	Ansible    Layer = "ansible-core python3-apt"
	Chrony     Layer = "chrony"
	Containerd Layer = Runc + " containerd"
	Egress     Layer = "nftables iproute2"
	Hello      Layer = "hello"
	Ignition   Layer = "ignition"
	// Kubernetes is what containers of a cluster need, and curl, which asks the API server.
	Kubernetes Layer = "containernetworking-plugins curl runc"
	// Member is of a domain.
	Member Layer = "adcli krb5-user ldap-utils libnss-sss libsasl2-modules-gssapi-mit sssd-ad sssd-tools"
	MinGW  Layer = "gcc-mingw-w64-x86-64-win32"
	NTPsec Layer = "ntpsec"
	Nginx  Layer = "nginx"
	NodeJS Layer = "nodejs"
	// PackageManagers are of other distributions.
	PackageManagers Layer = "rpm dnf zypper createrepo-c pacman-package-manager busybox gnupg"
	OpenNTPD        Layer = "openntpd"
	PythonGRPC      Layer = "python3-grpcio python3-protobuf protobuf-compiler libprotobuf-dev"
	// Runc is what containerd of upstream needs, and a proxy.
	Runc    Layer = "runc tinyproxy"
	SELinux Layer = "selinux-policy-default selinux-utils"
	// Samba is a domain controller. Trixie has a part of it in a package of its own.
	Samba Layer = "attr bind9-host iproute2 ldb-tools libfaketime nftables python3-dnspython samba" +
		" samba-ad-provision samba-dsdb-modules samba-vfs-modules winbind"
	SambaOfTrixie Layer = Samba + " samba-ad-dc"
	Squid         Layer = "squid"
	Timesyncd     Layer = "systemd-timesyncd"
	Tree          Layer = "tree"
	// WebServer is Nginx with a program that downloads.
	WebServer Layer = "nginx wget"
	Wine      Layer = "wine wine64"

	// kernel is below the layers of a virtual machine: Debian's kernel for clouds, with its modules, and the initial file system that
	// Debian makes for it.
	kernel Layer = "linux-image-cloud-amd64"
	openRC Layer = "openrc"
	// runit has the supervisor s6 beside it, whose services have the same form.
	runit Layer = "runit-init s6"
)

// Stacks lists every system with layers of packages that a test boots: Suite, Layers, VM and Init. `make layers` and
// `make nodes-vm` build all of them before the tests. Boot accepts no other one, so that no test needs a Debian archive.
func Stacks() []Options {
	both := [][]Layer{
		{Ansible}, {Chrony}, {Containerd}, {Egress}, {Hello, Tree}, {Member}, {NTPsec}, {NodeJS}, {PythonGRPC}, {Runc}, {Timesyncd},
	}
	one := map[Suite][][]Layer{
		Bookworm: {{Ansible, Ignition}, {Ignition}, {Kubernetes}, {Kubernetes, Chrony}, {Kubernetes, Chrony, Egress, Ignition}, {PackageManagers}, {SELinux}, {Samba}},
		Trixie:   {{Egress, WebServer}, {Nginx}, {Nginx, Squid}, {SambaOfTrixie}, {Wine}, {Wine, MinGW}},
	}
	all := []Options{
		{Suite: Bookworm, Init: OpenRC},
		{Suite: Bookworm, Init: OpenRC, Layers: []Layer{OpenNTPD, PythonGRPC}},
		{Suite: Bookworm, Init: Runit},
		{Suite: Bookworm, VM: true},
	}
	for _, layers := range [][]Layer{nil, {Chrony, Nginx}, {Containerd}, {NTPsec}, {Timesyncd}} {
		all = append(all, Options{Suite: Trixie, VM: true, Layers: layers})
	}
	for _, suite := range Suites() {
		for _, layers := range slices.Concat(both, one[suite]) {
			all = append(all, Options{Suite: suite, Layers: layers})
		}
	}
	return all
}

// stack is every layer of packages on top of the base system.
func (o Options) stack() []Layer {
	switch {
	case o.VM:
		return slices.Concat([]Layer{kernel}, o.Layers)
	case o.Init == OpenRC:
		return slices.Concat([]Layer{openRC}, o.Layers)
	case o.Init == Runit:
		return slices.Concat([]Layer{runit}, o.Layers)
	}
	return o.Layers
}

// listed reports whether the stack is one of Stacks.
func (o Options) listed() bool {
	return len(o.stack()) == 0 || slices.ContainsFunc(Stacks(), func(s Options) bool {
		return s.Suite == o.Suite && slices.Equal(s.stack(), o.stack())
	})
}

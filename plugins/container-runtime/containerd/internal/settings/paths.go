package settings

import "strings"

const (
	// Unit is the unit of the packages and of upstream's archive.
	Unit = "containerd.service"
	// Service is the service on Windows, as `containerd --register-service` names it.
	Service = "containerd"
)

// Paths are the files and directories that this plugin reads and writes on one operating system. Where containerd or
// systemd reads several files in the order of their names, ours sorts last, because the last file wins.
type Paths struct {
	Windows bool
	// Unit is the name of the service.
	Unit string
	// Config is the main file of a daemon that is started without --config.
	Config string
	// DropIn is our part of the configuration of containerd 2.x.
	DropIn string
	// Certs has a directory for each registry.
	Certs string
	// Own holds base specifications, trusted certificates and the environment with credentials.
	Own string
}

// PathsOf returns the paths of an operating system.
func PathsOf(os string) Paths {
	p, home := Paths{Unit: Unit}, "/etc/containerd"
	if os == "windows" {
		p, home = Paths{Unit: Service, Windows: true}, `C:\Program Files\containerd`
	}
	p.Config, p.DropIn = p.Join(home, "config.toml"), p.Join(home, "conf.d", "zz-machineadm.toml")
	p.Certs, p.Own = p.Join(home, "certs.d"), p.Join(home, "machineadm")
	return p
}

// Join joins the parts of a path.
func (p Paths) Join(parts ...string) string {
	if p.Windows {
		return strings.Join(parts, `\`)
	}
	return strings.Join(parts, "/")
}

// ListSeparator separates the directories of a list.
func (p Paths) ListSeparator() string {
	if p.Windows {
		return ";"
	}
	return ":"
}

// BaseSpec is the OCI specification that the containers of a runtime start from.
func (p Paths) BaseSpec(runtime string) string { return p.Join(p.Own, "base-"+runtime+".json") }

// Trusted is the directory of certificates that pulls trust beside the system's.
func (p Paths) Trusted() string { return p.Join(p.Own, "trusted") }

// Bundle is the file in Trusted.
func (p Paths) Bundle() string { return p.Join(p.Trusted(), "bundle.pem") }

// Environment holds the variables of the daemon. With credentials only its owner can read it.
func (p Paths) Environment() string { return p.Join(p.Own, "environment") }

// UnitDropIn is our drop-in of the unit.
func (p Paths) UnitDropIn() string { return "/etc/systemd/system/" + Unit + ".d/zz-machineadm.conf" }

// HostDirectory is the first directory in which containerd looks for a registry. For HOST:PORT that is HOST_PORT_, so
// that no other directory precedes it. On Windows a name has no colon. Source: hostPaths in containerd's
// core/remotes/docker/config.
func (p Paths) HostDirectory(host string) string {
	name := host
	if at := strings.LastIndexByte(host, ':'); at > 0 && !strings.HasSuffix(host, "]") {
		name = host[:at] + "_" + host[at+1:] + "_"
	}
	if p.Windows {
		name = strings.ReplaceAll(name, ":", "")
	}
	return p.Join(p.Certs, name)
}

package settings

import (
	"strings"
)

const (
	// unit is the service of every package and of upstream's archive.
	Unit = "containerd.service"
	// service is the same on Windows (containerd --register-service).
	Service = "containerd"
)

// paths are the places of everything that this plugin reads and writes, on one operating system.
//
// Where several files are read in the order of their names and the last one wins, ours sorts behind what others write.
type Paths struct {
	Windows bool
	// config is the daemon's main file, when nothing else is told.
	Config string
	// dropIn is our part of the configuration, on containerd 2.x.
	DropIn string
	// certs has a directory for each registry.
	RegistryFiles string
	// own holds what is ours alone: base specifications, trusted certificates, the environment with credentials.
	Own string
	// units has a directory for each unit's drop-ins. Empty on Windows.
	units string
	// unit is the name of the service.
	Unit string
}

func PathsOf(os string) Paths {
	if os == "windows" {
		const home = `C:\Program Files\containerd`
		return Paths{
			Windows: true, Unit: Service, Config: home + `\config.toml`,
			DropIn:        home + `\conf.d\zz-machineadm.toml`,
			RegistryFiles: home + `\certs.d`, Own: home + `\machineadm`,
		}
	}
	const home = "/etc/containerd"
	return Paths{
		Unit: Unit, Config: home + "/config.toml",
		DropIn:        home + "/conf.d/zz-machineadm.toml",
		RegistryFiles: home + "/certs.d", Own: home + "/machineadm", units: "/etc/systemd/system",
	}
}

// join makes one path of a directory and what is in it.
func (p Paths) Join(parts ...string) string {
	if p.Windows {
		return strings.Join(parts, `\`)
	}
	return strings.Join(parts, "/")
}

// list divides a list of directories.
func (p Paths) List() string {
	if p.Windows {
		return ";"
	}
	return ":"
}

// baseSpec is the specification that the containers of a runtime start from.
func (p Paths) BaseSpec(runtime string) string { return p.Join(p.Own, "base-"+runtime+".json") }

// trusted is the directory of certificates that pulls trust beside those of the system, and bundle the file in it.
func (p Paths) Trusted() string { return p.Join(p.Own, "trusted") }

func (p Paths) Bundle() string { return p.Join(p.Trusted(), "bundle.pem") }

// environment holds the variables with credentials, for its owner alone.
func (p Paths) Environment() string { return p.Join(p.Own, "environment") }

// unitDropIn is our drop-in of the daemon's unit.
func (p Paths) UnitDropIn() string {
	return p.Join(p.units, Unit+".d", "zz-machineadm.conf")
}

// hostDirectory is where containerd looks first for the registry of this name: a port is written HOST_PORT_, which is
// looked for before HOST:PORT, so that no directory beside it wins. Windows has no colon in names at all.
// Source: hostPaths in containerd's core/remotes/docker/config.
func (p Paths) HostDirectory(host string) string {
	name := host
	if at := strings.LastIndexByte(host, ':'); at > 0 && !strings.HasSuffix(host, "]") {
		name = host[:at] + "_" + host[at+1:] + "_"
	}
	if p.Windows {
		name = strings.ReplaceAll(name, ":", "")
	}
	return p.Join(p.RegistryFiles, name)
}

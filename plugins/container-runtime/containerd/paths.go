package main

import (
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

// paths are the places of everything that this plugin reads and writes, on one operating system.
//
// Where several files are read in the order of their names and the last one wins, ours sorts behind what others write.
type paths struct {
	windows bool
	// config is the daemon's main file, when nothing else is told.
	config string
	// dropIn is our part of the configuration, on containerd 2.x.
	dropIn string
	// certs has a directory for each registry.
	certs string
	// own holds what is ours alone: base specifications, trusted certificates, the environment with credentials.
	own string
	// units has a directory for each unit's drop-ins. Empty on Windows.
	units string
}

func pathsOf(os string) paths {
	if os == "windows" {
		const home = `C:\Program Files\containerd`
		return paths{
			windows: true, config: home + `\config.toml`,
			dropIn: home + `\conf.d\zz-machineadm.toml`,
			certs:  home + `\certs.d`, own: home + `\machineadm`,
		}
	}
	const home = "/etc/containerd"
	return paths{
		config: home + "/config.toml",
		dropIn: home + "/conf.d/zz-machineadm.toml",
		certs:  home + "/certs.d", own: home + "/machineadm", units: "/etc/systemd/system",
	}
}

// mainFile is the daemon's main file where its unit names none.
func mainFile(m sdk.Machine) string { return pathsOf(m.Target.OS).config }

// dropInFile is our part of the configuration, on containerd 2.x.
func dropInFile(m sdk.Machine) string { return pathsOf(m.Target.OS).dropIn }

// join makes one path of a directory and what is in it.
func (p paths) join(parts ...string) string {
	if p.windows {
		return strings.Join(parts, `\`)
	}
	return strings.Join(parts, "/")
}

// list divides a list of directories.
func (p paths) list() string {
	if p.windows {
		return ";"
	}
	return ":"
}

// baseSpec is the specification that the containers of a runtime start from.
func (p paths) baseSpec(runtime string) string { return p.join(p.own, "base-"+runtime+".json") }

// trusted is the directory of certificates that pulls trust beside those of the system, and bundle the file in it.
func (p paths) trusted() string { return p.join(p.own, "trusted") }
func (p paths) bundle() string  { return p.join(p.trusted(), "bundle.pem") }

// environment holds the variables with credentials, for its owner alone.
func (p paths) environment() string { return p.join(p.own, "environment") }

// unitDropIn is our drop-in of the daemon's unit.
func (p paths) unitDropIn(unit string) string {
	return p.join(p.units, unit+".d", "zz-machineadm.conf")
}

// hostDirectory is where containerd looks first for the registry of this name: a port is written HOST_PORT_, which is
// looked for before HOST:PORT, so that no directory beside it wins. Windows has no colon in names at all.
// Source: hostPaths in containerd's core/remotes/docker/config.
func (p paths) hostDirectory(host string) string {
	name := host
	if at := strings.LastIndexByte(host, ':'); at > 0 && !strings.HasSuffix(host, "]") {
		name = host[:at] + "_" + host[at+1:] + "_"
	}
	if p.windows {
		name = strings.ReplaceAll(name, ":", "")
	}
	return p.join(p.certs, name)
}

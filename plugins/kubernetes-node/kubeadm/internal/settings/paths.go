package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/sdk"
)

// systemDirectories belong to the operating system (SPEC G-14). On Linux all but /usr lead there on most systems.
func (r *resolver) systemDirectories() []string {
	if r.result.Windows {
		return []string{"/windows"}
	}
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// hostDirectories belong to the host and to the kernel, and to this provider whatever the document says.
func (r *resolver) hostDirectories() []string {
	if r.result.Windows {
		return []string{r.result.WorkDir, "/programdata/machineadm", "/run/cluster-api"}
	}
	return append(sdk.HostDirectories(), r.result.WorkDir)
}

// plain returns a path in the form of Linux. Windows ignores case; its kubeadm uses the directories of Linux on the system drive.
func (r *resolver) plain(name string) string {
	if r.result.Windows {
		return strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(name, `\`, "/")), "c:")
	}
	for _, alias := range []string{"/var/run", "/var/lock"} { // links on every system
		if below(name, alias) {
			return strings.Replace(name, alias, map[string]string{"/var/run": "/run", "/var/lock": "/run/lock"}[alias], 1)
		}
	}
	return name
}

func below(name, directory string) bool {
	return name == directory || strings.HasPrefix(name, directory+"/")
}

// isIn reports whether the text of a path is one of these directories or below it.
func (r *resolver) isIn(name string, directories ...string) bool {
	name = r.plain(name)
	return slices.ContainsFunc(directories, func(directory string) bool { return below(name, r.plain(directory)) })
}

// reserved reports whether the provider or the host writes a path, or something below it, by its text.
func (r *resolver) reserved(name string) bool {
	reserved := slices.Concat(r.hostDirectories(), r.ownPaths())
	return r.isIn(name, reserved...) || slices.ContainsFunc(reserved, func(path string) bool { return r.isIn(path, name) })
}

const (
	systemMessage = "is a path of the operating system"
	systemHint    = "choose another one, such as /opt/bin/NAME for a program"
	reservedHint  = "choose another one; certificates belong into spec.certificates and spec.etcd, static pods into spec.staticPods, settings of the kubelet into spec.kubelet"
	leadsMessage  = "a link of this machine leads from it to a path of the provider, of the host, of the kernel or of the operating system"
	leadsHint     = "show the links with namei -l and the path, then choose another path or remove the link"
)

// filePath checks the path of a file.
func (r *resolver) filePath(at document.Path, name string, seen map[string]document.Path) {
	if !r.path(at, name) {
		return
	}
	key := name
	if r.result.Windows {
		key = strings.ToLower(name)
	}
	twice := seen[key] != ""
	r.nested(at, key, seen)
	r.unique(at, seen, key)
	if r.refuse(r.isIn(name, r.systemDirectories()...), at, systemMessage, systemHint) ||
		r.refuse(r.reserved(name), at, "is a path of the provider, of the host or of the kernel", reservedHint) || twice {
		return
	}
	destination := r.follow(at, name, slices.Concat(r.hostDirectories(), r.ownPaths()))
	switch {
	case destination == name, destination == "":
		return
	case r.reserved(destination):
		r.block(at, leadsMessage, leadsHint)
		return
	}
	if other := seen[destination]; other != "" {
		r.block(at, "is the same file as "+string(other)+": a link of this machine leads there", "remove one of the two")
		return
	}
	seen[destination] = at
}

// nested refuses a file below another one of the document: one of the two would have to be a directory.
func (r *resolver) nested(at document.Path, key string, seen map[string]document.Path) {
	for _, other := range slices.Sorted(maps.Keys(seen)) {
		if key != other && (r.isIn(key, other) || r.isIn(other, key)) {
			r.refuse(true, at, "excludes "+string(seen[other])+": one of the two is below the other", "choose another path")
			return
		}
	}
}

// directoryPath checks the path of a directory that the document gives to the provider. It is in the form of Linux on every system, because
// it is one of control planes or of the whole cluster.
func (r *resolver) directoryPath(at document.Path, name string) {
	if !r.linuxPath(at, name) || r.refuse(r.isIn(name, r.systemDirectories()...), at, systemMessage, systemHint) ||
		r.refuse(r.isIn(name, r.hostDirectories()...), at, "is a path of the host or of the kernel", "choose another one") {
		return
	}
	r.follow(at, name, r.hostDirectories())
}

// follow returns where a write to a path ends on the machine, and refuses one that ends in what is not the document's. On Windows no
// write follows a link, and the result is empty, as it is after an error.
func (r *resolver) follow(at document.Path, name string, directories []string) string {
	if r.result.Windows {
		return ""
	}
	reached, err := r.m.FS.Reaches(name, slices.Concat(r.systemDirectories(), directories)...)
	destination := ""
	if err == nil {
		destination, err = r.m.FS.Destination(name)
	}
	switch {
	case err != nil:
		if r.err == nil {
			r.err = sdk.At(err, string(at))
		}
		return ""
	case reached != "":
		r.block(at, leadsMessage, leadsHint)
		return ""
	}
	return destination
}

// block records what no other document of the stream can correct on this machine.
func (r *resolver) block(at document.Path, message, hint string) {
	r.blocked = append(r.blocked, sdk.Violation{Field: string(at), Message: message, Hint: hint})
}

// outside returns what a file of the document must not change, also when links have changed since the plan.
func (r *resolver) outside() []string {
	if r.result.Windows {
		return nil
	}
	return slices.Concat(r.systemDirectories(), r.hostDirectories(), r.ownPaths())
}

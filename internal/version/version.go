// Package version says which build of this repository a binary is.
package version

import "runtime/debug"

// version is stamped by the linker: -X github.com/machineadm/machineadm/internal/version.version=v1.2.3.
// The linker can stamp nothing but a package variable; nothing writes to it at run time.
var version string

// String returns the version of the running binary, never empty: the stamp of `make build`, else what the go command
// recorded (the module's version after `go install module@version`, the commit after a plain `go build`), else "devel".
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return choose(version, info)
}

func choose(stamp string, info *debug.BuildInfo) string {
	if stamp != "" {
		return stamp
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = "devel+" + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision + dirty
}

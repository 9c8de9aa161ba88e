package daemon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

const dpkgStatus = "/var/lib/dpkg/status"

// versionInImage finds the version of a program that cannot run here: in the package database where a package put the
// program, else in the program's build information. It is empty where neither has it.
func versionInImage(m sdk.Machine, binary string) (version, source string, err error) {
	packaged := !strings.HasPrefix(binary, "/usr/local/") && !strings.HasPrefix(binary, "/opt/")
	if packaged {
		text, err := m.FS.ReadFile(dpkgStatus)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		if version := dpkgVersion(string(text)); version != "" {
			return version, "the package database", nil
		}
	}
	if binary == "" {
		return "", "", nil
	}
	program, err := m.FS.ReadFile(binary)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	return buildVersion(program), "the build information of " + binary, nil
}

// dpkgVersion is the version of the installed package of containerd, without epoch.
// Source: dpkg(1), deb-version(7).
func dpkgVersion(status string) string {
	for paragraph := range strings.SplitSeq(status, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(paragraph) {
			key, value, ok := strings.Cut(line, ":")
			if ok && !strings.HasPrefix(line, " ") {
				fields[key] = strings.TrimSpace(value)
			}
		}
		name := fields["Package"]
		if (name != "containerd" && name != "containerd.io") || !strings.HasSuffix(fields["Status"], " installed") {
			continue
		}
		version := fields["Version"]
		if _, rest, ok := strings.Cut(version, ":"); ok {
			version = rest
		}
		return version
	}
	return ""
}

// buildVersion is the version in the build information of a program: what the build gave as version.Version, else the
// version of the module. Debian's program has neither.
func buildVersion(program []byte) string {
	info, err := debug.ParseBuildInfo(buildInfo(program))
	if err != nil { // not a Go program, or one without build information
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key != "-ldflags" {
			continue
		}
		given := regexp.MustCompile(`github\.com/containerd/containerd(?:/v2)?/version\.Version=([^\s'"]+)`)
		if found := given.FindStringSubmatch(setting.Value); found != nil {
			return found[1]
		}
	}
	isOurs := func(path string) bool {
		return path == "github.com/containerd/containerd" || path == "github.com/containerd/containerd/v2"
	}
	if isOurs(info.Main.Path) && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, module := range info.Deps {
		if isOurs(module.Path) {
			return module.Version
		}
	}
	return ""
}

// buildInfo is the build information of a Go program, empty where there is none. debug/buildinfo also reads it, and with
// it the executable formats of every system, which would add a fiftieth to this program. Source: debug/buildinfo of Go
// 1.18 and later.
func buildInfo(program []byte) string {
	const magic, aligned, header = "\xff Go buildinf:", 16, 32
	for from := 0; ; {
		at := bytes.Index(program[from:], []byte(magic))
		if at < 0 {
			return ""
		}
		at += from
		from = at + len(magic)
		if at%aligned != 0 || len(program) < at+header || program[at+15]&2 == 0 {
			continue
		}
		rest := program[at+header:]
		for range 2 { // the version of Go, then the modules
			n, size := binary.Uvarint(rest)
			if size <= 0 || n > uint64(len(rest)-size) {
				break
			}
			if text := rest[size : size+int(n)]; len(text) > 32 && text[len(text)-17] == '\n' {
				return string(text[16 : len(text)-16])
			}
			rest = rest[size+int(n):]
		}
	}
}

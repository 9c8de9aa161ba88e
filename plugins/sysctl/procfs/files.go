package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

func (d desired) sysctlFile() string {
	return "/etc/sysctl.d/" + ownedPrefix + d.name + ownedSuffix
}

func (d desired) modulesFile() string {
	return "/etc/modules-load.d/machineadm-" + d.name + ".conf"
}

// renderSysctl returns the content of the file in /etc/sysctl.d; nil without parameters.
func renderSysctl(d desired) []byte {
	var lines strings.Builder
	for _, p := range d.parameters {
		lines.WriteString(p.line())
	}
	return render(d, lines.String(), "sysctl.d(5)")
}

// renderModules returns the content of the file in /etc/modules-load.d; nil without modules.
func renderModules(d desired) []byte {
	var lines strings.Builder
	for _, module := range d.modules {
		lines.WriteString(module + "\n")
	}
	return render(d, lines.String(), "modules-load.d(5)")
}

func render(d desired, lines, manual string) []byte {
	if lines == "" {
		return nil
	}
	return fmt.Appendf(nil, "# Managed by machineadm, document Sysctl/%s: what is changed here is overwritten. See %s.\n%s",
		d.name, manual, lines)
}

// line returns the parameter as a line of sysctl.d(5). The dash lets a boot without the parameter succeed.
func (p parameter) line() string {
	dash := ""
	if p.optional {
		dash = "-"
	}
	return strings.TrimSpace(fmt.Sprintf("%s%s = %s", dash, p.key, p.value)) + "\n"
}

// files implements sysctld.Source on the machine's file system.
type files struct{ *machine.FS }

func (f files) ReadFile(name string) ([]byte, error) {
	data, err := f.FS.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, machine.ErrNotRegular) {
		return nil, nil
	}
	return data, err
}

// ownFile returns the change that writes a file of the document, or removes it when content is nil; nil when the file
// matches. A link or a device at its path is a Precondition: administrators mask a file by a link to /dev/null
// (sysctl.d(5), modules-load.d(5)).
//
// The claim is for a part of the file, because other documents with the same parameter change their line in it.
func ownFile(m sdk.Machine, d desired, name string, content []byte) (*sdk.Change, error) {
	part := &sdk.Part{Name: d.name, Content: content}
	if content == nil {
		return sdk.File(m, sdk.FileSpec{Path: name, Absent: true, Part: part})
	}
	info, err := m.FS.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && !info.Mode.IsRegular() {
		return nil, sdk.Precondition(name+" is not a regular file", "remove it; a link to /dev/null masks the file")
	}
	return sdk.File(m, sdk.FileSpec{Path: name, Content: content, Mode: 0o644, Part: part})
}

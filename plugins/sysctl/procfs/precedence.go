package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
)

// sharedFile is a file of another document that sets parameters of this one, with the values of this one.
type sharedFile struct {
	path    string
	content []byte
	// lines are those that both documents have.
	lines []byte
}

// sharedFiles returns the files of other documents that set parameters of this document. The host refuses documents of one
// stream that contradict each other, so a different value is of an earlier stream, or changes at its document's turn: the
// values of the document that is applied last hold, also at boot.
func sharedFiles(source files, d desired) ([]sharedFile, error) {
	names, err := source.ReadDir("/etc/sysctl.d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	byKey := map[string]parameter{}
	for _, p := range d.parameters {
		byKey[string(p.key)] = p
	}
	var all []sharedFile
	for _, name := range names {
		path := "/etc/sysctl.d/" + name
		if !strings.HasPrefix(name, ownedPrefix) || !strings.HasSuffix(name, ownedSuffix) || path == d.sysctlFile() {
			continue
		}
		data, err := source.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if s := share(path, data, byKey); s.lines != nil {
			all = append(all, s)
		}
	}
	return all, nil
}

func share(path string, data []byte, byKey map[string]parameter) sharedFile {
	s := sharedFile{path: path}
	// For systemd a line ends with a line feed, a carriage return or both, and nothing follows a NUL.
	data, _, _ = bytes.Cut(data, []byte{0})
	data = []byte(strings.NewReplacer("\r\n", "\n", "\n\r", "\n", "\r", "\n").Replace(string(data)))
	text := slices.Collect(bytes.Lines(data))
	for _, line := range sysctld.Parse(data, sysctld.Systemd) {
		p, ok := byKey[line.Key]
		if !ok || line.Exclude {
			continue
		}
		p.optional = line.IgnoreFailure
		s.lines = append(s.lines, p.line()...)
		if !sameValue(line.Value, p.value) {
			text[line.Number-1] = []byte(p.line())
		}
	}
	s.content = bytes.Join(text, nil)
	return s
}

// checkBoot refuses a document that the next boot would override by a file that is read after the document's own.
func checkBoot(source files, d desired, shared []sharedFile) error {
	planned := map[string][]byte{d.sysctlFile(): renderSysctl(d)}
	for _, s := range shared {
		planned[s.path] = s.content
	}
	systemd, err := sysctld.Load(source, sysctld.Systemd, planned)
	if err != nil {
		return err
	}
	procps, err := sysctld.Load(source, sysctld.Procps, planned)
	if err != nil {
		return err
	}
	var overrides []sdk.Violation
	for _, p := range d.parameters {
		first, _ := systemd.Effective(p.key)
		second, _ := procps.Effective(p.key)
		switch inFirst, inSecond := p.overriddenBy(first), p.overriddenBy(second); {
		case inFirst && inSecond && first == second:
			overrides = append(overrides, override(d, p, first, "systemd-sysctl, sysctl --system"))
		default:
			if inFirst {
				overrides = append(overrides, override(d, p, first, "systemd-sysctl"))
			}
			if inSecond {
				overrides = append(overrides, override(d, p, second, "sysctl --system"))
			}
		}
	}
	if len(overrides) == 0 {
		return nil
	}
	return sdk.Preconditions(overrides...)
}

func (p parameter) overriddenBy(s sysctld.Setting) bool {
	return s.Exclude || !sameValue(s.Value, p.value)
}

func override(d desired, p parameter, s sysctld.Setting, programs string) sdk.Violation {
	effect := "sets it to " + s.Value
	if s.Exclude {
		effect = "excludes it"
	}
	hint := "remove that line, give it the value of the document, or rename the file so that it sorts before " +
		ownedPrefix + d.name + ownedSuffix
	if s.File == "/etc/sysctl.conf" {
		hint = "remove that line, or give it the value of the document: /etc/sysctl.conf is read after every other file"
	}
	return sdk.Violation{Field: p.field, Hint: hint, Message: fmt.Sprintf(
		"another file would override the document at boot: %s: %s line %d %s (%s)", p.key, s.File, s.Number, effect, programs)}
}

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
	"github.com/machineadm/machineadm/sdk/machine"
)

// files lets sysctld read the machine's file system.
type files struct{ *machine.FS }

func (f files) Regular(name string) (bool, error) {
	info, err := f.Stat(name)
	return err == nil && info.Mode.IsRegular(), err
}

// contentOf reads one file of ours; a file that is not there, or is a link to /dev/null, has none.
func contentOf(source sysctld.Source, path string) ([]byte, error) {
	regular, err := source.Regular(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !regular {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return source.ReadFile(path)
}

// sharedFile is a file of another document that sets parameters of this one, with the values of this one.
type sharedFile struct {
	path    string
	content []byte
	// shared are the lines that both documents have.
	shared []byte
}

// sharedFiles finds the files of other documents that set parameters of this document. Documents of one stream that differ
// are refused by the runtime before anything is changed: what still differs is of a former stream, or changes as well when
// its document has its turn. So the values of the document that is applied last hold, also at boot.
func sharedFiles(source sysctld.Source, d desired) ([]sharedFile, error) {
	names, err := source.ReadDir("/etc/sysctl.d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	wanted := map[string]parameter{}
	for _, p := range d.parameters {
		wanted[string(p.key)] = p
	}
	var all []sharedFile
	for _, name := range names {
		other, ours := strings.CutPrefix(name, ownedPrefix)
		other, conf := strings.CutSuffix(other, ownedSuffix)
		if !ours || !conf || other == d.name {
			continue
		}
		shared, err := shareWith(source, wanted, ownedBy(other))
		if err != nil {
			return nil, err
		}
		if shared.shared != nil {
			all = append(all, shared)
		}
	}
	return all, nil
}

func shareWith(source sysctld.Source, wanted map[string]parameter, path string) (sharedFile, error) {
	s := sharedFile{path: path}
	data, err := contentOf(source, s.path)
	if err != nil {
		return s, err
	}
	// A line of systemd ends with a line feed, a carriage return or both, and nothing follows a NUL.
	data, _, _ = bytes.Cut(data, []byte{0})
	data = []byte(strings.NewReplacer("\r\n", "\n", "\n\r", "\n", "\r", "\n").Replace(string(data)))
	text := slices.Collect(bytes.Lines(data))
	lines, _ := sysctld.Parse(data, sysctld.Systemd)
	for _, line := range lines {
		p, ok := wanted[line.Key]
		if !ok || line.Exclude {
			continue
		}
		p.optional = line.IgnoreFailure
		s.shared = append(s.shared, p.line()...)
		if !sameValue(line.Value, p.value) {
			text[line.Number-1] = []byte(p.line())
		}
	}
	s.content = bytes.Join(text, nil)
	return s, nil
}

// corrected are the files of the machine with the corrected ones in the place of some.
type corrected struct {
	sysctld.Source
	shared []sharedFile
}

func (c corrected) ReadFile(name string) ([]byte, error) {
	for _, s := range c.shared {
		if s.path == name {
			return s.content, nil
		}
	}
	return c.Source.ReadFile(name)
}

// checkBoot refuses what would not hold at the next boot: a file that is read after ours and says something else.
func checkBoot(source sysctld.Source, d desired) error {
	own := sysctld.File{Path: d.sysctlFile(), Data: renderSysctl(d)}
	var overrides []sdk.Violation
	for _, by := range []struct {
		rules   sysctld.Rules
		program string
	}{{sysctld.Systemd, "systemd-sysctl"}, {sysctld.Procps, "sysctl --system"}} {
		configuration, err := sysctld.Load(source, by.rules, own)
		if err != nil {
			return err
		}
		for _, p := range d.parameters {
			setting, _ := configuration.Effective(p.key)
			if !setting.Excluded && sameValue(setting.Value, p.value) {
				continue
			}
			effect := "sets it to " + setting.Value
			if setting.Excluded {
				effect = "excludes it"
			}
			hint := "remove that line, give it the value of the document, or rename the file so that it sorts before " +
				ownedPrefix + d.name + ownedSuffix
			if setting.File == "/etc/sysctl.conf" {
				hint = "remove that line, or give it the value of the document: /etc/sysctl.conf is read after every other file"
			}
			text := fmt.Sprintf("another file would override the document at boot: %s: %s line %d %s", p.key, setting.File, setting.Line, effect)
			same := slices.IndexFunc(overrides, func(v sdk.Violation) bool { return strings.HasPrefix(v.Message, text+" (") })
			if same >= 0 { // both programs read it
				overrides[same].Message = fmt.Sprintf("%s, %s)", strings.TrimSuffix(overrides[same].Message, ")"), by.program)
				continue
			}
			overrides = append(overrides, sdk.Violation{
				Field: p.field, Hint: hint, Message: fmt.Sprintf("%s (%s)", text, by.program),
			})
		}
	}
	if len(overrides) == 0 {
		return nil
	}
	return sdk.Preconditions(overrides...)
}

package activate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/machine"
)

// RegistryValue is sdk.RegistryValue.
type RegistryValue struct {
	Key, Name string
	Data      machine.RegistryData
	Absent    bool
}

// registryRoot begins the path of a value, by which an activation handles it like a file. No absolute path of a file begins
// with it.
const registryRoot = `HKLM\`

func (v RegistryValue) path() string { return registryRoot + v.Key + `\` + v.Name }

// check refuses a value that cannot be set, and reads it, which fails where there is no registry.
func (v RegistryValue) check(f files.System) error {
	text, isText := v.Data.Text()
	_, isNumber := v.Data.Number()
	var reason string
	switch {
	case slices.Contains(strings.Split(v.Key, `\`), "") || strings.HasPrefix(strings.ToUpper(v.Key), "HK"):
		reason = `its key is not a path below HKEY_LOCAL_MACHINE, such as SYSTEM\Setup`
	case v.Name == "" || strings.Contains(v.Name, `\`):
		reason = "its name is empty or has a backslash"
	case strings.Contains(v.path(), "\x00"):
		reason = "its name has NUL"
	case v.Absent:
	case v.Data.Type == machine.RegistryExpandSZ || !isText && !isNumber:
		reason = "its data is neither a text nor a number"
	case strings.Contains(text, "\x00"):
		reason = "its text has NUL"
	}
	if reason != "" {
		return fmt.Errorf("the registry value %q: %w: %s", v.path(), fs.ErrInvalid, reason)
	}
	_, err := f.Read(v.path())
	return err
}

// claim records that the document owns the value.
func (v RegistryValue) claim(m machine.Machine) {
	var value []string
	if text, ok := v.Data.Text(); ok && !v.Absent {
		value = []string{v.Data.Type.String(), text}
	}
	if number, ok := v.Data.Number(); ok && !v.Absent {
		value = []string{v.Data.Type.String(), fmt.Sprint(number)}
	}
	m.Claim("registry:"+v.path(), "", value...)
}

func (v RegistryValue) state() files.State {
	if v.Absent {
		return files.State{}
	}
	return registryVersion(v.Data)
}

// registryVersion has the type, in four bytes, and the data as its content.
func registryVersion(d machine.RegistryData) files.State {
	content := append(binary.LittleEndian.AppendUint32(nil, uint32(d.Type)), d.Bytes...)
	return files.State{Exists: true, Content: content, UID: -1, GID: -1}
}

func registryData(v files.State) machine.RegistryData {
	return machine.RegistryData{Type: machine.RegistryType(binary.LittleEndian.Uint32(v.Content)), Bytes: v.Content[4:]}
}

func registryText(v files.State) string {
	if !v.Exists {
		return "absent"
	}
	return registryData(v).String()
}

// withRegistry adds the registry to a file system, so that an activation handles its values like files.
type withRegistry struct {
	files.System
	registry machine.Registry
}

// registryPath splits the path of a value; ok is false for the path of a file.
func registryPath(path string) (key, name string, ok bool) {
	path, ok = strings.CutPrefix(path, registryRoot)
	at := strings.LastIndexByte(path, '\\')
	if !ok || at < 0 {
		return "", "", false
	}
	return path[:at], path[at+1:], true
}

// Lstat implements files: a value is never a link.
func (w withRegistry) Lstat(path string) (machine.Info, error) {
	if _, _, ok := registryPath(path); ok {
		return machine.Info{}, fs.ErrNotExist
	}
	return w.System.Lstat(path)
}

func (w withRegistry) Read(path string) (files.State, error) {
	key, name, ok := registryPath(path)
	if !ok {
		return w.System.Read(path)
	}
	data, err := w.registry.Value(key, name)
	if errors.Is(err, fs.ErrNotExist) {
		return files.State{}, nil
	}
	return registryVersion(data), err
}

func (w withRegistry) Put(path string, want files.State) error {
	key, name, ok := registryPath(path)
	switch {
	case !ok:
		return w.System.Put(path, want)
	case !want.Exists:
		return w.registry.DeleteValue(key, name)
	default:
		return w.registry.SetValue(key, name, registryData(want))
	}
}

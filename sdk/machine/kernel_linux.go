package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxParameterBytes exceeds the longest parameter (net.ipv4.ip_local_reserved_ports as a list of ports).
const maxParameterBytes = 1 << 20

// kernel is the Kernel of a machine whose proc, sys and lib/modules are in root.
type kernel struct {
	root     string
	commands Runner
}

func liveKernel(commands Runner) Kernel { return NewKernel("/", commands) }

// NewKernel returns the Kernel whose proc, sys and lib/modules directories are below root, "/" on a live machine.
// Modules are loaded with modprobe(8), through commands.
func NewKernel(root string, commands Runner) Kernel { return &kernel{root: root, commands: commands} }

// Parameter implements Kernel.
func (k *kernel) Parameter(key string) (string, error) {
	file, err := k.open(key, os.O_RDONLY)
	var data []byte
	if err == nil {
		data, err = readAll(file, maxParameterBytes)
	}
	if err != nil {
		return "", failedParameter("read", key, err)
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// SetParameter implements Kernel.
func (k *kernel) SetParameter(key, value string) error {
	if strings.ContainsAny(value, "\x00\n") {
		return failedParameter("set", key, fmt.Errorf("%w: a value is one line", fs.ErrInvalid))
	}
	file, err := k.open(key, os.O_WRONLY|os.O_TRUNC)
	if err == nil {
		_, err = file.WriteString(value + "\n") // in one call: to the kernel each write is a whole value
		err = closed(file, err)
	}
	if err != nil {
		return failedParameter("set", key, err)
	}
	return nil
}

// open opens a parameter. No key leads out of /proc/sys.
func (k *kernel) open(key string, flags int) (_ *os.File, err error) {
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsRune(segment, 0) {
			return nil, fmt.Errorf("%w: not a path below /proc/sys", fs.ErrInvalid)
		}
	}
	root, err := os.OpenRoot(filepath.Join(k.root, "proc/sys"))
	if err != nil {
		return nil, err
	}
	defer func() { err = closed(root, err) }()
	info, err := root.Lstat(key)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: a group of parameters, or none", ErrNotRegular)
	}
	if err != nil {
		return nil, err
	}
	return root.OpenFile(key, flags, 0)
}

// failedParameter replaces the path of an error by the key.
func failedParameter(action, key string, err error) error {
	return fmt.Errorf("%s kernel parameter: %s: %w", action, printable(key), withoutPath(err))
}

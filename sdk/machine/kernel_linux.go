package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxParameterBytes is far above the longest parameter (net.ipv4.ip_local_reserved_ports as a list of ports).
const maxParameterBytes = 1 << 20

// kernel reads and writes what the kernel shows of itself.
type kernel struct {
	// root has proc, sys and lib/modules in it.
	root     string
	commands Runner
}

func liveKernel(commands Runner) Kernel { return NewKernel("/", commands) }

// NewKernel returns the Kernel whose proc, sys and lib/modules directories are below root, "/" on a live machine.
// Modules are loaded with modprobe(8), through commands.
func NewKernel(root string, commands Runner) Kernel { return &kernel{root: root, commands: commands} }

// Parameter implements Kernel.
func (k *kernel) Parameter(key string) (value string, err error) {
	file, err := k.open(key, os.O_RDONLY)
	if err != nil {
		return "", fmt.Errorf("read kernel parameter: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err := io.ReadAll(io.LimitReader(file, maxParameterBytes+1))
	if err == nil && len(data) > maxParameterBytes {
		err = ErrTooLarge
	}
	if err != nil {
		return "", fmt.Errorf("read kernel parameter: %w", named(key, err))
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// SetParameter implements Kernel.
func (k *kernel) SetParameter(key, value string) (err error) {
	if strings.ContainsAny(value, "\x00\n") {
		return fmt.Errorf("set kernel parameter: %w", named(key, fmt.Errorf("%w: a value is one line", fs.ErrInvalid)))
	}
	file, err := k.open(key, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("set kernel parameter: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// In one piece: the kernel takes each write for a whole value.
	if _, err := file.WriteString(value + "\n"); err != nil {
		return fmt.Errorf("set kernel parameter: %w", named(key, err))
	}
	return nil
}

// open stays below /proc/sys whatever the key is.
func (k *kernel) open(key string, flags int) (_ *os.File, err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join(k.root, "proc/sys"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat(key)
	if err != nil {
		return nil, named(key, err)
	}
	if !info.Mode().IsRegular() {
		return nil, named(key, fmt.Errorf("%w: a group of parameters, or none", ErrNotRegular))
	}
	file, err := root.OpenFile(key, flags, 0)
	if err != nil {
		return nil, named(key, err)
	}
	return file, nil
}

func checkKey(key string) error {
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsRune(segment, 0) {
			return named(printable(key), fmt.Errorf("%w: not a path below /proc/sys", fs.ErrInvalid))
		}
	}
	return nil
}

// named puts the key in place of whatever path the error had.
func named(key string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("%s: %w", key, err)
}

// LoadModule implements Kernel.
func (k *kernel) LoadModule(ctx context.Context, name string) error {
	state, err := k.Module(name)
	if err != nil || state == ModuleLoaded || state == ModuleBuiltIn {
		return err
	}
	// As systemd-modules-load(8) will do at boot: by itself modprobe also loads what the administrator denied.
	if _, err := k.commands.Run(ctx, Command{Name: "modprobe", Args: []string{"-b", "--", name}}); err != nil {
		return fmt.Errorf("load kernel module %s: %w", name, err)
	}
	// modprobe is content where the administrator denied the module or replaced loading by a command of their own
	// (modprobe.d(5)).
	state, err = k.Module(name)
	if err == nil && state != ModuleLoaded && state != ModuleBuiltIn {
		err = fmt.Errorf("load kernel module %s: modprobe succeeded, yet it is %s; see `modprobe -c` for a blacklist or install line",
			name, state)
	}
	return err
}

// isAbsent tells a file that is not there from one that cannot be read.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

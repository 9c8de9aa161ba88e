package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// CanWatch reports whether WatchWrites works.
const CanWatch = true

// ErrNoWatch is a machine that does not report writes.
var ErrNoWatch = errors.New("this machine has no more inotify watches, or lost their events")

// Writes records the names of files at the moment of a write.
type Writes struct {
	fd          int
	directories map[int32]string // by watch
}

// WatchWrites watches these directories below the root, and none below them. End it with written.
func WatchWrites(root string, directories []string) (*Writes, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, watchError(err)
	}
	w := &Writes{fd: fd, directories: map[int32]string{}}
	for _, dir := range directories {
		watch, err := unix.InotifyAddWatch(fd, filepath.Join(root, filepath.FromSlash(dir)), unix.IN_MODIFY|unix.IN_ONLYDIR)
		if err != nil {
			return nil, errors.Join(watchError(err), unix.Close(fd))
		}
		w.directories[int32(watch)] = dir //nolint:gosec // the kernel's numbers have 32 bits
	}
	return w, nil
}

// watchError classifies a lack of resources and the refusal of a sandbox as ErrNoWatch: neither is a fault of the plugin.
func watchError(err error) error {
	for _, lack := range []error{unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.ENOMEM, unix.ENOSYS, unix.EPERM} {
		if errors.Is(err, lack) {
			return fmt.Errorf("%w (%w)", ErrNoWatch, err)
		}
	}
	return fmt.Errorf("watch a directory: %w", err)
}

// Written ends the watch and returns the names of the files that were written to, slash-separated and below the root. The
// kernel queues an event before the write returns, so that none is still to come.
func (w *Writes) Written() (names []string, err error) {
	defer func() { err = errors.Join(err, unix.Close(w.fd)) }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			slices.Sort(names)
			return slices.Compact(names), nil
		case err != nil:
			return nil, fmt.Errorf("watch a directory: %w", err)
		}
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			watch, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:]) //nolint:gosec // as above
			name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:length], []byte{0})
			rest = rest[length:]
			if mask&unix.IN_Q_OVERFLOW != 0 {
				return nil, ErrNoWatch
			}
			if mask&unix.IN_MODIFY != 0 {
				names = append(names, path.Join(w.directories[watch], string(name)))
			}
		}
	}
}

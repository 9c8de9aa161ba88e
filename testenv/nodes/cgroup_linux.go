package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroup is a directory of the unified (version 2) hierarchy.
type cgroup string

// cgroupOf is the control group of a node. On a machine with the hybrid layout the version 2 hierarchy has no
// controllers, but it still groups and kills.
func cgroupOf(name string) (cgroup, error) {
	roots, err := cgroupRoots("cgroup2")
	if err != nil {
		return "", err
	}
	if len(roots) == 0 {
		return "", errors.New("no cgroup2 file system is mounted on this machine")
	}
	return cgroup(filepath.Join(roots[0], name)), nil
}

// shadowsOf are the groups of the same name in version 1 hierarchies: on a hybrid machine systemd-nspawn also makes one
// in name=systemd and leaves it there.
func shadowsOf(name string) ([]cgroup, error) {
	roots, err := cgroupRoots("cgroup")
	shadows := make([]cgroup, len(roots))
	for i, root := range roots {
		shadows[i] = cgroup(filepath.Join(root, name))
	}
	return shadows, err
}

func cgroupRoots(fstypes ...string) ([]string, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, m := range mounts {
		if slices.Contains(fstypes, m.fstype) {
			roots = append(roots, m.point)
		}
	}
	return roots, nil
}

func (c cgroup) make() error {
	err := os.Mkdir(string(c), 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// open is for SysProcAttr.CgroupFD: a process starts in its group and is never outside.
func (c cgroup) open() (*os.File, error) {
	return os.OpenFile(string(c), unix.O_PATH|unix.O_DIRECTORY, 0)
}

// kill ends every process in the group and below, at once and without a race against forks. A group that is gone counts as
// killed; so is one of version 1, which only shadows another.
func (c cgroup) kill() error {
	f, err := os.OpenFile(filepath.Join(string(c), "cgroup.kill"), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("1")
	if errors.Is(err, unix.ENODEV) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// remove kills what is in the group, waits until it is gone and removes the group and all below it.
func (c cgroup) remove(ctx context.Context) error {
	if err := c.kill(); err != nil {
		return fmt.Errorf("kill control group: %w", err)
	}
	return poll(ctx, pollInterval, "the control group "+string(c)+" to be empty", func() (bool, error) {
		dirs, err := c.tree()
		if err != nil {
			return false, err
		}
		for _, d := range slices.Backward(dirs) {
			err := os.Remove(d)
			if errors.Is(err, unix.EBUSY) {
				return false, nil
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
		}
		return true, nil
	})
}

// tree lists the group and all below it, parents first.
func (c cgroup) tree() ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(string(c), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	return dirs, err
}

// pids lists the processes in the group and below.
func (c cgroup) pids() ([]string, error) {
	dirs, err := c.tree()
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, d := range dirs {
		text, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids, nil
}

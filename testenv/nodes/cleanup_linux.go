package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cleanUp reclaims every node whose owner is gone, wherever it left a trace.
func (c cache) cleanUp(ctx context.Context) error {
	lock, err := lockFile(ctx, filepath.Join(c.dir, "cleanup.lock"))
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing was written to it
	names, err := c.instanceNames()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, teardownTimeout)
	defer cancel()
	for _, name := range names {
		owner, ok := ownerOf(name)
		if !ok || owner.alive() {
			continue
		}
		inst := instance{name: name, dir: filepath.Join(c.runDir(), name)}
		if err := reclaim(ctx, inst); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.RemoveAll(inst.dir); err != nil {
			return err
		}
	}
	return nil
}

// instanceNames lists the nodes, of any owner, that have a directory, a control group or a mount.
func (c cache) instanceNames() ([]string, error) {
	roots, err := cgroupRoots("cgroup2", "cgroup")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, dir := range append(roots, c.runDir()) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			found[e.Name()] = true
		}
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		for part := range strings.SplitSeq(m.point, "/") {
			found[part] = true
		}
	}
	maps.DeleteFunc(found, func(name string, _ bool) bool {
		_, ok := ownerOf(name)
		return !ok
	})
	return slices.Sorted(maps.Keys(found)), nil
}

// reclaim frees all resources of a node on the host, except its directory: processes, control groups, mounts and
// systemd-nspawn's own files. It works from the name alone, so that it does the same for a node of this process
// and for one whose owner was killed at any point.
func reclaim(ctx context.Context, inst instance) error {
	group, err := cgroupOf(inst.name)
	if err != nil {
		return err
	}
	shadows, err := shadowsOf(inst.name)
	if err != nil {
		return err
	}
	for _, g := range append([]cgroup{group}, shadows...) {
		if err := g.remove(ctx); err != nil {
			return err
		}
	}
	// Found by the mounted root's identity, so before it is unmounted.
	if err := removeNspawnLock(filepath.Join(inst.dir, "root")); err != nil {
		return err
	}
	if err := unmountAll(ctx, inst.name); err != nil {
		return err
	}
	var errs []error
	for _, dir := range []string{"propagate", "unix-export"} {
		errs = append(errs, os.RemoveAll(filepath.Join(nspawnRuntime, dir, inst.name)))
	}
	return errors.Join(errs...)
}

const nspawnRuntime = "/run/systemd/nspawn"

// removeNspawnLock removes the lock on a root directory that a killed systemd-nspawn could not remove. No other process can
// hold it: the directory is the node's own.
func removeNspawnLock(root string) error {
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return fmt.Errorf("%s: %w", root, err)
	}
	err := os.Remove(filepath.Join(nspawnRuntime, "locks", fmt.Sprintf("inode-%d:%d", st.Dev, st.Ino)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// unmountAll unmounts, last made first, everything at a path that has the name in it. A killed process releases
// its mounts a little after its end, so a busy mount is tried again.
func unmountAll(ctx context.Context, name string) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if !slices.Contains(strings.Split(m.point, "/"), name) {
			continue
		}
		err := poll(ctx, pollInterval, m.point+" to be unmounted", func() (bool, error) {
			err := unix.Unmount(m.point, unix.UMOUNT_NOFOLLOW)
			if errors.Is(err, unix.EBUSY) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

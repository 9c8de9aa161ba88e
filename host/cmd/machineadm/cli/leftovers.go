package cli

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/state"
)

// newWrites returns the record of the files that the run writes.
func (p *place) newWrites() *state.Writes {
	own := []string{filepath.Join(p.runDir, state.ReportFile), filepath.Join(p.runDir, state.DetailsFile)}
	if p.root == "" {
		own = append(append(own, newSentinel().Path()), resume.Files()...)
	}
	return state.NewWrites(p.root, p.stateDir, own...)
}

// cleanUp removes leftovers of killed runs. A failure is a warning; the next run tries again.
func (p *place) cleanUp() {
	if p.writes == nil {
		return
	}
	p.warnLeft(p.writes.CleanUp())
	for _, parent := range append([]string{os.TempDir()}, moreTempDirs()...) {
		parent, err := checkTemporary(parent)
		if err != nil {
			continue // not used by any run
		}
		if err := removeStale(parent); err != nil {
			p.log.Warn("directories of an interrupted run cannot be removed", "error", err)
		}
	}
}

// endWrites clears the record of written files after all plugins have ended.
func (p *place) endWrites() {
	if p.writes != nil {
		p.warnLeft(p.writes.Clear())
	}
}

func (p *place) warnLeft(err error) {
	if err != nil {
		p.log.Warn("files of an interrupted run, which can contain secrets, cannot be removed", "error", err)
	}
}

// removeStale removes the unlocked temporary directories of this user below parent, which killed runs left.
func removeStale(parent string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil // no directory for temporary files
	}
	defer func() { _ = root.Close() }() // opened for reading only
	found, err := fs.Glob(root.FS(), runPrefix+"*")
	if err != nil {
		return err
	}
	for _, name := range found {
		dir := filepath.Join(parent, name)
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() || !mine(info) || state.Held(ownerLock(dir)) {
			continue
		}
		lock, err := state.Acquire(ownerLock(dir))
		if err != nil {
			continue // in use, or removed
		}
		err = root.RemoveAll(name)
		_ = lock.Release() // the directory is removed
		_ = os.Remove(ownerLock(dir))
		if err != nil {
			return err
		}
	}
	return nil
}

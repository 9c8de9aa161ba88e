package session

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/state"
)

// newWrites returns the record of the files that the run writes.
func (s *Session) newWrites() *state.Writes {
	own := []string{filepath.Join(s.runDir, state.ReportFile), filepath.Join(s.runDir, state.DetailsFile)}
	if s.root == "" {
		own = append(append(own, newSentinel().Path()), resume.Files()...)
	}
	return state.NewWrites(s.root, s.stateDir, own...)
}

// cleanUp removes leftovers of killed runs. A failure is a warning; the next run tries again.
func (s *Session) cleanUp() {
	if s.writes == nil {
		return
	}
	s.warnLeft(s.writes.CleanUp())
	for _, parent := range append([]string{os.TempDir()}, moreTempDirs()...) {
		parent, err := checkTemporary(parent)
		if err != nil {
			continue // not used by any run
		}
		if err := removeStale(parent); err != nil {
			s.o.Log.Warn("directories of an interrupted run cannot be removed", "error", err)
		}
	}
}

// endWrites clears the record of written files after all plugins have ended.
func (s *Session) endWrites() {
	if s.writes != nil {
		s.warnLeft(s.writes.Clear())
	}
}

func (s *Session) warnLeft(err error) {
	if err != nil {
		s.o.Log.Warn("files of an interrupted run, which can contain secrets, cannot be removed", "error", err)
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

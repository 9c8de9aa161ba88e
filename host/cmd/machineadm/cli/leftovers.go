package cli

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/resume"
)

// newWrites is the record of the files that the run writes.
func (p *place) newWrites() *journal.Writes {
	own := []string{filepath.Join(p.runDir, journal.ReportFile), filepath.Join(p.runDir, journal.DetailsFile)}
	if p.root == "" {
		own = append(append(own, newSentinel().Path()), resume.Files()...)
	}
	return journal.NewWrites(p.root, p.stateDir, own...)
}

// cleanUp removes what killed runs left. What cannot be removed does not stop the run: the next one tries again.
func (p *place) cleanUp() {
	if p.writes == nil {
		return
	}
	p.warnLeft(p.writes.CleanUp())
	for _, parent := range append([]string{os.TempDir()}, moreTempDirs()...) {
		parent, err := checkTemporary(parent)
		if err != nil {
			continue // no run has used it
		}
		if err := sweepTemporary(parent); err != nil {
			p.log.Warn("directories of an interrupted run are left", "error", err)
		}
	}
}

// endWrites ends the record of what the run writes: its plugins have ended.
func (p *place) endWrites() {
	if p.writes != nil {
		p.warnLeft(p.writes.Clear())
	}
}

func (p *place) warnLeft(err error) {
	if err != nil {
		p.log.Warn("files of an interrupted run are left and can hold secrets", "error", err)
	}
}

// sweepTemporary removes the directories below parent of runs that were killed: this user's, and not locked.
func sweepTemporary(parent string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil // no directory for temporary files
	}
	defer func() { _ = root.Close() }() // only looked into
	found, err := fs.Glob(root.FS(), runPrefix+"*")
	if err != nil {
		return err
	}
	for _, name := range found {
		dir := filepath.Join(parent, name)
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() || !mine(info) || journal.Held(ownerLock(dir)) {
			continue
		}
		lock, err := journal.Acquire(ownerLock(dir))
		if err != nil {
			continue // its owner lives, or it is gone
		}
		err = root.RemoveAll(name)
		_ = lock.Release() // of what is gone
		_ = os.Remove(ownerLock(dir))
		if err != nil {
			return err
		}
	}
	return nil
}

// removeOwned removes a temporary directory of this run, which holds nothing that matters.
func removeOwned(dir string, lock *journal.Lock) {
	_ = os.RemoveAll(dir)
	_ = lock.Release()
	_ = os.Remove(ownerLock(dir)) // where that is another file
}

// there says whether a directory is there: a lock of one that is gone can be a new file in its place.
func there(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

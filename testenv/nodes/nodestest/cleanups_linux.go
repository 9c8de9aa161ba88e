package nodestest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// HoldCleanUps keeps every Boot on this machine, also of other test processes, from cleaning up until it is released.
func HoldCleanUps(t *testing.T) (release func()) {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(user, "machineadm-testenv/cleanup.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() {
		once.Do(func() {
			if err := lock.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(release)
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return release
}

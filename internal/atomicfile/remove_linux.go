package atomicfile

import (
	"errors"
	"os"
	"runtime"
	"strings"
)

// Remove removes a leftover from dir. What a live process holds, and what this package cannot have made, stays.
func Remove(dir *os.File, leftover string) error {
	defer runtime.KeepAlive(dir)
	w := writer{dir: int(dir.Fd()), dirName: dir.Name(), temporary: leftover}
	var err error
	switch {
	case strings.HasSuffix(leftover, linkSuffix):
		err = removeLink(w.dir, leftover)
	case Leftover(leftover):
		err = w.clearStale()
	}
	if err != nil && !errors.Is(err, ErrForeign) {
		return failed("remove", dir.Name(), leftover, "clean up after an interrupted write", err)
	}
	return nil
}

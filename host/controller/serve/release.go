package serve

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"github.com/go-logr/logr"
)

// releases are the files of a directory. They are signed, so that they need no authorization.
type releases struct {
	dir       string
	log       logr.Logger
	downloads chan struct{} // has an element for each file that is sent
}

// open returns the answer with a file. What is not below the directory, also behind a link, is not found.
func (r *releases) open(name string) (a answer) {
	select {
	case r.downloads <- struct{}{}:
	default:
		return busy("too many downloads")
	}
	var file *os.File
	done := func() {
		if file != nil {
			_ = file.Close() // it was only read
		}
		<-r.downloads
	}
	defer func() {
		if a.done == nil {
			done()
		}
	}()
	root, err := os.OpenRoot(r.dir) // again each time: a link to another directory may have replaced it
	if err != nil {
		r.log.Error(err, "the directory of releases cannot be opened")
		return failure(http.StatusServiceUnavailable, "not available", "Retry-After", pause())
	}
	defer func() { _ = root.Close() }()                                // it was only read
	file, err = root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a FIFO would wait
	if err != nil {
		return r.absent(name, err)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return r.absent(name, err)
	}
	return answer{code: http.StatusOK, kind: "application/octet-stream", body: file, size: info.Size(), done: done}
}

// absent returns the answer for a file that cannot be read. The log has why, unless it does not exist.
func (r *releases) absent(name string, err error) answer {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Error(err, "a file of a release cannot be read", "file", name)
	}
	return failure(http.StatusNotFound, "no such file")
}

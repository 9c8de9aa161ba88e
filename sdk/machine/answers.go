package machine

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Answers holds the results of constant commands for the time of a process. A plan is followed by the plan of its apply, and a program
// that takes a tenth of a second to print its version would be started for both. The zero Answers is empty.
type Answers struct {
	mutex sync.Mutex
	known map[string]answer
}

// answer is the result of a command of a file.
type answer struct {
	file   fs.FileInfo
	result Result
}

// Runner returns a Runner that does not start the program of a constant command again while its file is the same.
func (a *Answers) Runner(r Runner) Runner { return &remembering{r, a} }

type remembering struct {
	Runner
	answers *Answers
}

// Run implements Runner.
func (r *remembering) Run(ctx context.Context, c Command) (Result, error) {
	path, file := r.fileOf(c)
	if file == nil {
		return r.Runner.Run(ctx, c)
	}
	key := strings.Join(append([]string{path}, c.Args...), "\x00")
	r.answers.mutex.Lock()
	known, ok := r.answers.known[key]
	r.answers.mutex.Unlock()
	if ok && os.SameFile(known.file, file) && known.file.Size() == file.Size() && known.file.ModTime().Equal(file.ModTime()) {
		return known.result, nil
	}
	result, err := r.Runner.Run(ctx, c)
	if err == nil {
		r.answers.mutex.Lock()
		defer r.answers.mutex.Unlock()
		if r.answers.known == nil {
			r.answers.known = map[string]answer{}
		}
		r.answers.known[key] = answer{file, result}
	}
	return result, err
}

// fileOf returns the file that decides alone about the result of a command, nil if there is none. A link or a script can lead to
// another program while its own file stays the same.
func (r *remembering) fileOf(c Command) (string, fs.FileInfo) {
	if !c.Constant {
		return "", nil
	}
	path := filepath.Join(c.Directory, c.Name)
	if c.Directory == "" {
		path, _ = r.Find(c.Name) // Run reports the error
	}
	file, err := os.Lstat(path)
	if err != nil || !file.Mode().IsRegular() || !isBinary(path) {
		return "", nil
	}
	return path, file
}

func isBinary(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	start := make([]byte, 4)
	_, err = f.Read(start)
	return err == nil && slices.ContainsFunc([]string{"\x7fELF", "MZ"}, func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) })
}

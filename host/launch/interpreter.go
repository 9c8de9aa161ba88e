package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// InterpreterError says that a plugin cannot be executed because the program that runs it is missing.
type InterpreterError struct{ Interpreter string }

// Error names the interpreter.
func (e *InterpreterError) Error() string {
	return fmt.Sprintf("its interpreter %s does not exist on this machine", e.Interpreter)
}

// missingInterpreter returns an InterpreterError where that is why a plugin does not start, else err.
func missingInterpreter(file io.ReaderAt, environment []string, err error) error {
	path, command := interpreter(file)
	if path == "" {
		return err
	}
	if _, e := os.Stat(path); errors.Is(e, fs.ErrNotExist) {
		return &InterpreterError{path}
	}
	if filepath.Base(path) != "env" || command == "" {
		return err
	}
	for _, variable := range environment {
		directories, found := strings.CutPrefix(variable, "PATH=")
		if found && !slices.ContainsFunc(filepath.SplitList(directories), func(dir string) bool {
			_, e := os.Stat(filepath.Join(dir, command))
			return e == nil
		}) {
			return &InterpreterError{command}
		}
	}
	return err
}

// interpreter is the program that the kernel executes instead of a file: that of the first line of a script, with the
// first word that env(1) would execute, or the dynamic linker of an ELF program. It is empty where there is none.
func interpreter(file io.ReaderAt) (path, command string) {
	head := make([]byte, 256) // the kernel reads no more either (execve(2))
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", ""
	}
	head = head[:n]
	if script, found := bytes.CutPrefix(head, []byte("#!")); found {
		line, _, _ := bytes.Cut(script, []byte("\n"))
		words := strings.Fields(string(line))
		if len(words) == 0 {
			return "", ""
		}
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				command = word
				break
			}
		}
		return words[0], command
	}
	return elfInterpreter(file, head), ""
}

// elfInterpreter is the PT_INTERP of a program, read as elf(5) says.
func elfInterpreter(file io.ReaderAt, head []byte) string {
	const interp, longest = 3, 4096
	if len(head) < 64 || string(head[:4]) != "\x7fELF" {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[5] == 2 {
		order = binary.BigEndian
	}
	wide := head[4] == 2
	word := func(b []byte, at32, at64 int) uint64 {
		if wide {
			return order.Uint64(b[at64:])
		}
		return uint64(order.Uint32(b[at32:]))
	}
	start, counts := word(head, 28, 32), head[42:]
	if wide {
		counts = head[54:]
	}
	size, count := int64(order.Uint16(counts)), int64(order.Uint16(counts[2:]))
	for i := range count {
		header := make([]byte, 56)
		if size < 32 || start > 1<<40 {
			return ""
		}
		if n, _ := file.ReadAt(header, int64(start)+i*size); n < int(min(size, 56)) { //nolint:gosec // bounded just above
			return ""
		}
		if order.Uint32(header) != interp {
			continue
		}
		offset, length := word(header, 4, 8), word(header, 16, 32)
		if offset > 1<<40 || length > longest {
			return ""
		}
		name := make([]byte, length)
		if _, err := file.ReadAt(name, int64(offset)); err != nil && !errors.Is(err, io.EOF) { //nolint:gosec // as above
			return ""
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		return string(name)
	}
	return ""
}

package launch

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxInterpreter is PATH_MAX.
const maxInterpreter = 4096

// InterpreterError reports a plugin that cannot be executed because its interpreter is missing.
type InterpreterError struct{ Interpreter string }

// Error returns the interpreter.
func (e *InterpreterError) Error() string {
	return fmt.Sprintf("its interpreter %s does not exist on this machine", e.Interpreter)
}

// missingInterpreter returns an InterpreterError if the file's interpreter does not exist, else err.
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

// interpreter returns the program that the kernel executes for a file: the one in a script's first line, with the command
// that env(1) would execute, or the dynamic linker of an ELF program.
func interpreter(file io.ReaderAt) (path, command string) {
	head := make([]byte, 256) // as many as the kernel reads (execve(2))
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
	return elfInterpreter(file), ""
}

// elfInterpreter returns the dynamic linker of an ELF program, or "".
func elfInterpreter(file io.ReaderAt) string {
	program, err := elf.NewFile(file)
	if err != nil {
		return ""
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(io.LimitReader(p.Open(), maxInterpreter)) // a damaged program has no interpreter
			name, _, _ = bytes.Cut(name, []byte{0})
			return string(name)
		}
	}
	return ""
}

package process

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Startable implements Suite.Startable.
func Startable(binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	info, err := os.Stat(binary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no plugin %s: build it, or correct the path", binary)
	case err != nil:
		return fmt.Errorf("read the plugin: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory: give the plugin's own file", binary)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: give the plugin's own file", binary)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return fmt.Errorf("%s cannot be executed: run chmod +x %s", binary, binary)
	}
	if err := interpreted(binary); err != nil {
		return err
	}
	switch err := startOnce(binary); {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is no program for %s/%s, and no script whose first line names its interpreter, such as #!/usr/bin/python3: "+
			"build it for this machine, or add the line", binary, runtime.GOOS, runtime.GOARCH)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s names a dynamic loader that does not exist: build it for this machine, or install its libraries", binary)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be executed by this user or from this file system: move it, or change its mode: %w", binary, err)
	}
	return nil // the first check reports it
}

// startOnce starts a program and ends it. A file that was just written can be busy for a moment (ETXTBSY): a child that
// another goroutine forks meanwhile has it open until its exec.
func startOnce(binary string) error {
	const most, pause = 2 * time.Second, 5 * time.Millisecond
	for deadline := time.Now().Add(most); ; time.Sleep(pause) {
		command := exec.Command(binary) //nolint:noctx // ended at once
		command.Env = Environment(os.TempDir())
		err := command.Start()
		if err == nil {
			_ = command.Process.Kill() // it may have ended
			_ = command.Wait()         // its status has no meaning
		}
		if !errors.Is(err, syscall.ETXTBSY) || time.Now().After(deadline) {
			return err
		}
	}
}

// interpreted checks the first line of a script; other programs have none.
func interpreted(binary string) error {
	file, err := os.Open(binary)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a program need not be readable
	}
	if err != nil {
		return fmt.Errorf("read the plugin: %w", err)
	}
	line, _ := bufio.NewReaderSize(file, 256).ReadSlice('\n') // its error says that the line is long or the last
	if err := file.Close(); err != nil {
		return fmt.Errorf("read the plugin: %w", err)
	}
	first, script := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(first)
	if !script || len(words) == 0 || runtime.GOOS == "windows" {
		return nil
	}
	missing := fmt.Errorf("the first line of %s names the interpreter %s, which does not exist: install it, or correct the line",
		binary, strings.Join(words, " "))
	if strings.HasSuffix(first, "\r\n") {
		return fmt.Errorf("the first line of %s ends with a carriage return: write the file with line feeds alone", binary)
	}
	if _, err := os.Stat(words[0]); errors.Is(err, fs.ErrNotExist) {
		return missing
	}
	if filepath.Base(words[0]) == "env" && len(words) == 2 && !onPath(words[1]) {
		return missing
	}
	return nil
}

// onPath reports whether env(1) finds a program by the PATH of a plugin.
func onPath(name string) bool {
	list := ""
	for _, variable := range Environment("/") {
		if value, is := strings.CutPrefix(variable, "PATH="); is {
			list = value
		}
	}
	return slices.ContainsFunc(filepath.SplitList(list), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

package state

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// role is an environment variable that makes this test binary a helper process: "hold PATH" takes a lock, "keep PATH" only
// keeps its inherited descriptors; both end with their standard input. "send DIR" keeps and removes reports until it is killed.
const role = "STATE_TEST_ROLE"

func TestMain(m *testing.M) {
	if name, path, ok := strings.Cut(os.Getenv(role), " "); ok {
		os.Exit(play(name, path))
	}
	os.Exit(m.Run())
}

func play(name, path string) int {
	if name == "hold" {
		if _, err := Acquire(path); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("ready")
	for name == "send" {
		box := OutboxIn(path)
		o, err := box.Keep(outgoing(), time.Unix(1, 0))
		if err == nil {
			err = errors.Join(box.Update(o), box.Remove(o.Sequence))
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	return 0
}

// process starts this binary in a role, and returns its ID and a function that ends it.
func process(t *testing.T, name, path string, inherit ...*os.File) (pid int, end func()) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), role+"="+name+" "+path)
	command.ExtraFiles = inherit
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q (%v)", line, err)
	}
	return command.Process.Pid, end
}

// tree lists everything below dir: modes, names, and the contents of files.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%v %s\n", info.Mode(), name)
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%q %s\n", data, info.ModTime().Format(time.RFC3339Nano))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func opened(t *testing.T, dir, machine string) *Store {
	t.Helper()
	store, err := Open(dir, machine)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func wantState(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, ErrState) {
		t.Errorf("%v, want an ErrState", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

package machine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func TestStateSaveAndDelete(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := machine.NewState(filepath.Join(root, "plugin"))
	if _, err := s.Load("intent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v before anything was saved, want fs.ErrNotExist", err)
	}
	must(t, s.Delete("intent"))
	if got := machinetest.Tree(t, root); got != "" {
		t.Errorf("a query created files:\n%s", got)
	}
	withUmask(t, 0, func() error {
		return errors.Join(s.Save("intent", []byte("first")), s.Save("intent", []byte("second")), s.Save("b.json", nil))
	})
	if data, err := s.Load("intent"); err != nil || string(data) != "second" {
		t.Errorf("loaded %q, %v", data, err)
	}
	want := "drwx------ /plugin\n-rw------- /plugin/b.json e3b0c44298fc 0\n-rw------- /plugin/intent 16367aacb67a 6\n"
	if diff := machinetest.Diff(want, machinetest.Tree(t, root)); diff != "" {
		t.Error(diff)
	}
	must(t, s.Delete("intent"), s.Delete("intent"))
	if _, err := s.Load("intent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v after it was deleted, want fs.ErrNotExist", err)
	}
}

func TestStateWithoutDirectory(t *testing.T) {
	t.Parallel()
	for _, s := range []*machine.State{nil, {}, machine.NewState("")} {
		if _, err := s.Load("x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Load: error %v, want fs.ErrNotExist", err)
		}
		if err := s.Save("x", nil); err == nil {
			t.Error("Save succeeded")
		}
		must(t, s.Delete("x"))
	}
}

func TestStateNames(t *testing.T) {
	t.Parallel()
	s := machine.NewState(t.TempDir())
	for _, name := range []string{"", ".", "..", "a/b", "../a", "/a", ".hidden", "a\x00", "a b", "-a"} {
		_, load := s.Load(name)
		for _, err := range []error{load, s.Save(name, nil), s.Delete(name)} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q: error %v, want fs.ErrInvalid", name, err)
			}
		}
	}
}

func TestStateThatOthersCanRead(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(dir string) error{
		"open":   func(dir string) error { return os.Chmod(dir, 0o750) },
		"a link": func(dir string) error { return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir)) },
		"a file": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		dir := filepath.Join(t.TempDir(), "plugin")
		s := machine.NewState(dir)
		must(t, s.Save("x", []byte("x")), corrupt(dir))
		if _, err := s.Load("x"); !errors.Is(err, machine.ErrUnsafe) {
			t.Errorf("%s: Load: error %v, want ErrUnsafe", name, err)
		}
		if err := s.Save("x", nil); !errors.Is(err, machine.ErrUnsafe) {
			t.Errorf("%s: Save: error %v, want ErrUnsafe", name, err)
		}
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if _, err := machine.NewState(dir).Load("pipe"); !errors.Is(err, machine.ErrNotRegular) {
		t.Errorf("error %v for a pipe, want ErrNotRegular", err)
	}
}

package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteFileCreatesAndReplaces(t *testing.T) {
	t.Parallel()
	for name, contents := range map[string]struct{ first, second string }{
		"longer":  {"short", strings.Repeat("long ", 100_000)},
		"shorter": {strings.Repeat("long ", 100_000), "short"},
		"empty":   {"something", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file.conf")
			for _, want := range []string{contents.first, contents.second} {
				if err := WriteFile(path, []byte(want), Options{Mode: 0o644}); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, []byte(want)) {
					t.Errorf("read %d bytes back, wrote %d", len(got), len(want))
				}
			}
			wantOnly(t, filepath.Dir(path), "file.conf")
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", nameMax)
	for name, valid := range map[string]bool{
		"a": true, ".hidden": true, "99-x.conf": true, long: true, "ends.machineadm-tmp": true,
		"": false, ".": false, "..": false, "a/b": false, "/a": false, "a\x00b": false, ".x.machineadm-tmp": false,
		".x.machineadm-tmplink": false,
	} {
		dir, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = Write(dir, name, []byte("x"), Options{Mode: 0o600})
		if valid != (err == nil) {
			t.Errorf("Write(%.40q) = %v, want valid %v", name, err, valid)
		}
		if !valid && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, ErrReserved) {
			t.Errorf("Write(%.40q) = %v, want fs.ErrInvalid or ErrReserved", name, err)
		}
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTemporaryNameFitsAndIsDeterministic(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("a", nameMax), strings.Repeat("a", nameMax-1)+"b"
	if got := temporaryName("99-x.conf", temporarySuffix); got != ".99-x.conf.machineadm-tmp" {
		t.Errorf("the temporary name is %q: releases must agree on it, to find what another one left", got)
	}
	if temporaryName(first, temporarySuffix) == temporaryName(second, temporarySuffix) {
		t.Error("two long names share a temporary name")
	}
	for _, name := range []string{"a", first} {
		temporary := temporaryName(name, temporarySuffix)
		if len(temporary) > nameMax || !Reserved(temporary) {
			t.Errorf("temporary name %q does not fit or is not reserved", temporary)
		}
	}
}

func TestErrorsNameTheFileAndTheStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "occupied")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(target, []byte("secret"), Options{Mode: 0o600})
	if err == nil {
		t.Fatal("a directory was replaced")
	}
	for _, want := range []string{target, "put the new file in place"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q quotes the contents", err)
	}
	wantOnly(t, dir, "occupied")
}

// wantOnly fails unless the directory holds exactly these names: nothing temporary may stay behind.
func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
		return
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the directory holds %q, want %q", got, names)
	}
}

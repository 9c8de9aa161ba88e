package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program makes a file that was left alone for long enough, and returns its path and its digest. Nobody can set a change
// time: so the test tells Digests that it is older than it is.
func program(t *testing.T, content string) (path, sum string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "plugin")
	replace(t, path, content)
	digest := sha256.Sum256([]byte(content))
	return path, hex.EncodeToString(digest[:])
}

func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, d *Digests, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := d.Of(path, file)
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// patient takes a file for settled at once.
func patient(path string) *Digests {
	d := OpenDigests(path)
	d.settled = 0
	return d
}

// TestDigestsAreRemembered: a second run reads nothing, which shows by what was written into its memory.
func TestDigestsAreRemembered(t *testing.T) {
	memory := filepath.Join(t.TempDir(), "digests.json")
	path, want := program(t, strings.Repeat("x", 3*beginningBytes))
	d := patient(memory)
	if got := digestOf(t, d, path); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if err := d.Keep(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(memory)
	if err != nil {
		t.Fatal(err)
	}
	marked := strings.Repeat("00", sha256.Size)
	replace(t, memory, strings.Replace(string(data), want, marked, 1))
	d = patient(memory)
	if got := digestOf(t, d, path); got != marked {
		t.Errorf("digest %s, want the one that was remembered", got)
	}
	before, err := os.Stat(memory)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Keep(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(memory); err != nil || !os.SameFile(before, after) {
		t.Errorf("what did not change was written again (%v)", err)
	}
	if info, err := os.Stat(memory); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the memory's mode is %v (%v)", info.Mode(), err)
	}
}

// TestDigestsOfAnotherFile: whatever way a file becomes another one, its digest is its own.
func TestDigestsOfAnotherFile(t *testing.T) {
	const old = "#!/bin/sh\necho old\n"
	for name, change := range map[string]func(t *testing.T, path string){
		"written in place, same size and time": func(t *testing.T, path string) {
			t.Helper()
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			replace(t, path, strings.Replace(old, "old", "new", 1))
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"renamed over": func(t *testing.T, path string) {
			t.Helper()
			replace(t, path+".new", strings.Replace(old, "old", "new", 1))
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"longer": func(t *testing.T, path string) { t.Helper(); replace(t, path, old+old) },
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := program(t, old)
			d := patient(filepath.Join(t.TempDir(), "digests.json"))
			digestOf(t, d, path)
			change(t, path)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := sha256.Sum256(content)
			if got := digestOf(t, d, path); got != hex.EncodeToString(want[:]) {
				t.Errorf("digest %s, want %x", got, want)
			}
		})
	}
}

// TestDigestsOfAnImage: on a read-only image everything but the content can be as it was in the image before.
func TestDigestsOfAnImage(t *testing.T) {
	before, old := program(t, "one build....")
	now, want := program(t, "another build")
	d := patient(filepath.Join(t.TempDir(), "digests.json"))
	digestOf(t, d, before)
	digestOf(t, d, now)
	one, another := d.known[before], d.known[now]
	if one.SHA256 != old || another.SHA256 != want {
		t.Fatalf("remembered are %+v", d.known)
	}
	another.File.Beginning, another.SHA256 = one.File.Beginning, old
	d.known[now] = another
	if got := digestOf(t, d, now); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestDigestsOfAFileInTheMaking: a file that was only just written can change again within the same tick of the clock.
func TestDigestsOfAFileInTheMaking(t *testing.T) {
	memory := filepath.Join(t.TempDir(), "digests.json")
	path, want := program(t, "new")
	d := OpenDigests(memory)
	if got := digestOf(t, d, path); got != want || len(d.known) > 0 {
		t.Errorf("digest %s, want %s; remembered is %v", got, want, d.known)
	}
	if err := d.Keep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(memory); !os.IsNotExist(err) {
		t.Errorf("nothing was to be remembered: %v", err)
	}
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	d.settled = time.Since(time.Unix(0, s.Ctim.Nano())) / 2
	digestOf(t, d, path)
	if len(d.known) != 1 {
		t.Error("a file that was left alone is not remembered")
	}
}

// TestDamagedDigests: they are no reason to fail.
func TestDamagedDigests(t *testing.T) {
	path, want := program(t, "x")
	for _, damage := range []string{"", "null", "[]", "{", `{"` + path + `": 5}`, `{"` + path + `": {"sha256": "x"}}`} {
		memory := filepath.Join(t.TempDir(), "digests.json")
		replace(t, memory, damage)
		d := patient(memory)
		if got := digestOf(t, d, path); got != want {
			t.Errorf("%q: digest %s, want %s", damage, got, want)
		}
		if err := d.Keep(); err != nil {
			t.Error(err)
		}
	}
	if got := digestOf(t, nil, path); got != want {
		t.Errorf("without a memory: digest %s, want %s", got, want)
	}
	if err := (*Digests)(nil).Keep(); err != nil {
		t.Error(err)
	}
}

// TestManyDigests: those of plugins that are gone make room.
func TestManyDigests(t *testing.T) {
	memory := filepath.Join(t.TempDir(), "digests.json")
	path, _ := program(t, "x")
	d := patient(memory)
	for range manyDigests {
		d.known[filepath.Join(t.TempDir(), "gone")] = remembered{}
	}
	digestOf(t, d, path)
	if err := d.Keep(); err != nil {
		t.Fatal(err)
	}
	if len(d.known) != 1 || len(OpenDigests(memory).known) != 1 {
		t.Errorf("%d are remembered, want the one that is there", len(d.known))
	}
}

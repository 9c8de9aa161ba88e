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

// program creates a file and returns its path and digest. A change time cannot be set, so openAnyAge accepts any age.
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

// openAnyAge returns Digests that cache a file of any age.
func openAnyAge(path string) *Digests {
	d := OpenDigests(path)
	d.settled = 0
	return d
}

// TestDigestsAreCached: a second run uses the cached digest, which the test replaces by a marker.
func TestDigestsAreCached(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "digests.json")
	path, want := program(t, strings.Repeat("x", 3*beginningBytes))
	d := openAnyAge(cache)
	if got := digestOf(t, d, path); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	marked := strings.Repeat("00", sha256.Size)
	replace(t, cache, strings.Replace(string(data), want, marked, 1))
	d = openAnyAge(cache)
	if got := digestOf(t, d, path); got != marked {
		t.Errorf("digest %s, want the cached one", got)
	}
	before, err := os.Stat(cache)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(cache); err != nil || !os.SameFile(before, after) {
		t.Errorf("an unchanged cache was written again (%v)", err)
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the cache is %v (%v)", info.Mode(), err)
	}
}

// TestDigestsOfAChangedFile: any change of a file invalidates its entry.
func TestDigestsOfAChangedFile(t *testing.T) {
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
			d := openAnyAge(filepath.Join(t.TempDir(), "digests.json"))
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

// TestDigestsOfAnImage: on a read-only image, two versions can differ in content only.
func TestDigestsOfAnImage(t *testing.T) {
	before, old := program(t, "one build....")
	now, want := program(t, "another build")
	d := openAnyAge(filepath.Join(t.TempDir(), "digests.json"))
	digestOf(t, d, before)
	digestOf(t, d, now)
	one, another := d.cached[before], d.cached[now]
	if one.SHA256 != old || another.SHA256 != want {
		t.Fatalf("cached: %+v", d.cached)
	}
	another.File.Beginning, another.SHA256 = one.File.Beginning, old
	d.cached[now] = another
	if got := digestOf(t, d, now); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestDigestsOfAFreshFile: a fresh file can change again within one tick of the clock, so it is not cached.
func TestDigestsOfAFreshFile(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "digests.json")
	path, want := program(t, "new")
	d := OpenDigests(cache)
	if got := digestOf(t, d, path); got != want || len(d.cached) > 0 {
		t.Errorf("digest %s, want %s; cached: %v", got, want, d.cached)
	}
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cache); !os.IsNotExist(err) {
		t.Errorf("a cache was written: %v", err)
	}
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	d.settled = time.Since(time.Unix(0, s.Ctim.Nano())) / 2
	digestOf(t, d, path)
	if len(d.cached) != 1 {
		t.Error("a settled file is not cached")
	}
}

// TestDamagedDigests: a damaged cache is empty.
func TestDamagedDigests(t *testing.T) {
	path, want := program(t, "x")
	for _, damage := range []string{"", "null", "[]", "{", `{"` + path + `": 5}`, `{"` + path + `": {"sha256": "x"}}`} {
		cache := filepath.Join(t.TempDir(), "digests.json")
		replace(t, cache, damage)
		d := openAnyAge(cache)
		if got := digestOf(t, d, path); got != want {
			t.Errorf("%q: digest %s, want %s", damage, got, want)
		}
		if err := d.Save(); err != nil {
			t.Error(err)
		}
	}
	if got := digestOf(t, nil, path); got != want {
		t.Errorf("without a cache: digest %s, want %s", got, want)
	}
}

// TestSaveDropsRemovedPlugins: a removed plugin leaves no entry.
func TestSaveDropsRemovedPlugins(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "digests.json")
	path, _ := program(t, "x")
	d := openAnyAge(cache)
	for range 3 {
		d.cached[filepath.Join(t.TempDir(), "gone")] = entry{}
	}
	digestOf(t, d, path)
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if len(d.cached) != 1 || len(OpenDigests(cache).cached) != 1 {
		t.Errorf("%d entries, want the one of the existing file", len(d.cached))
	}
}

package state

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const pendingCanary = "c4n4ry-of-a-waiting-run"

// waiting is a run with every field set.
func waiting() Pending {
	return Pending{
		Resting: true, Version: pendingVersion, StreamDigest: "00112233", BootID: "c0ffee00", File: "/run/node.yaml", Phase: "all", Timeout: time.Hour,
		PluginDirs: []string{"/opt/plugins"}, PluginPath: "/usr/bin", Proxies: []string{"HTTP_PROXY=http://proxy:3128"},
		Stream: []byte("token: {value: " + pendingCanary + "}\xff\r\n"),
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	wantFull(t, "pending", reflect.ValueOf(waiting()))
	store := opened(t, filepath.Join(t.TempDir(), "state"), "machine-1")
	if got, err := store.Pending(); err != nil || got != nil {
		t.Fatalf("before anything waits: %+v (%v)", got, err)
	}
	if err := store.KeepPending(waiting()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(store.Dir(), PendingFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	for range 2 {
		got, err := opened(t, store.Dir(), "machine-1").Pending()
		if err != nil || got == nil || got.Resting {
			t.Fatalf("read back as %+v (%v)", got, err)
		}
		if err := store.KeepPending(*got); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := store.RestPending(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := store.Pending(); err != nil || !reflect.DeepEqual(*got, waiting()) || exists(t, path) {
			t.Errorf("at rest: %+v (%v)", got, err)
		}
		if err := store.KeepPending(waiting()); err != nil || exists(t, filepath.Join(store.Dir(), RestingFile)) {
			t.Errorf("it rests and waits at once (%v)", err)
		}
	}
	if err := store.RestPending(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := store.ForgetPending(); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Pending(); err != nil || got != nil {
			t.Errorf("it is still there: %+v (%v)", got, err)
		}
	}
}

func TestDamagedPending(t *testing.T) {
	t.Parallel()
	store := opened(t, filepath.Join(t.TempDir(), "state"), "machine-1")
	if err := store.KeepPending(waiting()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(store.Dir(), PendingFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "truncated": string(whole[:len(whole)/2]), "null": "null", "a list": "[]", "wrong type": `{"version": "` + pendingCanary + `"}`,
		"without the stream": `{"version": 1, "generation": "` + pendingCanary + `", "file": "x", "timeoutNanoseconds": 1}`,
		"no timeout":         strings.Replace(string(whole), `"timeoutNanoseconds":3600000000000`, `"timeoutNanoseconds":0`, 1),
	} {
		write(t, path, text, 0o600)
		got, err := store.Pending()
		wantState(t, err, PendingFile, "remove it")
		if got != nil || strings.Contains(err.Error(), pendingCanary) {
			t.Errorf("%s: %+v (%v)", name, got, err)
		}
	}
	write(t, path, `{"version": 2, "stream": {"`+pendingCanary+`": 1}}`, 0o600)
	_, err = store.Pending()
	wantState(t, err, PendingFile, "was written by a later release of machineadm (version 2, and this release reads 1): install that release")
}

func FuzzPending(f *testing.F) {
	f.Add([]byte(`{"version":1,"generation":"a","file":"b","timeoutNanoseconds":1,"stream":"Yw=="}`))
	f.Add([]byte(`{"version":1,"stream":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePending(data)
		if (p == nil) == (err == nil) {
			t.Fatalf("%+v and %v", p, err)
		}
		if err == nil && (len(p.Stream) == 0 || p.Timeout <= 0) {
			t.Errorf("taken for whole: %+v", p)
		}
	})
}

package atomicfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// writeLoop, in the environment, turns this test binary into a process that writes the named file until it is killed.
const writeLoop = "ATOMICFILE_TEST_WRITE_LOOP"

func TestMain(m *testing.M) {
	if path := os.Getenv(writeLoop); path != "" {
		os.Exit(loop(path))
	}
	os.Exit(m.Run())
}

func loop(path string) int {
	for i := byte('a'); ; i++ {
		if err := WriteFile(path, contents('a'+i%26), Options{Mode: 0o644}); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("written")
	}
}

// contents is large enough that a write takes a while, and distinguishes a whole file from a half one.
func contents(b byte) []byte { return bytes.Repeat([]byte{b}, 1<<20) }

func whole(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(data) != 1<<20 || !bytes.Equal(data, contents(data[0])) {
		return fmt.Errorf("%d bytes that are not one whole file", len(data))
	}
	return nil
}

// TestKill kills a writing process while its temporary file has different sizes.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	const rounds = 40
	leftBehind := 0
	for round := range rounds {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), writeLoop+"="+path)
		output, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(output).ReadString('\n')
		if err != nil || line != "written\n" {
			t.Fatalf("the child says %q (%v)", line, err)
		}
		temporary := filepath.Join(filepath.Dir(path), temporaryName("f", temporarySuffix))
		for wanted := int64(round) << 20 / rounds; ; runtime.Gosched() { // The writer does not end.
			if info, err := os.Lstat(temporary); err == nil && info.Size() >= wanted {
				break
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := child.Process.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := whole(path); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := os.Lstat(temporary); err == nil {
			leftBehind++
		}
	}
	if leftBehind == 0 {
		t.Error("no kill came in the middle of a write: this run proved nothing")
	}
	if err := WriteFile(path, contents('z'), Options{Mode: 0o644}); err != nil {
		t.Error(err)
	}
	wantOnly(t, filepath.Dir(path), "f")
}

// TestManyWriters has goroutines and another process write one file while a reader looks.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), writeLoop+"="+path)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 10 {
				if err := WriteFile(path, contents(byte('0'+i)), Options{Mode: 0o644}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() { writers.Wait(); close(finished) }()
	for reading := true; reading; {
		select {
		case <-finished:
			reading = false
		default:
		}
		if err := whole(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if err := errors.Join(other.Process.Kill()); err != nil {
		t.Error(err)
	}
	if _, err := other.Process.Wait(); err != nil {
		t.Error(err)
	}
	if err := WriteFile(path, contents('z'), Options{Mode: 0o644}); err != nil {
		t.Error(err)
	}
	wantOnly(t, filepath.Dir(path), "f")
}

func TestSymlinkReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	handle, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := handle.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Symlink("stale", filepath.Join(dir, temporaryName("link", linkSuffix))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "link"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 25 {
				if err := Symlink(handle, "/somewhere", "link"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if got, err := os.Readlink(filepath.Join(dir, "link")); err != nil || got != "/somewhere" {
		t.Errorf("link to %q (%v)", got, err)
	}
	wantOnly(t, dir, "link")
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Symlink(handle, "/somewhere", "taken"); err == nil {
		t.Error("a directory was replaced by a link")
	}
	wantOnly(t, dir, "link", "taken")
}

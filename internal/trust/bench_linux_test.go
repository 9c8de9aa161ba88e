package trust_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/trust"
)

// job is a file to be opened by a user.
type job struct {
	Path   string
	Stream bool
	// Directory checks a directory instead: private, shared, or the place of one that is to be made.
	Directory string `json:",omitempty"`
}

func (j job) do() string {
	policy := trust.Program()
	if j.Stream {
		policy = trust.Stream()
	}
	if j.Directory != "" {
		return j.directory()
	}
	file, err := trust.Open(j.Path, policy)
	if err != nil {
		var refused *trust.Error
		if errors.As(err, &refused) {
			return fmt.Sprintf("refused: %v\n  remedy: %s", err, refused.Remedy)
		}
		return "error: " + err.Error()
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return "error: " + err.Error()
	}
	return "opened: " + string(content)
}

func (j job) directory() string {
	if j.Directory == "place" {
		if err := trust.Parent(j.Path); err != nil {
			return err.Error()
		}
		return j.Path
	}
	path, err := trust.Directory(j.Path, j.Directory == "shared")
	if err != nil {
		return err.Error()
	}
	return path
}

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		var j job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			panic(err)
		}
		_, _ = io.WriteString(os.Stdout, j.do()) // the test misses it otherwise
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// as does the job in a process of the user.
func as(t *testing.T, uid uint32, j job) string {
	t.Helper()
	if int(uid) == os.Geteuid() {
		return j.do()
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	// Under a strict umask the test binary is its builder's alone.
	if err := os.Chmod("/proc/self/exe", 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{jobVariable + "=" + string(text), "GORACE=" + os.Getenv("GORACE")} // see testenv/tools/test.sh
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// bench is a directory with everything that the cases speak of. It stands in /tmp, a sticky directory, and everyone can
// go through it, unlike through t.TempDir.
func bench(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "trust-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(base, 0o755); err != nil { //nolint:gosec // others go through it
		t.Fatal(err)
	}
	return base
}

// setUp follows one instruction a line: `dir|file|fifo PATH MODE [UID]`, `link PATH TARGET [UID]`, `hard PATH OLD`.
// `~` means the bench.
func setUp(t *testing.T, base, instructions string) {
	t.Helper()
	for line := range strings.Lines(instructions) {
		words := strings.Split(strings.TrimSpace(strings.ReplaceAll(line, "~", base)), " ")
		if len(words) < 3 {
			continue
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "_", " ") // a blank in a name
		}
		if err := make1(words); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

func make1(words []string) (err error) {
	path, third := words[1], words[2]
	var mode uint32
	switch words[0] {
	case "dir":
		err = os.Mkdir(path, 0o700)
	case "file":
		err = os.WriteFile(path, []byte("content"), 0o600)
	case "fifo":
		err = unix.Mkfifo(path, 0o600)
	case "link":
		err = os.Symlink(third, path)
	case "hard":
		return os.Link(third, path)
	default:
		return errors.New("unknown instruction")
	}
	if err != nil {
		return err
	}
	if len(words) > 3 {
		var uid int
		if _, err := fmt.Sscan(words[3], &uid); err != nil {
			return err
		}
		if err := os.Lchown(path, uid, uid); err != nil {
			return err
		}
	}
	if words[0] == "link" {
		return nil
	}
	if _, err := fmt.Sscanf(third, "%o", &mode); err != nil {
		return err
	}
	return unix.Chmod(path, mode)
}

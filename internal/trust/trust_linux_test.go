package trust_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/internal/trust"
)

var update = flag.Bool("update", false, "write the golden files anew")

// jobVariable makes the test binary open files in the place of the test, as another user.
const jobVariable = "TRUST_TEST_JOB"

const (
	nobody   = 65534
	stranger = 1234
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
// `~` stands for the bench.
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

// cases are checked for root and for the user nobody, as a program and as a stream; the path is ~/x unless the case has another.
func cases() []struct{ name, setUp, ask string } {
	return []struct{ name, setUp, ask string }{
		{"root's own", "file ~/x 755", ""},
		{"in /tmp below a private directory", "dir ~/d 700 65534\nfile ~/d/x 700 65534", "~/d/x"},
		{"nobody's own", "dir ~/d 755 65534\nfile ~/d/x 755 65534", "~/d/x"},
		{"a stranger's", "file ~/x 755 1234", ""},
		{"written by its group", "file ~/x 775", ""},
		{"written by others", "file ~/x 757", ""},
		{"written by all", "file ~/x 777", ""},
		{"setuid, setgid and sticky say nothing", "file ~/x 7755", ""},
		{"a stranger's that all can write", "file ~/x 777 1234", ""},
		{"a hard link", "file ~/y 755\nhard ~/x ~/y", ""},
		{"a directory written by its group", "dir ~/d 775\nfile ~/d/x 755", "~/d/x"},
		{"a directory above written by others", "dir ~/d 757\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"a stranger's directory above", "dir ~/d 755 1234\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"right in a sticky directory", "dir ~/d 1777\nfile ~/d/x 755", "~/d/x"},
		{"a stranger's in a sticky directory", "dir ~/d 1777\nfile ~/d/x 755 1234", "~/d/x"},
		{"a sticky directory above", "dir ~/d 1777\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"a stranger's directory in a sticky one", "dir ~/d 1777\ndir ~/d/e 755 1234\nfile ~/d/e/x 755", "~/d/e/x"},
		{"a stranger's sticky directory", "dir ~/d 1777 1234\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"right in a stranger's sticky directory", "dir ~/d 1777 1234\nfile ~/d/x 755", "~/d/x"},
		{"sticky for a group", "dir ~/d 1775\nfile ~/d/x 755", "~/d/x"},
		{"sticky, but only its owner can write", "dir ~/d 1755\nfile ~/d/x 755", "~/d/x"},
		{"a link", "file ~/y 755\nlink ~/x ~/y", ""},
		{"a relative link", "dir ~/d 755\nfile ~/y 755\nlink ~/d/x ../y", "~/d/x"},
		{"a link above the root", "link ~/x ../../../../../.." + "~/y\nfile ~/y 755", ""},
		{"a link to a link", "file ~/z 755\nlink ~/y z\nlink ~/x y", ""},
		{"a stranger's link", "file ~/y 755\nlink ~/x ~/y 1234", ""},
		{"a link to a stranger's file", "file ~/y 755 1234\nlink ~/x ~/y", ""},
		{"a link into a directory that others can write", "dir ~/d 777\nfile ~/d/y 755\nlink ~/x ~/d/y", ""},
		{"a link through a directory that others can write", "dir ~/d 777\nfile ~/z 755\nlink ~/d/y ~/z\nlink ~/x ~/d/y", ""},
		{"a link that passes through one, and out", "dir ~/d 777\nfile ~/z 755\nlink ~/x ~/d/../z", ""},
		{"a link in a sticky directory", "dir ~/d 1777\nfile ~/y 755\nlink ~/d/x ~/y", "~/d/x"},
		{"a stranger's link in a sticky directory", "dir ~/d 1777\nfile ~/y 755\nlink ~/d/x ~/y 1234", "~/d/x"},
		{"a linked directory", "dir ~/d 755\nfile ~/d/x 755\nlink ~/e d", "~/e/x"},
		{"a stranger's linked directory", "dir ~/d 755\nfile ~/d/x 755\nlink ~/e d 1234", "~/e/x"},
		{"a linked directory that others can write", "dir ~/d 777\nfile ~/d/x 755\nlink ~/e d", "~/e/x"},
		{"a circle", "link ~/x y\nlink ~/y x", ""},
		{"a dangling link", "link ~/x y", ""},
		{"missing", "", ""},
		{"below a file", "file ~/y 755", "~/y/x"},
		{"a directory", "dir ~/x 755", ""},
		{"a link to a directory", "dir ~/y 755\nlink ~/x y", ""},
		{"a link to the root", "link ~/x /", ""},
		{"a link to its own directory", "link ~/x .", ""},
		{"a FIFO", "fifo ~/x 600", ""},
		{"a device", "", "/dev/null"},
		{"the root", "", "/"},
		{"may not be read", "dir ~/d 755\nfile ~/d/x 000", "~/d/x"},
		{"a remedy for the shell", "file ~/a_'b'_$c 777", "~/a_'b'_$c"},
	}
}

// TestOpen compares every answer with the golden file, which is meant to be read.
func TestOpen(t *testing.T) {
	require.Root(t)
	t.Parallel()
	var got strings.Builder
	for _, c := range cases() {
		base := bench(t)
		setUp(t, base, c.setUp)
		ask := strings.ReplaceAll(c.ask, "~", base)
		if ask == "" {
			ask = base + "/x"
		}
		ask = strings.ReplaceAll(ask, "_", " ")
		fmt.Fprintf(&got, "# %s\n", c.name)
		answers := map[string][]string{}
		var order []string
		for _, uid := range []uint32{0, nobody} {
			for _, stream := range []bool{false, true} {
				answer := strings.ReplaceAll(as(t, uid, job{Path: ask, Stream: stream}), base, "~")
				who := map[uint32]string{0: "root", nobody: "nobody"}[uid] + map[bool]string{false: " program", true: " stream"}[stream]
				if answers[answer] == nil {
					order = append(order, answer)
				}
				answers[answer] = append(answers[answer], who)
			}
		}
		for _, answer := range order {
			fmt.Fprintf(&got, "%s: %s\n", strings.Join(answers[answer], ", "), answer)
		}
		got.WriteByte('\n')
	}
	golden(t, "testdata/open.golden", got.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted, gotten := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wanted), len(gotten)) {
		if i >= len(wanted) || i >= len(gotten) || wanted[i] != gotten[i] {
			t.Fatalf("%s:%d: differs:\ngot  %s\nwant %s", path, i+1, line(gotten, i), line(wanted, i))
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// TestRemedies does what the refusals say, again and again, and arrives at a trusted file. Remedies that are not
// commands are for people.
func TestRemedies(t *testing.T) {
	require.Root(t)
	t.Parallel()
	fixed := 0
	for _, c := range cases() {
		base := bench(t)
		setUp(t, base, c.setUp)
		ask := strings.ReplaceAll(c.ask, "~", base)
		if ask == "" {
			ask = base + "/x"
		}
		ask = strings.ReplaceAll(ask, "_", " ")
		for range 5 {
			file, err := trust.Open(ask, trust.Program())
			if err == nil {
				if err := file.Close(); err != nil {
					t.Error(err)
				}
				break
			}
			var refused *trust.Error
			if !errors.As(err, &refused) || !isCommand(refused.Remedy) {
				break
			}
			fixed++
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", refused.Remedy).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", c.name, refused.Remedy, err, out)
			}
			again, err := trust.Open(ask, trust.Program())
			if err == nil {
				err = again.Close()
			}
			if next := (*trust.Error)(nil); errors.As(err, &next) && *next == *refused {
				t.Errorf("%s: the remedy changes nothing: %s", c.name, refused.Remedy)
			}
		}
	}
	if fixed < 5 {
		t.Errorf("only %d remedies were tried", fixed)
	}
}

func isCommand(remedy string) bool {
	return slices.ContainsFunc([]string{"chmod ", "chown "}, func(p string) bool { return strings.HasPrefix(remedy, p) })
}

// TestAccessControlList: a list that lets another user write shows in the group's bits.
func TestAccessControlList(t *testing.T) {
	require.Root(t)
	t.Parallel()
	base := bench(t)
	setUp(t, base, "file ~/x 755")
	path := filepath.Join(base, "x")
	// acl(5) as Linux stores it: version 2, then tag, permissions and ID of each entry.
	entry := func(tag, perm uint16, id uint32) []byte {
		return []byte{byte(tag), byte(tag >> 8), byte(perm), 0, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
	}
	const none = ^uint32(0)
	list := bytes.Join([][]byte{
		{2, 0, 0, 0},
		entry(0x01, 7, none), entry(0x02, 6, stranger), entry(0x04, 5, none), entry(0x10, 7, none), entry(0x20, 5, none),
	}, nil)
	if err := unix.Setxattr(path, "system.posix_acl_access", list, 0); errors.Is(err, unix.EOPNOTSUPP) {
		require.Missing(t, "needs a file system with access control lists under /tmp")
	} else if err != nil {
		t.Fatal(err)
	}
	_, err := trust.Open(path, trust.Program())
	var refused *trust.Error
	if !errors.As(err, &refused) || refused.Problem != "can be written by its group" {
		t.Fatalf("%v", err)
	}
	if err := exec.CommandContext(t.Context(), "sh", "-c", refused.Remedy).Run(); err != nil {
		t.Fatal(err)
	}
	if answer := (job{Path: path}).do(); answer != "opened: content" {
		t.Errorf("after %s: %s", refused.Remedy, answer)
	}
}

// TestOpenFileIsTheCheckedOne: a later replacement of the name has no effect.
func TestOpenFileIsTheCheckedOne(t *testing.T) {
	t.Parallel()
	base := bench(t)
	path := filepath.Join(base, "x")
	setUp(t, base, "file ~/x 755")
	file, err := trust.Open(path, trust.Program())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil || string(content) != "content" {
		t.Errorf("%q %v", content, err)
	}
}

// TestRelative: a relative path begins at the working directory, which go test makes the package's.
func TestRelative(t *testing.T) {
	t.Parallel()
	_, err := trust.Open("testdata/missing", trust.Stream())
	// A checkout that others can write is refused earlier: that is right as well.
	var refused *trust.Error
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

// TestDescriptors: whatever the answer, no descriptor stays open but the file's.
func TestDescriptors(t *testing.T) {
	require.Root(t)
	// Not parallel: it counts what the process has open.
	before := descriptors(t)
	for _, c := range cases() {
		base := bench(t)
		setUp(t, base, c.setUp)
		ask := strings.ReplaceAll(strings.ReplaceAll(c.ask, "~", base), "_", " ")
		if ask == "" {
			ask = base + "/x"
		}
		for _, stream := range []bool{false, true} {
			_ = job{Path: ask, Stream: stream}.do()
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestDirectory(t *testing.T) {
	require.Root(t)
	t.Parallel()
	const sticky = "~/d is a directory in which other users can create files"
	for name, test := range map[string]struct{ setUp, ask, private, shared, place, asNobody string }{
		"root's own":                        {setUp: "dir ~/d 700", private: "~/d", shared: "~/d", place: "~/d", asNobody: "~/d"},
		"nobody's own":                      {setUp: "dir ~/d 700 65534", private: "~/d belongs to user 65534, which could change it", asNobody: "~/d"},
		"a stranger's":                      {setUp: "dir ~/d 700 1234", private: "~/d belongs to user 1234, which could change it", asNobody: "~/d belongs to user 1234, which could change it"},
		"below a stranger's":                {setUp: "dir ~/e 755 1234\ndir ~/e/d 755", ask: "~/e/d", private: "~/e belongs to user 1234, which could change it", asNobody: "~/e belongs to user 1234, which could change it"},
		"written by its group":              {setUp: "dir ~/d 775", private: "~/d can be written by its group", asNobody: "~/d can be written by its group"},
		"sticky":                            {setUp: "dir ~/d 1777", private: sticky, shared: "~/d", asNobody: sticky},
		"in a sticky one":                   {setUp: "dir ~/e 1777\ndir ~/e/d 755", ask: "~/e/d", private: "~/e/d", asNobody: "~/e/d"},
		"a link":                            {setUp: "dir ~/e 755\nlink ~/d e", private: "~/e", asNobody: "~/e"},
		"a stranger's link":                 {setUp: "dir ~/e 755\nlink ~/d e 1234", private: "~/d is a link that belongs to user 1234, which could change it", asNobody: "~/d is a link that belongs to user 1234, which could change it"},
		"a link through a stranger's":       {setUp: "dir ~/s 755 1234\ndir ~/e 755\nlink ~/s/l ~/e\nlink ~/d ~/s/l", private: "~/s belongs to user 1234, which could change it", asNobody: "~/s belongs to user 1234, which could change it"},
		"dots":                              {setUp: "dir ~/d 755", ask: "~/./d/../d/.", private: "~/d", asNobody: "~/d"},
		"a file":                            {setUp: "file ~/d 600", private: "open ~/d: not a directory", asNobody: "open ~/d: not a directory"},
		"missing":                           {ask: "~/d", private: "open ~/d: no such file or directory", place: "~/d", asNobody: "open ~/d: no such file or directory"},
		"missing below a stranger's":        {setUp: "dir ~/e 755 1234", ask: "~/e/x/d", private: "~/e belongs to user 1234, which could change it", place: "~/e belongs to user 1234, which could change it", asNobody: "~/e belongs to user 1234, which could change it"},
		"missing below a sticky one":        {setUp: "dir ~/e 1777", ask: "~/e/x/d", private: "open ~/e/x: no such file or directory", place: "~/e/x/d", asNobody: "open ~/e/x: no such file or directory"},
		"missing below one that others can": {setUp: "dir ~/e 777", ask: "~/e/d", private: "~/e can be written by its group and everyone", place: "~/e can be written by its group and everyone", asNobody: "~/e can be written by its group and everyone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := bench(t)
			setUp(t, base, test.setUp)
			ask := strings.ReplaceAll(cmp.Or(test.ask, "~/d"), "~", base)
			answer := func(uid uint32, kind string) string {
				return strings.ReplaceAll(as(t, uid, job{Path: ask, Directory: kind}), base, "~")
			}
			assert.Equal(t, test.private, answer(0, "private"))
			assert.Equal(t, cmp.Or(test.shared, test.private), answer(0, "shared"))
			if test.place != "" {
				assert.Equal(t, test.place, answer(0, "place"))
			}
			assert.Equal(t, test.asNobody, answer(nobody, "private"))
		})
	}
	assert.Equal(t, "/", job{Path: "/", Directory: "private"}.do())
}

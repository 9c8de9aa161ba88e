package trust_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/internal/trust"
)

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

package sdk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const motd = "/etc/motd"

// unix skips a test of modes and links on Windows.
func unix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes on Windows")
	}
}

func wantCode(t *testing.T, err error, code pluginv1.Code, text string) {
	t.Helper()
	e, ok := errors.AsType[*pluginv1.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Error()+" "+e.Hint, text) {
		t.Errorf("error %v, want %v with %q", err, code, text)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	unix(t)
	uid := os.Geteuid()
	for _, c := range []struct {
		name    string
		old     string // none when empty
		oldMode fs.FileMode
		spec    sdk.FileSpec
		summary string // no change when empty
		diff    string
	}{
		{
			name: "create", spec: sdk.FileSpec{Content: []byte("hello\n"), Mode: 0o644},
			summary: "create /etc/motd", diff: "--- /dev/null\n+++ b/etc/motd\n@@ -0,0 +1 @@\n+hello\n",
		},
		{
			name: "change", old: "a\nb\n", oldMode: 0o644, spec: sdk.FileSpec{Content: []byte("a\nc\n"), Mode: 0o644},
			summary: "change /etc/motd", diff: "--- a/etc/motd\n+++ b/etc/motd\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
		},
		{name: "matches", old: "a\n", oldMode: 0o640, spec: sdk.FileSpec{Content: []byte("a\n"), Mode: 0o640}},
		{
			name: "matches, with its owner", old: "a\n", oldMode: 0o644,
			spec: sdk.FileSpec{Content: []byte("a\n"), Mode: 0o644, Owner: &sdk.Owner{UID: uid, GID: os.Getegid()}},
		},
		{
			name: "mode only", old: "a\n", oldMode: 0o600, spec: sdk.FileSpec{Content: []byte("a\n"), Mode: 0o644},
			summary: "change mode or owner of /etc/motd", diff: "mode 0600 -> 0644\n",
		},
		{
			name: "closed to everyone, and left so", old: "a\n", oldMode: 0, spec: sdk.FileSpec{Content: []byte("b\n")},
			summary: "change /etc/motd", diff: "content differs\n",
		},
		{
			name: "set-user-ID", old: "a\n", oldMode: 0o755, spec: sdk.FileSpec{Content: []byte("a\n"), Mode: 0o755 | fs.ModeSetuid},
			summary: "change mode or owner of /etc/motd", diff: "mode 0755 -> 4755\n",
		},
		{
			name: "the new file is not readable by everyone", old: "a\n", oldMode: 0o644,
			spec:    sdk.FileSpec{Content: []byte("secret\n"), Mode: 0o640},
			summary: "change /etc/motd", diff: "mode 0644 -> 0640\ncontent differs\n",
		},
		{
			name: "the old file is not readable by everyone", old: "secret\n", oldMode: 0o600,
			spec:    sdk.FileSpec{Content: []byte("a\n"), Mode: 0o644},
			summary: "change /etc/motd", diff: "mode 0600 -> 0644\ncontent differs\n",
		},
		{
			name: "sensitive", old: "a\n", oldMode: 0o644, spec: sdk.FileSpec{Content: []byte("b\n"), Mode: 0o644, Sensitive: true},
			summary: "change /etc/motd", diff: "content differs\n",
		},
		{
			name: "created, not readable by everyone", spec: sdk.FileSpec{Content: []byte("secret\n"), Mode: 0o600},
			summary: "create /etc/motd", diff: "content differs\n",
		},
		{
			name: "not text", spec: sdk.FileSpec{Content: []byte("a\x00b"), Mode: 0o644},
			summary: "create /etc/motd", diff: "content differs\n",
		},
		{
			name: "large", spec: sdk.FileSpec{Content: bytes.Repeat([]byte("a\n"), 200_000), Mode: 0o644},
			summary: "create /etc/motd", diff: "content differs\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.old != "" && c.oldMode == 0 {
				require.Root(t) // reads a file that is closed to everyone
			}
			f := machinetest.New(t)
			if c.old != "" {
				if err := f.Machine.FS.WriteFile(motd, []byte(c.old), c.oldMode); err != nil {
					t.Fatal(err)
				}
			}
			c.spec.Path = motd
			change, err := sdk.File(f.Machine, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if c.summary == "" {
				if change != nil {
					t.Errorf("the change %q is planned, want none", change.Summary)
				}
				return
			}
			if change == nil {
				t.Fatal("no change is planned")
			}
			if change.ID != "file:"+motd || change.Summary != c.summary || change.Diff != c.diff || change.NeedsLive {
				t.Errorf("change %q %q\n%s\nwant %q\n%s", change.ID, change.Summary, change.Diff, c.summary, c.diff)
			}
			if err := change.Do(t.Context(), &recorder{}); err != nil {
				t.Fatal(err)
			}
			data, readErr := f.Machine.FS.ReadFile(motd)
			info, statErr := f.Machine.FS.Stat(motd)
			if err := errors.Join(readErr, statErr); err != nil || !bytes.Equal(data, c.spec.Content) || info.Mode != c.spec.Mode {
				t.Errorf("the file has the mode %v and the content %q (%v)", info.Mode, data, err)
			}
			if again, err := sdk.File(f.Machine, c.spec); err != nil || again != nil {
				t.Errorf("afterwards a change is planned (%v)", err)
			}
		})
	}
}

func TestFileOwner(t *testing.T) {
	t.Parallel()
	require.Root(t) // the owner of files changes
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{motd: "a\n"})
	spec := sdk.FileSpec{Path: motd, Content: []byte("a\n"), Mode: 0o644, Owner: &sdk.Owner{UID: 12, GID: 34}}
	change, err := sdk.File(f.Machine, spec)
	if err != nil || change == nil || change.Diff != "owner 0:0 -> 12:34\n" {
		t.Fatalf("change %+v, %v", change, err)
	}
	if err := change.Do(t.Context(), &recorder{}); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Machine.FS.Stat(motd); err != nil || info.UID != 12 || info.GID != 34 {
		t.Errorf("owner %d:%d, %v", info.UID, info.GID, err)
	}
}

// TestFileMatchesMeanwhile: a file that matches since the plan is not written.
func TestFileMatchesMeanwhile(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	content := []byte("a\n")
	change, err := sdk.File(f.Machine, sdk.FileSpec{Path: motd, Content: content, Mode: 0o644})
	if err != nil || change == nil {
		t.Fatalf("change %v, %v", change, err)
	}
	content[0] = 'X' // the change has a copy
	f.WriteFiles(t, map[string]string{motd: "a\n"})
	before, err := os.Stat(filepath.Join(f.Root, motd))
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Do(t.Context(), &recorder{}); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(f.Root, motd))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written again (%v)", err)
	}
}

func TestFileRefusals(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	if err := errors.Join(f.Machine.FS.MkdirAll("/etc/dir", 0o755), f.Machine.FS.Symlink("nowhere", "/etc/link")); err != nil {
		t.Fatal(err)
	}
	_, err := sdk.File(f.Machine, sdk.FileSpec{Path: "/etc/dir", Mode: 0o644})
	wantCode(t, err, pluginv1.CodePrecondition, "/etc/dir is not a regular file")
	for _, mode := range []fs.FileMode{0, fs.ModeDir | 0o755} {
		if _, err := sdk.File(f.Machine, sdk.FileSpec{Path: motd, Mode: mode}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("mode %v: error %v, want fs.ErrInvalid", mode, err)
		}
	}
	_, err = sdk.Activate(t.Context(), f.Machine, sdk.Activation{Unit: "x.service"})
	if err == nil || !strings.Contains(err.Error(), "no files") {
		t.Errorf("error %v for an activation without files", err)
	}
}

// TestActivateDanglingLink: the absent target of a link could not be restored.
func TestActivateDanglingLink(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	f.Services.Put("x.service", running())
	if err := f.Machine.FS.Symlink("nowhere", "/etc/x.conf"); err != nil {
		t.Fatal(err)
	}
	_, err := sdk.Activate(t.Context(), f.Machine, sdk.Activation{
		Unit: "x.service", Files: []sdk.FileSpec{{Path: "/etc/x.conf", Content: []byte("x"), Mode: 0o644}},
	})
	wantCode(t, err, pluginv1.CodePrecondition, "/etc/x.conf is a dangling link")
	if calls := f.Services.Calls(); len(calls) != 0 {
		t.Errorf("services were asked for %q", calls)
	}
}

func TestAbsent(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{"/etc/a": "a\n", "/etc/b": "b\n"})
	if err := errors.Join(f.Machine.FS.Symlink("a", "/etc/link"), f.Machine.FS.WriteFile("/etc/secret", []byte("s"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, diff := range map[string]string{
		"/etc/b": "--- a/etc/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", "/etc/secret": "content differs\n", "/etc/link": "/etc/link: removed\n",
	} {
		change, err := sdk.Absent(f.Machine, path)
		if err != nil || change == nil || change.Diff != diff || change.ID != "file:"+path {
			t.Fatalf("%s: change %+v, %v", path, change, err)
		}
		if err := change.Do(t.Context(), &recorder{}); err != nil {
			t.Error(err)
		}
	}
	if names, err := f.Machine.FS.ReadDir("/etc"); err != nil || fmt.Sprint(names) != "[a]" {
		t.Errorf("left are %q (%v), want only a, the target of a removed link", names, err)
	}
	for _, path := range []string{"/etc/b", "/nowhere/x", "/etc/a/below-a-file"} {
		if change, err := sdk.Absent(f.Machine, path); change != nil || err != nil {
			t.Errorf("%s: change %v, %v", path, change, err)
		}
	}
	_, err := sdk.Absent(f.Machine, "/etc")
	wantCode(t, err, pluginv1.CodePrecondition, "is a directory")
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	change, err := sdk.Directory(f.Machine, "/var/lib/x/private", 0o700)
	if err != nil || change == nil || change.ID != "directory:/var/lib/x/private" {
		t.Fatalf("change %+v, %v", change, err)
	}
	if err := change.Do(t.Context(), &recorder{}); err != nil {
		t.Fatal(err)
	}
	const want = "drwxr-xr-x /var\ndrwxr-xr-x /var/lib\ndrwxr-xr-x /var/lib/x\ndrwx------ /var/lib/x/private\n"
	if got := machinetest.Tree(t, f.Root); got != want {
		t.Errorf("the tree is\n%swant\n%s", got, want)
	}
	if change, err := sdk.Directory(f.Machine, "/var/lib/x/private", 0o700); change != nil || err != nil {
		t.Errorf("afterwards: change %v, %v", change, err)
	}
	_, err = sdk.Directory(f.Machine, "/var/lib/x/private", 0o755)
	wantCode(t, err, pluginv1.CodePrecondition, "find out what else uses it, give it the mode 0755")
	f.WriteFiles(t, map[string]string{motd: "a"})
	_, err = sdk.Directory(f.Machine, motd, 0o755)
	wantCode(t, err, pluginv1.CodePrecondition, "is not a directory")
}

// TestFileSpecKeepsItsContent: a specification may be logged.
func TestFileSpecKeepsItsContent(t *testing.T) {
	t.Parallel()
	spec := sdk.FileSpec{Path: motd, Content: []byte("canary"), Mode: 0o600}
	holder := struct{ Specs []sdk.FileSpec }{[]sdk.FileSpec{spec}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb, spec, &spec, holder)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "spec", spec)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "spec", spec)
	for _, canary := range []string{"canary", "63616e617279", "Y2FuYXJ5", "99 97 110"} {
		if strings.Contains(out.String(), canary) {
			t.Errorf("the content shows as %q in %s", canary, out.String())
		}
	}
	if !strings.Contains(out.String(), motd) {
		t.Error("the path does not show")
	}
}

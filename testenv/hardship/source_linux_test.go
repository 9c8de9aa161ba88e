package hardship

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

// TestNoRoomForAnObject: a live run that cannot keep the stream of a reference changes nothing. With room it succeeds.
func TestNoRoomForAnObject(t *testing.T) {
	t.Parallel()
	isolate(t, unix.CLONE_NEWNET)
	m := newLive(t, newBench(t).dir)
	mountTmpfs(t, m.state)
	object := filepath.Join(m.dir, "object.yaml")
	put(t, object, noopDocument("b", "touch: ["+m.mark+"-b]")+"# "+strings.Repeat("x", 1<<20)+"\n")
	stream := m.noop("") + "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: large}\n" +
		"spec: {provider: file, uri: " + object + "}\n"
	made := func() (all []string) {
		for _, mark := range []string{m.mark, m.mark + "-b"} {
			if _, err := os.Stat(mark); err == nil {
				all = append(all, mark)
			}
		}
		return all
	}
	got := m.apply(t, stream)
	for _, says := range []string{filepath.Join(m.state, "resolved") + "/", "no space left on device", "hint: "} {
		if !strings.Contains(got.stderr, says) {
			t.Errorf("the error lacks %q", says)
		}
	}
	left, err := os.ReadDir(filepath.Join(m.state, "resolved"))
	if got.code != report.ExitState || len(made()) > 0 || success(t) || err != nil || len(left) > 0 {
		t.Errorf("made %q, a sentinel: %v, kept %v (%v); %s", made(), success(t), left, err, got)
	}
	if err := unix.Mount("", m.state, "", unix.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if got := m.apply(t, stream); got.code != report.ExitOK || len(made()) != 2 || !success(t) {
		t.Errorf("with room: made %q; %s", made(), got)
	}
	if _, err := os.Stat(filepath.Join(m.state, "resolved")); !os.IsNotExist(err) {
		t.Errorf("what was resolved is still there (%v)", err)
	}
}

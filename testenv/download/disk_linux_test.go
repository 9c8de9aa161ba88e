package download

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	machine "github.com/machineadm/machineadm/internal/require"
)

// TestFullDisk has a disk that is full during the download, and one that is full while the archive is unpacked.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	machine.Root(t)
	runtime.LockOSThread() // never unlocked: the mount ends with the thread
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNS))
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	b := newBed(t).write(Release{})
	require.NoError(t, os.Mkdir(b.to, 0o755)) //nolint:gosec // for programs
	require.NoError(t, unix.Mount("tmpfs", b.to, "tmpfs", 0, "size=1m,mode=0755"))
	defer func() { assert.NoError(t, unix.Unmount(b.to, unix.MNT_DETACH)) }()
	b.installed()
	random := make([]byte, 2<<20)
	for i := range random {
		random[i] = byte(rand.Uint32()) //nolint:gosec // incompressible, not secret
	}
	for _, content := range []string{string(random), strings.Repeat("\x00", 2<<20)} {
		b.write(Release{Version: "v1.1.0", Sequence: 2, Members: append(Members("v1.1.0"), Regular("plugins/machineadm-x-plugin-y", content))})
		b.refused(report.ExitState, "no space left on device")
	}
	assert.True(t, b.installed(with(sysctl)).Changed, "what was left would not leave this space")
}

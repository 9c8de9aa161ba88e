package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sawReset follows qemu's monitor (QMP) to its end and reports whether the machine ended because it reset itself, which
// qemu's exit status does not show.
func sawReset(monitor io.ReadWriter) bool {
	// Events come only after this. When qemu has ended, they are lost too.
	if _, err := io.WriteString(monitor, `{"execute": "qmp_capabilities"}`+"\n"); err != nil {
		return false
	}
	reset := false
	for messages := json.NewDecoder(monitor); ; {
		var message struct {
			Event string
			Data  struct{ Reason string }
		}
		if err := messages.Decode(&message); err != nil {
			return reset
		}
		if message.Event == "SHUTDOWN" {
			reset = message.Data.Reason == "guest-reset"
		}
	}
}

// socketPair returns a connection and the other end of it, for a child process.
func socketPair() (near net.Conn, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "near end")
	far = os.NewFile(uintptr(fds[1]), "far end")
	near, err = net.FileConn(file) // a duplicate
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, nil, errors.Join(err, far.Close())
	}
	return near, far, nil
}

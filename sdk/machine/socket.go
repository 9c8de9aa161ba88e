package machine

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"
)

// Dial connects to the Unix socket of this name. That nothing is there is fs.ErrNotExist, that no process listens
// syscall.ECONNREFUSED.
func (f *FS) Dial(ctx context.Context, name string) (net.Conn, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode.Type() != fs.ModeSocket { // which the kernel calls refused
		return nil, fmt.Errorf("connect to %s: it is not a socket", name)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", filepath.Join(f.root, name))
}

// listenTimeout is how long a connection may take. A process that listens is connected to at once, unless too many wait.
const listenTimeout = time.Second

// Listens reports whether a process listens on the Unix socket of this name. It connects, sends nothing and closes the
// connection: a cheap sign that a daemon runs.
func (f *FS) Listens(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := f.Dial(ctx, name)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

package machine

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"
)

// Dial connects to the Unix socket of this name. An absent socket is fs.ErrNotExist, one without a listener
// syscall.ECONNREFUSED.
func (f *FS) Dial(ctx context.Context, name string) (net.Conn, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode.Type() != fs.ModeSocket { // the kernel returns ECONNREFUSED
		return nil, fmt.Errorf("connect to %s: it is not a socket", name)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", filepath.Join(f.root, name))
}

// listenTimeout bounds a connection. A listener accepts at once, unless its queue is full.
const listenTimeout = time.Second

// Listens reports whether a process listens on the Unix socket of this name. It connects and sends nothing.
func (f *FS) Listens(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := f.Dial(ctx, name)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

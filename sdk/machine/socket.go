package machine

import (
	"context"
	"net"
	"path/filepath"
	"time"
)

// listenTimeout is how long a connection may take. A process that listens is connected to at once, unless too many wait.
const listenTimeout = time.Second

// Listens reports whether a process listens on the Unix socket of this name. It connects, sends nothing and closes the
// connection: a cheap sign that a daemon runs.
func (f *FS) Listens(ctx context.Context, name string) bool {
	dialer := net.Dialer{Timeout: listenTimeout}
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(f.root, name))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

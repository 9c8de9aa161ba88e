package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Counterpart is what a vendor's own counterpart serves to the plugin of one case, see Suite.Setup.
type Counterpart struct {
	// Case is the name of the case.
	Case string
	// Dir has the files of served/, with the canary in place of ${canary}.
	Dir string
	// Canary is the random word of the case.
	Canary string
}

// counterpart is what the kit itself serves to a source or a key provider: the files of served/, in a directory and by HTTP
// on the loopback interface.
type counterpart struct {
	dir    string
	values map[string]string // of ${NAME} in config.yaml
	server *http.Server
	end    context.CancelFunc // ends the vendor's own

	seen    atomic.Int64 // connections and requests
	stalled atomic.Bool  // a request is not answered, but reported to entered, and its end to left
	entered chan struct{}
	left    chan struct{}
}

// newCounterpart starts the counterpart of a case, and that of setup if it is not nil. The caller ends it with close.
func newCounterpart(ctx context.Context, c *Case, dir, canary string, setup setup) (*counterpart, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	filled := func(data []byte) []byte { return fill(data, canary) }
	if err := copyTree(filepath.Join(c.dir, "served"), dir, true, filled); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	var loopback net.ListenConfig
	listener, err := loopback.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve served/: %w", err)
	}
	p := &counterpart{
		dir: dir, values: map[string]string{"canary": canary, "dir": dir, "server": "http://" + listener.Addr().String()},
		entered: make(chan struct{}, 1), left: make(chan struct{}, 1),
	}
	files := http.FileServer(http.Dir(dir))
	p.server = &http.Server{
		ReadHeaderTimeout: callTimeout,
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				p.seen.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.seen.Add(1)
			if !p.stalled.Load() {
				files.ServeHTTP(w, r)
				return
			}
			signal(p.entered)
			<-r.Context().Done()
			signal(p.left)
		}),
	}
	go func() { _ = p.server.Serve(listener) }() // ends with close
	var own context.Context
	own, p.end = context.WithCancel(ctx)
	if setup == nil {
		return p, nil
	}
	more, err := setup(own, Counterpart{Case: c.Name, Dir: dir, Canary: canary})
	for name, value := range more {
		p.values[name] = value
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up the counterpart of the case %s: %w", c.Name, err), p.close())
	}
	return p, nil
}

// private takes the permissions of others from what is in a directory: providers can refuse a secret that others can read.
func private(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		mode := os.FileMode(0o600)
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		if d.IsDir() {
			mode = 0o700
		}
		return os.Chmod(name, mode)
	})
}

// setup is the type of Suite.Setup.
type setup = func(ctx context.Context, c Counterpart) (map[string]string, error)

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// stall lets requests wait until resume is called.
func (p *counterpart) stall() (resume func()) {
	p.stalled.Store(true)
	return func() { p.stalled.Store(false) }
}

// within waits for a signal.
func within(most time.Duration, from chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-time.After(most):
		return false
	}
}

func (p *counterpart) close() error {
	p.end()
	return p.server.Close()
}

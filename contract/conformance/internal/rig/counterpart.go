package rig

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

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

// Counterpart is what the kit itself serves to a source or a key provider: the files of served/, in a directory and by HTTP
// on the loopback interface.
type Counterpart struct {
	Dir    string
	Values map[string]string // of ${NAME} in config.yaml
	server *http.Server
	end    context.CancelFunc // ends the vendor's own

	Seen    atomic.Int64 // connections and requests
	stalled atomic.Bool  // a request is not answered, but reported to entered, and its end to left
	Entered chan struct{}
	Left    chan struct{}
}

// NewCounterpart starts the counterpart of a case, and that of setup if it is not nil. The caller ends it with close.
func NewCounterpart(ctx context.Context, c *testcase.Case, dir, canary string, setup setup) (*Counterpart, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	filled := func(data []byte) []byte { return testcase.Fill(data, canary) }
	if err := trees.CopyTree(filepath.Join(c.Dir, "served"), dir, true, filled); err != nil {
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
	p := &Counterpart{
		Dir: dir, Values: map[string]string{"canary": canary, "dir": dir, "server": "http://" + listener.Addr().String()},
		Entered: make(chan struct{}, 1), Left: make(chan struct{}, 1),
	}
	files := http.FileServer(http.Dir(dir))
	p.server = &http.Server{
		ReadHeaderTimeout: process.CallTimeout,
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				p.Seen.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.Seen.Add(1)
			if !p.stalled.Load() {
				files.ServeHTTP(w, r)
				return
			}
			Signal(p.Entered)
			<-r.Context().Done()
			Signal(p.Left)
		}),
	}
	go func() { _ = p.server.Serve(listener) }() // ends with close
	var own context.Context
	own, p.end = context.WithCancel(ctx)
	if setup == nil {
		return p, nil
	}
	more, err := setup(own, c.Name, dir, canary)
	for name, value := range more {
		p.Values[name] = value
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

// setup starts a vendor's own counterpart of a case with this name, and returns the values of ${NAME} in its config.yaml.
type setup = func(ctx context.Context, name, dir, canary string) (map[string]string, error)

// Signal sends to a channel with a buffer, which is full if its reader has not looked since.
func Signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Stall lets requests wait until resume is called.
func (p *Counterpart) Stall() (resume func()) {
	p.stalled.Store(true)
	return func() { p.stalled.Store(false) }
}

// Within waits for a signal.
func Within(most time.Duration, from chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-time.After(most):
		return false
	}
}

func (p *Counterpart) close() error {
	p.end()
	return p.server.Close()
}

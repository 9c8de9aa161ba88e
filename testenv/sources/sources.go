// Package sources runs the plugins of RemoteConfig documents as processes against real servers.
package sources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Call is one call of a source in a process of its own.
type Call struct {
	Plugin      string         // path
	Kind        string         // RemoteConfig if empty
	Spec        map[string]any // of the document
	Report      []byte         // calls Report instead of Fetch, if not empty
	Sequence    uint64         // of the report
	Store       *pluginv1.StoreRequest
	Remove      *pluginv1.RemoveRequest
	RetryFor    time.Duration     // of a fetch
	Environment map[string]string // from which the host takes the plugin's
	// Started receives the process ID before the call. Nil: none does.
	Started func(pid int) `json:"-"`
}

// Result is what a call returned, and what its process left.
type Result struct {
	Size             int
	SHA256, Revision string
	Stored           pluginv1.Stored
	Error            *pluginv1.Error
	Stderr           string
	Status           string // proc_pid_status(5) after the call
	CPU              time.Duration
}

// Do starts the plugin, makes the call and ends the plugin.
func Do(ctx context.Context, c Call) (r Result, err error) {
	if c.Kind == "" {
		c.Kind = v1alpha1.KindRemoteConfig
	}
	doc, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": c.Kind, "metadata": map[string]any{"name": "a"}, "spec": c.Spec,
	})
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "sources-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var said output
	command := exec.Command(c.Plugin) //nolint:noctx // Kill ends it
	p, err := launch.Start(ctx, launch.Options{
		Command: command, SocketDir: dir, Stderr: &said,
		Environment: launch.Environment(runtime.GOOS, func(name string) (string, bool) {
			value, ok := c.Environment[name]
			return value, ok
		}),
	})
	if err != nil {
		return r, fmt.Errorf("start the plugin: %w: %s", err, &said)
	}
	if c.Started != nil {
		c.Started(p.PID())
	}
	failure := c.make(ctx, p, doc, &r)
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.PID()), "status"))
	r.Status = string(status)
	p.Kill()
	r.Stderr, r.CPU = said.String(), command.ProcessState.UserTime()+command.ProcessState.SystemTime()
	if failure != nil && !errors.As(failure, &r.Error) {
		err = errors.Join(err, failure)
	}
	return r, err
}

func (c Call) make(ctx context.Context, p *launch.Process, doc []byte, r *Result) error {
	here := target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	if len(c.Report) > 0 {
		return p.Report(ctx, pluginv1.ReportRequest{Document: doc, Target: here, Report: c.Report, Sequence: c.Sequence})
	}
	if c.Remove != nil {
		return p.Remove(ctx, *c.Remove)
	}
	if c.Store != nil {
		var err error
		r.Stored, err = p.Store(ctx, *c.Store)
		return err
	}
	digest := sha256.New()
	err := p.Fetch(ctx, pluginv1.FetchRequest{Document: doc, Target: here, MaxBytes: 16 << 20, RetryFor: c.RetryFor}, func(part pluginv1.Chunk) error {
		if part.Begin {
			r.Size, r.Revision = 0, part.Revision
			digest.Reset()
		}
		r.Size += len(part.Data)
		_, _ = digest.Write(part.Data) // a hash does not fail
		return nil
	})
	r.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return err
}

// output collects what a plugin writes to stderr.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return strings.TrimSpace(o.text.String())
}

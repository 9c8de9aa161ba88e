//go:build !linux

package process

import "errors"

// CanWatch reports whether WatchWrites works.
const CanWatch = false

// ErrNoWatch is a machine that does not report writes.
var ErrNoWatch = errors.ErrUnsupported

// Writes are not recorded here.
type Writes struct{}

// WatchWrites does not work here.
func WatchWrites(string, []string) (*Writes, error) { return nil, unsupported("watching a directory") }

// Written does not work here.
func (*Writes) Written() ([]string, error) { return nil, unsupported("watching a directory") }

//go:build !linux

package process

import "errors"

const CanWatch = false

var ErrNoWatch = errors.ErrUnsupported

type writes struct{}

func WatchWrites(string, []string) (*writes, error) { return nil, unsupported("watching a directory") }

func (*writes) Written() ([]string, error) { return nil, unsupported("watching a directory") }

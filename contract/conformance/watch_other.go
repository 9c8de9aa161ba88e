//go:build !linux

package conformance

import "errors"

const canWatch = false

var errNoWatch = errors.ErrUnsupported

type writes struct{}

func watchWrites(string, []string) (*writes, error) { return nil, unsupported("watching a directory") }

func (*writes) written() ([]string, error) { return nil, unsupported("watching a directory") }

//go:build !windows

package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// opener returns what opens a connection to the endpoint. It does not look at the socket yet.
func opener(endpoint string) (func(context.Context) (net.Conn, error), error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if !filepath.IsAbs(path) {
		return nil, errors.New("not an absolute path, with or without unix:// before it")
	}
	return func(ctx context.Context) (net.Conn, error) {
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w: %w", ErrDown, err)
		case err != nil:
			return nil, err
		case info.Mode().Type() != fs.ModeSocket:
			return nil, errors.New("not a socket")
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", path)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", ErrDown, err)
		}
		return conn, err
	}, nil
}

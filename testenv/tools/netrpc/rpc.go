// Package rpc takes the place of net/rpc in the programs of a release: testenv/tools/build.sh compiles them with this file in its
// place. It has what go-plugin uses of net/rpc, and every call fails.
//
// Plugins of machineadm use gRPC alone, but go-plugin links the other protocol as well. net/rpc looks methods up by reflection, so
// the linker has to keep every exported method of every type: a fifth of each program.
package rpc

import (
	"errors"
	"io"
)

var errAbsent = errors.New("net/rpc is not part of this program: plugins of machineadm use gRPC")

// Client has the methods of net/rpc's Client that go-plugin calls.
type Client struct{ conn io.Closer }

// NewClient returns a Client whose calls fail.
func NewClient(conn io.ReadWriteCloser) *Client { return &Client{conn} }

// Call returns an error.
func (*Client) Call(_ string, _, _ any) error { return errAbsent }

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Server has the methods of net/rpc's Server that go-plugin calls.
type Server struct{}

// NewServer returns a Server that serves nothing.
func NewServer() *Server { return &Server{} }

// RegisterName returns an error.
func (*Server) RegisterName(_ string, _ any) error { return errAbsent }

// ServeConn closes the connection.
func (*Server) ServeConn(conn io.ReadWriteCloser) { _ = conn.Close() }

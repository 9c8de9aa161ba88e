// Package launch starts a plugin process and makes the handshake, from the side of the runtime (Start) and of the plugin
// (Serve). contract/pluginv1 has the messages that follow.
package launch

import (
	"context"
	"errors"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// The cookie distinguishes a start by a runtime from a start by hand. It is no secret.
const (
	cookieKey   = "MACHINEADM_PLUGIN_COOKIE"
	cookieValue = "4d0f3d0c6f6a4c8db1a1c7a2b9e5f3d871f1be1b6e0a4b0c"
)

// PluginName is the name under which go-plugin dispenses the client.
const PluginName = "machineadm"

// Handshake returns the cookie, for a plugin that calls go-plugin itself. The protocol version is that of VersionedPlugins.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: cookieKey, MagicCookieValue: cookieValue}
}

// versions maps each protocol version of this build to what is served or dispensed under it.
func versions(impl pluginv1.Describer) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{pluginv1.ProtocolVersion: {PluginName: &adapter{impl: impl}}}
}

// adapter connects a plugin to go-plugin: the server side has an implementation, the client side makes a Client.
type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	impl pluginv1.Describer
}

// GRPCServer implements plugin.GRPCPlugin.
func (a *adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if a.impl == nil {
		return errors.New("no plugin to serve")
	}
	pluginv1.Register(s, a.impl)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (a *adapter) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pluginv1.NewClient(conn), nil
}

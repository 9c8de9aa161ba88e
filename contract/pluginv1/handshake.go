package pluginv1

import (
	"context"
	"errors"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// ProtocolVersion is the version of the protocol in this package. Within it, fields are only added (SPEC V-2, V-3).
const ProtocolVersion = 1

// MaxMessageBytes is the largest message either side takes, in bytes. gRPC's own limit of 4 MiB is too small for a
// stream of 16 MiB, which escaping can make several times larger as JSON.
const MaxMessageBytes = 64 << 20

// The cookie tells a plugin that it was started by a host and not by a person. It is no secret.
const (
	cookieKey   = "MACHINEADM_PLUGIN_COOKIE"
	cookieValue = "4d0f3d0c6f6a4c8db1a1c7a2b9e5f3d871f1be1b6e0a4b0c"
)

// PluginName is the name under which go-plugin dispenses what this package serves.
const PluginName = "machineadm"

// Handshake is the cookie, for whoever serves the protocol without Serve. It leaves the version to VersionedPlugins.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: cookieKey, MagicCookieValue: cookieValue}
}

// versions maps each protocol version that this build speaks to what is served or dispensed under it.
func versions(impl Configurator) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: &adapter{impl: impl}}}
}

// adapter joins a Configurator to go-plugin: the server side has an implementation, the client side makes a Client.
type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	impl Configurator
}

// GRPCServer implements plugin.GRPCPlugin.
func (a *adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if a.impl == nil {
		return errors.New("nothing to serve")
	}
	Register(s, a.impl)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (a *adapter) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewClient(conn), nil
}

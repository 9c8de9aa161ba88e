// Command noop is the scripted plugin of testenv/noop as it was when v1alpha1 was new: yesterday's plugin, for the hosts
// of every later day.
//
// It is a module of its own with a copy of the protocol, so that no change of the checkout changes it. It gets no fixes and
// no newer dependencies, because others have such plugins installed. A test compares its files with their checksums.
package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// The wire of v1alpha1.
const (
	protocolVersion = 1
	pluginName      = "machineadm"
	maxMessageBytes = 64 << 20
	cookieKey       = "MACHINEADM_PLUGIN_COOKIE"
	cookieValue     = "4d0f3d0c6f6a4c8db1a1c7a2b9e5f3d871f1be1b6e0a4b0c"
)

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{MagicCookieKey: cookieKey, MagicCookieValue: cookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{
			protocolVersion: {pluginName: &adapter{server: &server{name: provider(), stop: make(chan struct{}, 1)}}},
		},
		Logger: hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(maxMessageBytes))...)
		},
	})
}

// provider is the last part of the binary's name.
func provider() string {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return name[strings.LastIndex(name, "-plugin-")+len("-plugin-"):]
}

package launch

import (
	"os"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Serve serves m to the runtime that started this process, and returns when the runtime ends it. Started by hand, it
// prints a message to stderr and exits with 1.
//
// Logs are written to the stderr of before Serve: go-plugin redirects os.Stderr into a stream that a runtime may not read.
func Serve(m pluginv1.Describer) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: versions(m),
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, pluginv1.OrderStops(),
				grpc.MaxRecvMsgSize(pluginv1.MaxMessageBytes), grpc.MaxSendMsgSize(pluginv1.MaxMessageBytes))...)
		},
	})
}

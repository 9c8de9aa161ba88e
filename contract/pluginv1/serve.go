package pluginv1

import (
	"os"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Serve serves m to the host that started this process, and returns when the host ends it. Started by a person, it
// says so on stderr and exits with 1.
//
// Logs go to the stderr of before Serve: go-plugin redirects os.Stderr into a stream that the host may not read.
func Serve(m Configurator) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: versions(m),
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr, JSONFormat: true}),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, OrderStops(),
				grpc.MaxRecvMsgSize(MaxMessageBytes), grpc.MaxSendMsgSize(MaxMessageBytes))...)
		},
	})
}

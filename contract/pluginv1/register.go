package pluginv1

import (
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// Register serves m on s, in a process or, for a test, in memory: Describe, and the calls of each of Configurator, Source and
// KeyProvider that m implements. s needs the option OrderStops if a Stop can overtake an Apply.
func Register(s grpc.ServiceRegistrar, m Describer) {
	pb.RegisterPluginServer(s, &describeServer{impl: m})
	if impl, ok := m.(Configurator); ok {
		pb.RegisterConfiguratorServer(s, &server{impl: impl})
	}
	if impl, ok := m.(Source); ok {
		pb.RegisterSourceServer(s, &sourceServer{impl: impl})
	}
	if impl, ok := m.(KeyProvider); ok {
		pb.RegisterKeyProviderServer(s, &keyServer{impl: impl})
	}
}

package fault

import (
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/netfault"
)

// networkCode classifies an error of the network: a wrong name or certificate is a Precondition, anything else may pass.
// Other errors are Internal.
func networkCode(err error) (pluginv1.Code, string) {
	switch netfault.Of(err) {
	case netfault.None:
		return pluginv1.CodeInternal, ""
	case netfault.UnknownName:
		return pluginv1.CodePrecondition, "check the name, and that the name servers of this machine resolve it"
	case netfault.Expired:
		return pluginv1.CodePrecondition, "compare the clock of this machine with the validity of the server's certificate"
	case netfault.Certificate:
		return pluginv1.CodePrecondition, "check the name of the server, and that this machine trusts its certificate authority"
	case netfault.NoTLS:
		return pluginv1.CodePrecondition, "check that the server at this address supports TLS, and its versions"
	case netfault.Address:
		return pluginv1.CodePrecondition, "correct the address"
	default:
		return pluginv1.CodeRetry, ""
	}
}

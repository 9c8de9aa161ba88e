package aws

import (
	"runtime"
	"time"
)

// Machine is what access to AWS depends on.
type Machine struct {
	// Provider is the name of the plugin.
	Provider string
	// Endpoints is the file that permits servers other than AWS's.
	Endpoints string
	// Metadata are the URLs of the metadata service; the first one that can be reached answers.
	Metadata []string
	// Now is the clock.
	Now func() time.Time
	// Started is the time when the plugin started.
	Started time.Time
}

// Here returns this machine, at the start of the plugin of a provider.
func Here(provider string) Machine {
	return Machine{Provider: provider, Endpoints: endpointsFile(), Metadata: []string{"http://169.254.169.254", "http://[fd00:ec2::254]"}, Now: time.Now, Started: time.Now()}
}

// endpointsFile returns the path of the file that permits servers other than AWS's to receive the credentials of the role.
func endpointsFile() string {
	if runtime.GOOS == "windows" {
		return `C:\ProgramData\machineadm\endpoints.yaml`
	}
	return "/etc/machineadm/endpoints.yaml"
}

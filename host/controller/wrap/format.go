package wrap

import "sync"

// Wrapper wraps streams, for any number of goroutines. It keeps the memory of the compression, whose allocation takes more time
// than all the rest. The zero Wrapper is ready.
type Wrapper struct{ packers sync.Pool }

// Format is the form of the data. It has the fields of spec.format of a MachineBootstrapConfig.
type Format struct {
	// Type is cloudConfig, ignition, cloudbaseInit, unattend, talos, combustion or plain; by default cloudConfig.
	Type string
	// Version is the version of the Ignition specification, 3.0 to 3.5; by default 3.3.
	Version string
	// Target is the infrastructure, which limits the size: ec2, azure, gce, vsphere or virtualbox.
	Target string
	// MaxBytes replaces the limit of the target.
	MaxBytes int
	// Template is a text/template of the user, with the functions machine_config, base64, gzipBase64, json, xml and dataURL.
	// Nil means none.
	Template []byte
}

// Data is what a Secret with bootstrap data holds.
type Data struct {
	Value []byte
	// Format is cloud-config or ignition, which infrastructure providers read from the key format.
	Format string
}

// The values of Format.Type.
const (
	cloudConfig   = "cloudConfig"
	ignition      = "ignition"
	cloudbaseInit = "cloudbaseInit"
	unattend      = "unattend"
	talos         = "talos"
	combustion    = "combustion"
	plain         = "plain"
)

package render

import (
	"reflect"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// The files in the work directory of the settings.
const (
	PatchesDir = "patches"        // holds Rendered.Patches
	Kubeconfig = "discovery.conf" // has the content Rendered.Kubeconfig
)

// Rendered is what kubeadm reads. It contains secrets.
type Rendered struct {
	// Config is kubeadm's standard input.
	Config []byte
	// Flags are further arguments of kubeadm, which its configuration cannot express.
	Flags []string
	// Patches are files in PatchesDir; with none the directory is not needed.
	Patches []Patch
	// Kubeconfig is the content of the file Kubeconfig, nil for none.
	Kubeconfig []byte
}

// Patch is a file that changes an object which kubeadm generates.
type Patch struct {
	Name    string
	Content []byte
}

// object is a mapping of kubeadm's API.
type object map[string]any

// put sets a field unless the value is empty.
func (o object) put(key string, value any) {
	if !isEmpty(value) {
		o[key] = value
	}
}

// renderer writes for one release of kubeadm.
type renderer struct {
	s          settings.Settings
	kubeadm    release.Version
	legacy     bool // v1beta3
	violations []sdk.Violation
	result     Rendered
}

func (r *renderer) document(kind string) object {
	version := "kubeadm.k8s.io/v1beta4"
	if r.legacy {
		version = "kubeadm.k8s.io/v1beta3"
	}
	return object{"apiVersion": version, "kind": kind}
}

// isEmpty reports whether a value is absent or an empty collection. An empty mapping is not: it can select something.
func isEmpty(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() != reflect.Map && v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

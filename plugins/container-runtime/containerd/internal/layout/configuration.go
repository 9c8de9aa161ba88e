package layout

import (
	"io/fs"
	"slices"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// configuration is what the daemon shall read.
type Configuration struct {
	Main   sdk.FileSpec
	DropIn *sdk.FileSpec // nil where the main file holds everything
	// settings are all that the files set, in the format of the daemon's release: the wanted and what they need beside them.
	Settings []settings.Setting
	Warnings []sdk.Warning
}

func (c *Configuration) mainSpec(d mainDocument, secret bool) {
	mode := d.mode
	if secret {
		mode = 0o600
	}
	c.Main = sdk.FileSpec{
		Path: d.path, Content: d.Bytes(), Mode: mode, Sensitive: secret || holdsCredentials(d.Document), Part: &sdk.Part{Name: "machineadm", Content: []byte{}},
	}
}

// holdsCredentials says whether other people keep credentials in the file: its difference is then not for showing.
func holdsCredentials(d *tomledit.Document) bool {
	for _, plugin := range []string{settings.CRIPlugin, settings.ImagesPlugin} {
		at := []string{"plugins", plugin, "registry"}
		if len(d.Keys(append(at, "auths")...)) > 0 || len(d.Keys(append(at, "headers")...)) > 0 {
			return true
		}
		for _, host := range d.Keys(append(at, "configs")...) {
			if d.Has(append(at, "configs", host, "auth")...) {
				return true
			}
		}
	}
	return false
}

func anySecret(desired []settings.Setting) bool {
	return slices.ContainsFunc(desired, func(s settings.Setting) bool { return s.Secret })
}

func modeOf(secret bool) fs.FileMode {
	if secret {
		return 0o600
	}
	return 0o644
}

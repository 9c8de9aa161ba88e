package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Configuration is the configuration that the daemon is to read.
type Configuration struct {
	Main   sdk.FileSpec
	DropIn *sdk.FileSpec // nil where the main file holds everything
	// Settings are all that the files set: what the document says and what that needs.
	Settings []settings.Setting
	Warnings []sdk.Warning
}

// Files are the drop-in, if any, and the main file, which refers to it.
func (c *Configuration) Files() []sdk.FileSpec {
	if c.DropIn == nil {
		return []sdk.FileSpec{c.Main}
	}
	return []sdk.FileSpec{*c.DropIn, c.Main}
}

// file is a file that is ours alone. A secret one is for its owner only.
func file(path string, content []byte, secret bool) sdk.FileSpec {
	f := sdk.FileSpec{Path: path, Content: content, Mode: 0o644, Sensitive: secret}
	if secret {
		f.Mode = 0o600
	}
	return f
}

func anySecret(desired []settings.Setting) bool {
	return slices.ContainsFunc(desired, func(s settings.Setting) bool { return s.Secret })
}

func (c *Configuration) setMain(d mainDocument, secret bool) {
	c.Main = file(d.path, d.Bytes(), secret)
	if !secret {
		c.Main.Mode = d.mode
		c.Main.Sensitive = holdsCredentials(d)
	}
	c.Main.Part = &sdk.Part{Name: "machineadm", Content: []byte{}}
}

// holdsCredentials reports whether others keep credentials in the file: plans must not show its difference.
func holdsCredentials(d mainDocument) bool {
	for _, at := range InCRI("registry") {
		if len(d.Keys(below(at, "auths")...)) > 0 || len(d.Keys(below(at, "headers")...)) > 0 {
			return true
		}
		for _, host := range d.Keys(below(at, "configs")...) {
			if d.Has(below(at, "configs", host, "auth")...) {
				return true
			}
		}
	}
	return false
}

// write sets these values and imports in the main file. It deletes what an earlier run added and the document no longer
// asks for.
func (c *Configuration) write(d mainDocument, desired []settings.Setting, imports []string) error {
	var left []string
	for _, o := range d.Owned() {
		top := len(o.Path) == 1 && slices.Contains([]string{"version", "disabled_plugins", "imports"}, o.Path[0])
		switch {
		case top || !d.Has(o.Path...) || slices.ContainsFunc(desired, func(s settings.Setting) bool { return s.Is(o.Path...) }):
		case o.Changed:
			left = append(left, settings.Dotted(o.Path))
		default:
			if err := d.Delete(o.Path...); err != nil {
				return err
			}
		}
	}
	if len(left) > 0 {
		c.Warnings = append(c.Warnings, sdk.Warning{Message: fmt.Sprintf(
			"%s: no longer in the document; the value of an earlier run stays: %s", d.path, strings.Join(left, ", "))})
	}
	if err := setImports(d, imports); err != nil {
		return err
	}
	for _, s := range desired {
		if err := d.Set(s.Path, s.Value); err != nil {
			return err
		}
	}
	return nil
}

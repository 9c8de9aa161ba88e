package layout

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
)

// TestNothingShowsASecret: whatever of this package is formatted or logged.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	doc := containerdtest.ContainerRuntime(t, containerdtest.Secretive)
	for _, system := range []string{"linux", "windows"} {
		d, violations := settings.Resolve(doc, system)
		if len(violations) > 0 {
			t.Fatalf("%+v", violations)
		}
		desired, _ := d.Settings(settings.Release{Major: 2, Minor: 1, Patch: 4})
		secrets := 0
		for _, s := range desired {
			if s.Secret {
				secrets++
			}
		}
		if secrets != 3 {
			t.Errorf("%d settings are secret", secrets)
		}
		shapes := map[string]any{
			"document": doc, "desired": d, "pointer": &d, "unexported": struct{ d settings.Desired }{d}, "settings": desired, "setting": desired[0],
			"environment": d.Environment, "variables": struct{ v []settings.Variable }{d.Environment}, "registries": d.Registries,
			"certs": RegistryFiles(d, settings.Release{Major: 2, Minor: 1, Patch: 4}), "files": ServiceFiles(d), "violations": violations,
		}
		for name, shape := range shapes {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
				containerdtest.Leak(t, name+" with "+verb, fmt.Sprintf(verb, shape))
			}
			var out bytes.Buffer
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "y", shape)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "y", shape)
			containerdtest.Leak(t, name+" in a log", out.String())
		}
		for _, s := range desired {
			containerdtest.Leak(t, "setting", fmt.Sprintf("%v %+v %#v %s %x", s, s, s, s, s))
		}
	}
}

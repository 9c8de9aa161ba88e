package layout

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
)

// FuzzResolve: whatever a document says, the answer is violations, or settings and files; never both, never a panic.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		`{"cgroupDriver":"systemd"}`, `{"registries":{"r.test":{"mirrors":[{"url":"https://m.test"}]}}}`, containerdtest.Secretive,
		`{"runtimes":{"crun":{"options":{"a":[1,{"b":null}]}}},"defaultRuntime":"crun"}`, `{"proxy":{"http":"http://p:1","noProxy":["*"]}}`,
	} {
		f.Add(strings.NewReplacer("@CERT@", "x", "@KEY@", "x").Replace(seed))
	}
	f.Fuzz(func(t *testing.T, spec string) {
		doc := containerdtest.ContainerRuntime(t, `{}`)
		if json.Unmarshal([]byte(spec), &doc.Spec) != nil {
			return
		}
		for _, system := range []string{"linux", "windows"} {
			d, violations := settings.Resolve(doc, system)
			if len(violations) > 0 {
				continue
			}
			for _, r := range releases() {
				desired, _ := d.Settings(r)
				tree := map[string]any{}
				for _, s := range desired {
					put(tree, s.Path, s.Value)
				}
				if _, err := toml.Marshal(tree); err != nil {
					t.Errorf("%s: no TOML: %v", spec, err)
				}
				for _, file := range RegistryFiles(d, r) {
					var got map[string]any
					if strings.HasSuffix(file.Path, "hosts.toml") && toml.Unmarshal(file.Content, &got) != nil {
						t.Errorf("%s: no TOML:\n%s", spec, file.Content)
					}
				}
				ServiceFiles(d)
			}
			if system == "linux" {
				continue
			}
			for _, v := range ServiceEnvironment(d).Variables { // what the SDK refuses would be a defect
				if v.Value == "" || !utf8.ValidString(v.Value) || strings.ContainsFunc(v.Value, unicode.IsControl) {
					t.Errorf("%s: the variable %s is %q", spec, v.Name, v.Value)
				}
			}
		}
	})
}

package daemon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func variables() []settings.Variable {
	return []settings.Variable{
		{Name: "HTTPS_PROXY", Value: v1alpha1.NewSecret([]byte("http://c4n4ry@proxy:3128")), Secret: true},
		{Name: "NO_PROXY", Value: v1alpha1.NewSecret([]byte("10.0.0.0/8"))},
	}
}

// TestOverridden: what others' drop-ins do to variables of the document, by systemd.exec(5).
func TestOverridden(t *testing.T) {
	t.Parallel()
	const unit, all = "/containerd.service.d/", "/service.d/"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nobody's":               {nil, ""},
		"Environment anywhere":   {map[string]string{"/etc/systemd/system" + unit + "zzz.conf": "[Service]\nEnvironment=HTTPS_PROXY=x\nEnvironment=\n"}, ""},
		"a file ahead of ours":   {map[string]string{"/etc/systemd/system" + unit + "10.conf": "[Service]\nEnvironmentFile=/v\n", "/v": "HTTPS_PROXY=x\n"}, ""},
		"a file behind ours":     {map[string]string{"/etc/systemd/system" + unit + "zzz.conf": "[Service]\nEnvironmentFile=-/v\n", "/v": "# a\n NO_PROXY = x\n"}, "zzz.conf overrides NO_PROXY of containerd (EnvironmentFile=/v)"},
		"of another variable":    {map[string]string{"/etc/systemd/system" + unit + "zzz.conf": "[Service]\nEnvironmentFile=/v\n", "/v": "OTHER=HTTPS_PROXY=x\n"}, ""},
		"that is not there":      {map[string]string{"/etc/systemd/system" + unit + "zzz.conf": "[Service]\nEnvironmentFile=-/v\n"}, ""},
		"an empty list behind":   {map[string]string{"/usr/lib/systemd/system" + unit + "zzz.conf": "[Service]\nEnvironmentFile=\n"}, "/usr/lib/systemd/system/containerd.service.d/zzz.conf overrides HTTPS_PROXY"},
		"an empty list ahead":    {map[string]string{"/etc/systemd/system" + unit + "a.conf": "[Service]\nEnvironmentFile=\n"}, ""},
		"removed, anywhere":      {map[string]string{"/run/systemd/system" + unit + "a.conf": "[Service]\nUnsetEnvironment=A \\\n HTTPS_PROXY\n"}, "a.conf overrides HTTPS_PROXY of containerd (UnsetEnvironment=)"},
		"of all services":        {map[string]string{"/etc/systemd/system" + all + "a.conf": "[Service]\nUnsetEnvironment=NO_PROXY=10.0.0.0/8\n"}, "/etc/systemd/system/service.d/a.conf overrides NO_PROXY"},
		"another section":        {map[string]string{"/etc/systemd/system" + unit + "zzz.conf": "[Unit]\nUnsetEnvironment=NO_PROXY\n"}, ""},
		"hidden by a nearer one": {map[string]string{"/usr/lib/systemd/system" + unit + "a.conf": "[Service]\nUnsetEnvironment=NO_PROXY\n", "/etc/systemd/system" + unit + "a.conf": ""}, ""},
		"ours":                   {map[string]string{"/etc/systemd/system" + unit + "zz-machineadm.conf": "[Service]\nEnvironmentFile=-/etc/containerd/machineadm/environment\n"}, ""},
		"not a drop-in":          {map[string]string{"/etc/systemd/system" + unit + "zzz.conf~": "[Service]\nUnsetEnvironment=NO_PROXY\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.WriteFiles(t, c.files)
			err := Overridden(f.Machine, variables())
			require.NoError(t, Overridden(f.Machine, nil))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestOverriddenField: the error is at the field that the variable is of.
func TestOverriddenField(t *testing.T) {
	t.Parallel()
	for name, field := range map[string]string{"NO_PROXY": "spec.proxy", settings.TrustVariable: "spec.trustedCAs"} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/systemd/system/containerd.service.d/a.conf": "[Service]\nUnsetEnvironment=" + name + "\n"})
		e := pluginv1.AsError(Overridden(f.Machine, []settings.Variable{{Name: name}}))
		require.Len(t, e.Violations, 1)
		assert.Equal(t, field, e.Violations[0].Field)
	}
}

// TestInForce compares with the environment of the process. No error has a value.
func TestInForce(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"A=b\x00HTTPS_PROXY=http://c4n4ry@proxy:3128\x00NO_PROXY=10.0.0.0/8\x00":    "",
		"NO_PROXY=10.0.0.0/8\x00HTTPS_PROXY=http://old-c4n4ry@proxy:3128\x00":       "without the document's HTTPS_PROXY",
		"HTTPS_PROXY=http://c4n4ry@proxy:3128\x00MY_NO_PROXY=10.0.0.0/8\x00A=b\x00": "without the document's NO_PROXY",
		"": "without the document's HTTPS_PROXY",
	} {
		f := machinetest.New(t)
		f.Services.Put(settings.Unit, machine.ServiceState{MainPID: 7})
		f.WriteFiles(t, map[string]string{"/proc/7/environ": environ})
		require.NoError(t, inForce(t.Context(), f.Machine, nil))
		err := inForce(t.Context(), f.Machine, variables())
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "c4n4ry")
	}
}

package sdk_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const w32time = `SYSTEM\CurrentControlSet\Services\W32Time\Parameters`

func peers(text string) sdk.RegistryValue {
	return sdk.RegistryValue{Key: w32time, Name: "NtpServer", Data: machine.RegistryText(text)}
}

// timeService has the service W32Time with a value of its own.
func timeService(t *testing.T) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Services.Put("W32Time", running())
	f.Registry.Put(`system\currentcontrolset\services\w32time\parameters`, "ntpserver", machine.RegistryText("time.windows.com,0x9"))
	return f
}

// TestActivateRegistryValues: values alone are set and the service is restarted; afterwards nothing is planned.
func TestActivateRegistryValues(t *testing.T) {
	t.Parallel()
	f := timeService(t)
	f.Registry.Put(w32time, "Old", machine.RegistryNumber(1))
	want := sdk.Activation{Unit: "W32Time", Registry: []sdk.RegistryValue{
		peers("ntp.example.com,0x8"), {Key: w32time, Name: "Type", Data: machine.RegistryText("NTP")}, {Key: w32time, Name: "Old", Absent: true},
	}}
	changes, err := sdk.Activate(t.Context(), f.Machine, want)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.Equal(t, "change the configuration of W32Time (3 registry values) and restart it", changes[0].Summary)
	const path = `HKLM\` + w32time + `\`
	assert.Equal(t, path+`NtpServer: REG_SZ "time.windows.com,0x9" -> REG_SZ "ntp.example.com,0x8"`+"\n"+
		path+`Type: absent -> REG_SZ "NTP"`+"\n"+path+"Old: REG_DWORD 1 -> absent\n", changes[0].Diff)
	require.NoError(t, activate(t, f.Machine, want, 1))
	const lower = `system\currentcontrolset\services\w32time\parameters\`
	assert.Equal(t, []string{"set " + lower + "ntpserver", "set " + lower + "type", "delete " + lower + "old"}, f.Registry.Calls())
	assert.Equal(t, []string{"restart W32Time.service"}, f.Services.Calls())
	require.NoError(t, activate(t, f.Machine, want, 0))
	want.Registry[1].Data = machine.RegistryNumber(0)
	require.NoError(t, activate(t, f.Machine, want, 1), "another type is another value")
}

// TestActivateRegistryValuesClaims: also what matches is claimed, in one spelling.
func TestActivateRegistryValuesClaims(t *testing.T) {
	t.Parallel()
	f := timeService(t)
	_, err := sdk.Activate(t.Context(), f.Machine.Field("spec.servers"), sdk.Activation{Unit: "W32Time", Registry: []sdk.RegistryValue{
		peers("time.windows.com,0x9"),
		{Key: w32time, Name: "Old", Data: machine.RegistryNumber(1), Absent: true},
		{Key: `SYSTEM\A/B`, Name: "N", Data: machine.RegistryNumber(10)},
	}})
	require.NoError(t, err)
	const id = `registry:hklm\system\currentcontrolset\services\w32time\parameters\`
	assert.Equal(t, []machine.Claim{
		{ID: id + "ntpserver", Field: "spec.servers", Value: []string{"REG_SZ", "time.windows.com,0x9"}},
		{ID: id + "old", Field: "spec.servers"},
		{ID: `registry:hklm\system\a/b\n`, Field: "spec.servers", Value: []string{"REG_DWORD", "10"}},
	}, f.Claims()[:3])
}

// TestActivateRegistryValuesElsewhere: without a registry they are Unsupported, whatever the state of the unit.
func TestActivateRegistryValuesElsewhere(t *testing.T) {
	t.Parallel()
	unix(t)
	image, _ := machinetest.NewImage(t)
	_, err := sdk.Activate(t.Context(), image, sdk.Activation{Unit: "d", Registry: []sdk.RegistryValue{peers("x")}})
	require.ErrorIs(t, err, machine.ErrUnsupported)
}

func TestActivateRegistryValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	text := machine.RegistryText("canary")
	for name, c := range map[string]struct {
		value sdk.RegistryValue
		want  string
	}{
		"no key":           {sdk.RegistryValue{Name: "N", Data: text}, "its key"},
		"key with HKLM":    {sdk.RegistryValue{Key: `HKLM\SYSTEM`, Name: "N", Data: text}, "its key"},
		"trailing slash":   {sdk.RegistryValue{Key: `SYSTEM\`, Name: "N", Data: text}, "its key"},
		"no name":          {sdk.RegistryValue{Key: "SYSTEM", Data: text}, "its name"},
		"path as a name":   {sdk.RegistryValue{Key: "SYSTEM", Name: `A\B`, Absent: true}, "its name"},
		"NUL in a name":    {sdk.RegistryValue{Key: "SYSTEM", Name: "a\x00b", Data: text}, "NUL"},
		"no data":          {sdk.RegistryValue{Key: "SYSTEM", Name: "N"}, "its data"},
		"not a number":     {sdk.RegistryValue{Key: "SYSTEM", Name: "N", Data: machine.RegistryData{Type: machine.RegistryDWORD}}, "its data"},
		"expanded":         {sdk.RegistryValue{Key: "SYSTEM", Name: "N", Data: machine.RegistryData{Type: machine.RegistryExpandSZ}}, "its data"},
		"NUL in the text":  {sdk.RegistryValue{Key: "SYSTEM", Name: "N", Data: machine.RegistryText("canary\x00x")}, "its text"},
		"nothing to apply": {},
	} {
		f := timeService(t)
		want := sdk.Activation{Unit: "W32Time", Registry: []sdk.RegistryValue{c.value}}
		if c.want == "" {
			want.Registry, c.want = nil, "has no files"
		}
		changes, err := sdk.Activate(t.Context(), f.Machine, want)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), "canary", name)
		require.Empty(t, changes, name)
	}
}

// TestActivateRegistryValuesFails: a value that cannot be set leaves everything as it was; the error does not quote the data.
func TestActivateRegistryValuesFails(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*machinetest.Fixture){
		"the key does not exist": func(*machinetest.Fixture) {},
		"access denied": func(f *machinetest.Fixture) {
			f.Registry.Put(`SOFTWARE\D`, "Other", machine.RegistryNumber(1))
			f.Registry.Failures[`set software\d\n`] = errors.New("access denied")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := timeService(t)
			prepare(f)
			err := activate(t, f.Machine, sdk.Activation{Unit: "W32Time", Registry: []sdk.RegistryValue{
				peers("canary"), {Key: `SOFTWARE\D`, Name: "N", Data: machine.RegistryText("canary")},
			}}, 1)
			wantCode(t, err, pluginv1.CodePrecondition, `set the registry value HKLM\SOFTWARE\D\N`)
			require.NotContains(t, err.Error(), "canary")
			data, err := f.Registry.Value(w32time, "NtpServer")
			require.NoError(t, err)
			require.Equal(t, machine.RegistryText("time.windows.com,0x9"), data)
			require.Empty(t, f.Services.Calls())
		})
	}
}

// TestActivateWithoutConfiguration: a service whose configuration is not managed is enabled, and not restarted.
func TestActivateWithoutConfiguration(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put("W32Time", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1"})
	want := sdk.Activation{Unit: "W32Time", Enable: true}
	require.NoError(t, activate(t, f.Machine, want, 1))
	assert.Equal(t, []string{"enable W32Time.service"}, f.Services.Calls())
	require.NoError(t, activate(t, f.Machine, want, 0))
}

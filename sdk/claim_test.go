package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestHelpersClaim: the helpers claim what they manage, also where it already matches.
func TestHelpersClaim(t *testing.T) {
	t.Parallel()
	unix(t)
	spec := sdk.FileSpec{Path: "/etc/./x", Content: []byte("x\n"), Mode: 0o640}
	owned, part, none := spec, spec, spec
	owned.Owner = &sdk.Owner{UID: 1, GID: 2}
	part.Part = &sdk.Part{Name: "ours", Content: []byte("x")}
	none.Part = &sdk.Part{Name: "ours"}
	file := machine.Claim{ID: "file:/etc/x", Field: "spec.x", Value: []string{"x\n", "0640", ""}}
	claim := func(id string, value ...string) machine.Claim {
		return machine.Claim{ID: id, Field: "spec.x", Value: value}
	}
	one := func(_ *sdk.Change, err error) error { return err }
	for name, c := range map[string]struct {
		plan func(ctx context.Context, m sdk.Machine) error
		want []machine.Claim
	}{
		"file":      {func(_ context.Context, m sdk.Machine) error { return one(sdk.File(m, spec)) }, []machine.Claim{file}},
		"owner":     {func(_ context.Context, m sdk.Machine) error { return one(sdk.File(m, owned)) }, []machine.Claim{claim("file:/etc/x", "x\n", "0640", "1:2")}},
		"part":      {func(_ context.Context, m sdk.Machine) error { return one(sdk.File(m, part)) }, []machine.Claim{claim("file:/etc/x#ours", "x")}},
		"no part":   {func(_ context.Context, m sdk.Machine) error { return one(sdk.File(m, none)) }, []machine.Claim{claim("file:/etc/x#ours")}},
		"absent":    {func(_ context.Context, m sdk.Machine) error { return one(sdk.Absent(m, "/etc/x")) }, []machine.Claim{claim("file:/etc/x")}},
		"directory": {func(_ context.Context, m sdk.Machine) error { return one(sdk.Directory(m, "/d/", 0o700)) }, []machine.Claim{claim("directory:/d", "0700")}},
		"drop-in": {func(ctx context.Context, m sdk.Machine) error {
			return one(sdk.DropIn(ctx, m, "x.service", "a", "y\n"))
		}, []machine.Claim{claim("file:/etc/systemd/system/x.service.d/a.conf", "y\n", "0644", "")}},
		"service": {func(ctx context.Context, m sdk.Machine) error {
			_, err := sdk.ServiceState(ctx, m, "x", sdk.ServiceSpec{Enabled: new(true)})
			return err
		}, []machine.Claim{claim("unit:x.service#enabled", "true")}},
		"alias": {func(ctx context.Context, m sdk.Machine) error {
			_, err := sdk.ServiceState(ctx, m, "y", sdk.ServiceSpec{Running: new(true)})
			return err
		}, []machine.Claim{claim("unit:x.service#running", "true")}},
		"activation": {func(ctx context.Context, m sdk.Machine) error {
			_, err := sdk.Activate(ctx, m, sdk.Activation{Unit: "x.service", Files: []sdk.FileSpec{spec}})
			return err
		}, []machine.Claim{file, claim("unit:x.service#running", "true")}},
		"by hand": {func(_ context.Context, m sdk.Machine) error {
			m.Claim("sysctl:kernel.panic", "spec.y", "10")
			return nil
		}, []machine.Claim{{ID: "sysctl:kernel.panic", Field: "spec.y", Value: []string{"10"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.Services.Put("x.service", running())
			alias := running()
			alias.ID = "x.service"
			f.Services.Put("y.service", alias)
			require.NoError(t, c.plan(t.Context(), f.Machine.Field("spec.x")))
			assert.Equal(t, c.want, f.Claims())
		})
	}
}

// TestHelpersClaimAsTheVectors compares the claims of the helpers with the test vectors of the contract, which plugins in
// other languages follow.
func TestHelpersClaimAsTheVectors(t *testing.T) {
	t.Parallel()
	unix(t)
	data, err := os.ReadFile("../contract/pluginv1/testdata/claims.jsonl")
	require.NoError(t, err)
	want := map[string][]string{}
	for line := range bytes.Lines(data) {
		var v struct {
			ID    string
			Value []string
		}
		require.NoError(t, json.Unmarshal(line, &v))
		want[v.ID] = v.Value
	}
	f := machinetest.New(t)
	f.Services.Put("chrony.service", running())
	file := func(path, content string, mode fs.FileMode, change func(*sdk.FileSpec)) {
		spec := sdk.FileSpec{Path: path, Content: []byte(content), Mode: mode}
		if change != nil {
			change(&spec)
		}
		_, err := sdk.File(f.Machine, spec)
		require.NoError(t, err)
	}
	file("/etc/motd", "hello\n", 0o644, nil)
	file("/etc/chrony/chrony.keys", "1 SHA1 ab\n", 0o600, func(s *sdk.FileSpec) { s.Owner = &sdk.Owner{UID: 0, GID: 106} })
	file("/etc/empty", "", 0o644, nil)
	file("/etc/su", "x", 0o755|fs.ModeSetuid, nil)
	file("/etc/gone", "", 0, func(s *sdk.FileSpec) { s.Absent = true })
	file("/etc/50%#1.conf", "é\n", 0o644, nil)
	for name, content := range map[string][]byte{"node": []byte("10.0.0.1 node\n"), "empty": {}, "gone": nil} {
		file("/etc/hosts", "all", 0o644, func(s *sdk.FileSpec) { s.Part = &sdk.Part{Name: name, Content: content} })
	}
	_, err = sdk.Directory(f.Machine, "/etc/chrony/sources.d/", 0o755)
	require.NoError(t, err)
	_, err = sdk.Activate(t.Context(), f.Machine, sdk.Activation{
		Unit: "chrony", Enable: true,
		Files: []sdk.FileSpec{{Path: "/etc/motd", Content: []byte("hello\n"), Mode: 0o644}},
	})
	require.NoError(t, err)
	off := false
	_, err = sdk.ServiceState(t.Context(), f.Machine, "systemd-timesyncd.service", sdk.ServiceSpec{Enabled: &off})
	require.NoError(t, err)
	on := true
	for init, states := range map[string]map[string]sdk.ServiceSpec{
		target.InitOpenRC: {"chronyd": {Enabled: &on}}, target.InitRunit: {"ntpd": {Running: &off}}, target.InitS6: {"ntpd": {Enabled: &off}},
	} {
		m := f.Machine
		m.Target.Init = init
		for unit, spec := range states {
			state := running()
			state.ID = unit
			f.Services.Put(unit, state)
			_, err = sdk.ServiceState(t.Context(), m, unit, spec)
			require.NoError(t, err)
		}
	}
	const service = `SYSTEM\CurrentControlSet\Services\W32Time\`
	f.Services.Put("W32Time", running())
	_, err = sdk.Activate(t.Context(), f.Machine, sdk.Activation{Unit: "W32Time", Registry: []sdk.RegistryValue{
		{Key: service + "Parameters", Name: "NtpServer", Data: machine.RegistryText("ntp.example.com,0x8")},
		{Key: service + "Config", Name: "MaxPollInterval", Data: machine.RegistryNumber(10)},
		{Key: service + `TimeProviders\NtpClient`, Name: "LargeSampleSkew", Absent: true},
	}})
	require.NoError(t, err)
	checked := 0
	for _, c := range f.Claims() {
		if value, ok := want[c.ID]; ok {
			assert.Equal(t, append([]string{}, value...), append([]string{}, c.Value...), c.ID)
			delete(want, c.ID)
			checked++
		}
	}
	for id := range want {
		assert.Regexp(t, "^(sysctl|module|link|node):", id, "no helper claims it as the vector does")
	}
	assert.Equal(t, 19, checked)
}

func TestClaimsOnWindowsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	var got []string
	m := sdk.Machine{Target: target.Target{OS: "windows"}, Claims: func(c machine.Claim) { got = append(got, c.ID) }}
	m.Claim(`file:C:\ProgramData/X`, "")
	m.Claim("unit:W32Time#running", "", "true")
	m.Claim("other:X", "")
	assert.Equal(t, []string{`file:c:\programdata\x`, "unit:w32time#running", "other:X"}, got)
}

// TestClaimsOverTheWire: a converged plan has claims, and a pending error has the claims from before it, and the warnings.
func TestClaimsOverTheWire(t *testing.T) {
	t.Parallel()
	key := []byte("key")
	want := []pluginv1.Claim{pluginv1.NewClaim(key, "a:1", "", []byte("x")), pluginv1.NewClaim(key, "a:2", "spec.count")}
	for name, c := range map[string]struct {
		err  error
		key  []byte
		want []pluginv1.Claim
	}{
		"converged":    {nil, key, want},
		"no key":       {nil, nil, nil},
		"precondition": {sdk.Precondition("not yet", ""), key, want},
		"retry":        {sdk.Retry(0, "not yet"), key, want},
		"invalid":      {sdk.InvalidConfig(sdk.Violation{Message: "no"}), key, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, configurator(func(_ context.Context, m sdk.Machine, _ probe) (sdk.Plan, error) {
				m.Claim("a:1", "", "x")
				m.Claim("a:2", "spec.count")
				m.Claim("a:1", "", "x") // repeated
				return sdk.Plan{Warnings: []sdk.Warning{{Field: "spec", Message: "look"}}}, c.err
			}))
			request := live(document(`{}`))
			request.ClaimKey = c.key
			plan, err := client.Plan(t.Context(), request)
			if c.err == nil {
				require.NoError(t, err)
				assert.Equal(t, c.want, plan.Claims)
				return
			}
			e := pluginv1.AsError(err)
			assert.Equal(t, c.want, e.Claims)
			assert.Equal(t, e.Code != pluginv1.CodeInvalidConfig, len(e.Warnings) == 1, "what holds whatever is missing is shown beside it")
		})
	}
}

func TestClaimWithTwoValues(t *testing.T) {
	t.Parallel()
	m := configurator(func(_ context.Context, m sdk.Machine, _ probe) (sdk.Plan, error) {
		m.Claim("a:1", "", "canary")
		m.Claim("a:1", "", "y")
		return sdk.Plan{}, nil
	})
	request := live(document(`{}`))
	request.ClaimKey = []byte("key")
	_, err := m.Plan(t.Context(), request)
	wantCode(t, err, pluginv1.CodeInternal, "the plan claims a:1 with two values")
	assert.NotContains(t, err.Error(), "canary")
}

// TestAssumedClaims: what a document asks for takes the place of what it assumes, in either order.
func TestAssumedClaims(t *testing.T) {
	t.Parallel()
	ask := func(m sdk.Machine) { m.Claim("a:1", "spec.x", "asked") }
	assume := func(m sdk.Machine) { m.Assume("a:1", "spec.y", "assumed") }
	for name, c := range map[string]struct {
		claims []func(sdk.Machine)
		want   pluginv1.Claim
	}{
		"assumed":       {[]func(sdk.Machine){assume}, pluginv1.Claim{Field: "spec.y", Assumed: true}},
		"assumed first": {[]func(sdk.Machine){assume, ask}, pluginv1.Claim{Field: "spec.x"}},
		"asked first":   {[]func(sdk.Machine){ask, assume}, pluginv1.Claim{Field: "spec.x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := configurator(func(_ context.Context, m sdk.Machine, _ probe) (sdk.Plan, error) {
				for _, claim := range c.claims {
					claim(m)
				}
				return sdk.Plan{}, nil
			})
			request := live(document(`{}`))
			request.ClaimKey = []byte("key")
			got, err := p.Plan(t.Context(), request)
			require.NoError(t, err)
			require.Len(t, got.Claims, 1)
			assert.Equal(t, c.want, pluginv1.Claim{Field: got.Claims[0].Field, Assumed: got.Claims[0].Assumed})
		})
	}
}

package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

var update = flag.Bool("update", false, "write the golden files")

func lines(p sdk.Plan) string {
	var b strings.Builder
	for _, change := range p.Changes {
		b.WriteString(change.Summary + "\n" + change.Diff)
	}
	return b.String()
}

// TestGolden compares the plan on a default Windows Server with the values that it writes. Applied, it needs no change.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"servers":     `{"servers":[{"address":"ntp1.example.com"},{"address":"2001:db8::1"}]}`,
		"pool":        `{"pools":[{"address":"pool.example.com"}],"disableOthers":false}`,
		"fallback":    `{"servers":[{"address":"ntp1.example.com","iburst":false}],"fallback":["ntp2.example.com"]}`,
		"intervals":   `{"servers":[{"address":"a","minPoll":6,"maxPoll":10},{"address":"b","minPoll":6,"maxPoll":10}]}`,
		"make-step":   `{"makeStep":{"threshold":"2s","limit":-1}}`,
		"host-only":   `{"servers":[{"address":"ntp1.example.com"}]}`, // a virtual machine that took the time from its host
		"profile-aws": `{"profile":"aws","makeStep":{"threshold":"1s","limit":-1},"waitForSync":{}}`,
		"profile-gcp": `{"profile":"gcp","fallback":["time1.google.com"]}`,
		"unmanaged":   `{"waitForSync":{},"keepDistributionSources":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := server2022(t)
			if name == "host-only" {
				f.Registry.Put(serviceKey+"Parameters", "Type", machine.RegistryText("NoSync"))
				f.Registry.Put(serviceKey+`TimeProviders\NtpClient`, "Enabled", machine.RegistryNumber(0))
			}
			f.Commands.On("w32tm /query /status", output(t, "status-unsynchronized"))
			p, err := plan(t.Context(), f.Machine, document(t, spec))
			require.NoError(t, err)
			file := "testdata/golden/" + name + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(lines(p)), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), lines(p))
			require.True(t, slices.ContainsFunc(f.Claims(), func(c machine.Claim) bool { return c.ID == "clock:system#servers" }),
				"two documents that differ conflict")

			require.NoError(t, apply(t, f.Machine, spec))
			f.Commands.On("w32tm /query /status", output(t, "status-en"))
			p, err = plan(t.Context(), f.Machine, document(t, spec))
			require.NoError(t, err)
			require.Empty(t, p.Changes)
		})
	}
}

// TestUnsupported: what W32Time cannot express is reported at once, each at its field.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for spec, fields := range map[string]string{
		`{"servers":[{"address":"a","nts":true,"iburst":true,"prefer":true},{"address":"b","key":{"id":1,"type":"SHA1","value":{"value":"c4n4ry-8"}}}],
			"pools":[{"address":"c","maxSources":2,"prefer":true}],"refClocks":[{"driver":"phc","device":"/dev/ptp0"}],"rtcSync":true,
			"makeStep":{"threshold":"500ms","limit":3},"keepDistributionSources":true}`: "spec.servers[0].nts spec.servers[0].iburst " +
			"spec.servers[1].key spec.servers[1] spec.pools[0].maxSources spec.refClocks[0] spec.keepDistributionSources spec.rtcSync " +
			"spec.makeStep.limit spec.makeStep.threshold",
		`{"fallback":["a"],"rtcSync":false}`:                                    "spec.fallback spec.rtcSync",
		`{"servers":[{"address":"a","minPoll":6}]}`:                             "spec.servers[0].minPoll",
		`{"servers":[{"address":"a","minPoll":3,"maxPoll":6}]}`:                 "spec.servers[0].minPoll",
		`{"servers":[{"address":"a","minPoll":4,"maxPoll":18}]}`:                "spec.servers[0].minPoll",
		`{"servers":[{"address":"a","minPoll":4,"maxPoll":6},{"address":"b"}]}`: "spec.servers[1].minPoll",
		`{"profile":"azure"}`:                                                   "spec.profile",
		`{"profile":"aws","servers":[{"address":"a"}]}`:                         "spec.servers[0] spec.servers[0].minPoll",
		`{"makeStep":{"threshold":"1500ms","limit":-1}}`:                        "spec.makeStep.threshold",
	} {
		_, err := plan(t.Context(), server2022(t).Machine, document(t, spec))
		e := pluginv1.AsError(err)
		require.Equal(t, pluginv1.CodeUnsupported, e.Code, spec)
		var got []string
		for _, v := range e.Violations {
			got = append(got, v.Field)
			require.NotEmpty(t, v.Hint)
		}
		require.Equal(t, fields, strings.Join(got, " "))
		require.NotContains(t, err.Error(), "c4n4ry")
	}
}

func TestInvalidConfig(t *testing.T) {
	t.Parallel()
	violations := validate(document(t, `{"servers":[{"address":"a b"}],"providerConfig":{"force":1,"x":2}}`))
	require.Len(t, violations, 3)
	_, err := plan(t.Context(), server2022(t).Machine, document(t, `{"servers":[{"address":"a b"}]}`))
	require.Equal(t, pluginv1.CodeInvalidConfig, pluginv1.AsError(err).Code)
}

const one = `{"servers":[{"address":"a"}]}`

// TestPreconditions: each refusal says what to do, and what resolves it.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	const policies = `SOFTWARE\Policies\Microsoft\W32Time\`
	for name, c := range map[string]struct {
		prepare       func(*machinetest.Fixture)
		spec, message string // no message: no refusal
	}{
		"member of a domain": {func(f *machinetest.Fixture) { f.Domain = "CORP" }, one, "the controllers of its domain CORP"},
		"forced":             {func(f *machinetest.Fixture) { f.Domain = "CORP" }, `{"servers":[{"address":"a"}],"providerConfig":{"force":true}}`, ""},
		"without servers":    {func(f *machinetest.Fixture) { f.Domain = "CORP" }, `{"makeStep":{"threshold":"1s","limit":-1}}`, ""},
		"domain unknown": {func(f *machinetest.Fixture) {
			f.Machine.Domain = func() (string, error) { return "", machine.ErrTimeout }
		}, one, "timed out"},
		"policy": {func(f *machinetest.Fixture) {
			f.Registry.Put(policies+"Parameters", "Type", machine.RegistryText("NT5DS"))
			f.Registry.Put(policies+`TimeProviders\NtpClient`, "Enabled", machine.RegistryNumber(0))
		}, one, `HKLM\SOFTWARE\Policies\Microsoft\W32Time\Parameters\Type is REG_SZ "NT5DS"; ` +
			`HKLM\SOFTWARE\Policies\Microsoft\W32Time\TimeProviders\NtpClient\Enabled is REG_DWORD 0`},
		"policy that agrees": {func(f *machinetest.Fixture) {
			f.Registry.Put(policies+"Parameters", "NtpServer", machine.RegistryText("a,0x8"))
		}, one, ""},
		"policy of another value": {func(f *machinetest.Fixture) {
			f.Registry.Put(policies+"Config", "MaxPosPhaseCorrection", machine.RegistryNumber(3600))
		}, one, ""},
		"another daemon": {func(f *machinetest.Fixture) {
			f.Services.Put("NTP", machine.ServiceState{Active: "inactive", Enabled: true})
		}, one, "the service NTP is another time daemon"},
		"another daemon runs": {func(f *machinetest.Fixture) { f.Services.Put("NTP", machine.ServiceState{Active: "active"}) }, one, "the service NTP"},
		"another daemon left alone": {func(f *machinetest.Fixture) {
			f.Services.Put("NTP", machine.ServiceState{Active: "active"})
		}, `{"servers":[{"address":"a"}],"disableOthers":false}`, ""},
		"another daemon disabled": {func(f *machinetest.Fixture) {
			f.Services.Put("NTP", machine.ServiceState{Active: "inactive", Masked: true})
		}, one, ""},
		"disabled": {func(f *machinetest.Fixture) {
			f.Services.Put(serviceName, machine.ServiceState{Active: "inactive", Masked: true})
		}, one, "the service W32Time is disabled"},
		"not registered": {func(f *machinetest.Fixture) { f.Machine.Services = machinetest.NewServices() }, one, "W32Time is not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := server2022(t)
			c.prepare(f)
			_, err := plan(t.Context(), f.Machine, document(t, c.spec))
			if c.message == "" {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.Contains(t, e.Message, c.message)
			require.NotEmpty(t, e.Hint)
			require.Equal(t, name == "member of a domain", e.Final)
		})
	}
}

// TestTriggers are removed after the activation: with it failed, the service would otherwise not start at all.
func TestTriggers(t *testing.T) {
	t.Parallel()
	f := server2022(t)
	f.Services.Put(serviceName, machine.ServiceState{Active: "inactive", Sub: "dead"})
	f.Registry.Put(serviceKey+`TriggerInfo\0`, "Type", machine.RegistryNumber(3))
	p, err := plan(t.Context(), f.Machine, document(t, `{"makeStep":{"threshold":"1s","limit":-1},"waitForSync":{"timeout":"2s"}}`))
	require.NoError(t, err)
	var ids []string
	for _, change := range p.Changes {
		ids = append(ids, change.ID)
	}
	require.Equal(t, []string{"activate:W32Time", "triggers:W32Time", "synchronize"}, ids)
	require.Contains(t, p.Changes[0].Summary, "enable W32Time")
	f.Commands.On("sc triggerinfo W32Time delete", machine.Result{ExitCode: 5, Stdout: []byte("Access is denied.")})
	require.ErrorContains(t, p.Changes[1].Do(t.Context(), quiet{}), "exit code 5")
	f.Commands.On("sc triggerinfo W32Time delete", machine.Result{})
	require.NoError(t, p.Changes[1].Do(t.Context(), quiet{}))

	f.Commands.On("w32tm /query /status", output(t, "status-unsynchronized"))
	f.Commands.On("w32tm /query /peers", output(t, "peers-en"))
	e := pluginv1.AsError(p.Changes[2].Do(t.Context(), quiet{}))
	require.Contains(t, e.Message, "Local CMOS Clock (ntp1.example.com,0x8: Active; 2001:db8::1,0x8: Pending)")
	require.Contains(t, e.Hint, "see the event log System, source Time-Service")
}

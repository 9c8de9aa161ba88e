package netjoin

import (
	"encoding/base64"
	"fmt"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestConverges applies a document, finds the reboot due as long as it has not happened, and nothing to do after it.
func TestConverges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start *fake
		want  func() settings.Settings
		log   []string
	}{
		"join": {workgroup(), wanted, []string{
			"mark begun", "join domain=ad.example.com unit= account=joiner@ad.example.com flags=0x20003",
		}},
		"join in a unit, by a server, with an existing account": {workgroup(), func() settings.Settings {
			s := wanted()
			s.Unit, s.Servers, s.Reuse = "OU=Nodes,DC=ad,DC=example,DC=com", []string{"dc1.ad.example.com", "dc2.ad.example.com"}, true
			return s
		}, []string{
			"mark begun",
			`join domain=ad.example.com\dc1.ad.example.com unit=OU=Nodes,DC=ad,DC=example,DC=com account=joiner@ad.example.com flags=0x3`,
		}},
		"rename and join in one reboot": {workgroup(), func() settings.Settings {
			s := wanted()
			s.Computer, s.Rename = "NODE-2", true
			return s
		}, []string{
			"rename node-2", "mark begun", "join domain=ad.example.com unit= account=joiner@ad.example.com flags=0x20403",
		}},
		"join by data": {workgroup(), func() settings.Settings { return offline("AQID") }, []string{
			"provision fffe41005100490044000000", "mark provisioned",
		}},
		"leave": {member(), func() settings.Settings {
			s := wanted()
			s.Absent, s.Disable = true, true
			return s
		}, []string{"mark begun", "leave account=joiner@ad.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := c.start, c.want()
			require.NoError(t, apply(t, f, s))
			assert.Equal(t, c.log, f.log)
			if s.Credentials != nil {
				assert.Equal(t, canary, f.password)
			}
			s.Credentials, s.OfflineJoinBlob = nil, nil // from here on not needed
			for range 2 {
				assert.Equal(t, []string{"reboot"}, planned(t, f, s))
				require.NoError(t, apply(t, f, s))
			}
			f.reboot()
			assert.Empty(t, planned(t, f, s))
			assert.Equal(t, c.log, f.log)
		})
	}
}

// TestMember: a member of the domain needs no credentials, and no call that changes it.
func TestMember(t *testing.T) {
	t.Parallel()
	f := member()
	assert.Empty(t, planned(t, f, withoutCredentials()))
	s := withoutCredentials()
	s.Domain, s.Computer = "AD.Example.com", "node-1"
	assert.Empty(t, planned(t, f, s))
	f.NextName = "NODE-2" // renamed by an administrator, who has not rebooted
	s.Computer = "NODE-2"
	assert.Equal(t, []string{"reboot"}, planned(t, f, s))
	f.State.Mark = ""
	s.Absent = true
	assert.Empty(t, planned(t, workgroup(), s))
	assert.Empty(t, f.log)
}

// TestRefused: what no other document can change ends the first planning, at the field to correct.
func TestRefused(t *testing.T) {
	t.Parallel()
	absent, renamed := withoutCredentials(), wanted()
	absent.Absent = true
	renamed.Computer = "NODE-2"
	other, sameFlatName := member(), member()
	other.NetBIOS, other.DNS = "CORP", "corp.example.com"
	sameFlatName.DNS = "ad.other.example"
	for name, c := range map[string]struct {
		f                    *fake
		s                    settings.Settings
		field, message, hint string
	}{
		"another domain":           {other, wanted(), "spec.domain", "CORP corp.example.com", "state: absent"},
		"of the same NetBIOS name": {sameFlatName, wanted(), "spec.domain", "AD ad.other.example", "state: absent"},
		"another domain to leave":  {other, absent, "spec.domain", "CORP", "state: absent"},
		"no credentials":           {workgroup(), withoutCredentials(), "spec.credentials", "join ad.example.com", "spec.credentials"},
		"none to leave":            {member(), absent, "spec.credentials", "leave ad.example.com", "spec.credentials"},
		"another name":             {workgroup(), renamed, "spec.computerName", "NODE-1 and not NODE-2", "spec.windows.rename: true"},
		"a member's other name":    {member(), renamed, "spec.computerName", "as NODE-1 and not as NODE-2", "spec.computerName: NODE-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Plan(t.Context(), machine(t), c.s, c.f)
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code, e.Message)
			assert.True(t, e.Final)
			assert.Contains(t, e.Message, c.message)
			assert.Contains(t, e.Hint, c.hint)
			require.Len(t, e.Violations, 1)
			assert.Equal(t, c.field, e.Violations[0].Field)
			assert.Empty(t, c.f.log)
		})
	}
}

// TestClaim: of two documents, one with the domain and one that leaves it, or with another domain, the host refuses both.
func TestClaim(t *testing.T) {
	t.Parallel()
	claims := map[string]bool{}
	leave, other := wanted(), wanted()
	leave.Absent, other.Domain = true, "other.example.com"
	for _, s := range []settings.Settings{wanted(), withoutCredentials(), leave, other} {
		f := machinetest.New(t)
		_, _ = Plan(t.Context(), f.Machine, s, workgroup()) // a refused document claims as well
		require.Len(t, f.Claims(), 1)
		claims[fmt.Sprint(f.Claims()[0])] = true
	}
	assert.Len(t, claims, 3)
}

// TestImage: Windows is not joined in an image.
func TestImage(t *testing.T) {
	t.Parallel()
	m, _ := machinetest.NewImage(t)
	_, err := Plan(t.Context(), m, wanted(), workgroup())
	assert.Equal(t, pluginv1.CodePrecondition, pluginv1.AsError(err).Code)
}

// TestServers: the domain controllers are asked in order, until one answers or refuses.
func TestServers(t *testing.T) {
	t.Parallel()
	f, s := workgroup(), wanted()
	s.Servers = []string{"a", "b", "c"}
	f.Fails["join"] = []error{CodeError(53), CodeError(1326)}
	require.ErrorContains(t, apply(t, f, s), "error 1326")
	require.Len(t, f.log, 3)
	assert.Contains(t, f.log[2], `domain=ad.example.com\b `)
	f.Fails["join"] = []error{CodeError(1722), nil}
	require.NoError(t, apply(t, f, s))
}

// TestReadBack: a success that Windows does not show is an error.
func TestReadBack(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]*fake{"join": workgroup(), "leave": member()} {
		s := wanted()
		s.Absent = name == "leave"
		p, err := Plan(t.Context(), machine(t), s, forgetful{start})
		require.NoError(t, err)
		require.ErrorContains(t, p.Changes[0].Do(t.Context(), nil), "reports success", name)
	}
}

// forgetful reports success and changes nothing.
type forgetful struct{ *fake }

func (forgetful) Join(Request) error { return nil }

func (forgetful) Leave(string, []byte) error { return nil }

// TestKilled kills the process before and after each change: the next run repairs it, and ends with the same state.
func TestKilled(t *testing.T) {
	t.Parallel()
	rename := wanted()
	rename.Computer, rename.Rename = "NODE-2", true
	leave := wanted()
	leave.Absent = true
	for name, c := range map[string]struct {
		start func() *fake
		s     settings.Settings
	}{
		"join": {workgroup, wanted()}, "rename and join": {workgroup, rename}, "data": {workgroup, offline("AQID")}, "leave": {member, leave},
	} {
		whole := c.start()
		require.NoError(t, apply(t, whole, c.s))
		whole.reboot()
		for at := 1; killed(t, c.start(), c.s, at, false, whole.State); at++ {
			require.Less(t, at, 20, name)
			killed(t, c.start(), c.s, at, true, whole.State)
		}
	}
}

// killed reports whether the process ended at this point. The machine may reboot before the next run.
func killed(t *testing.T, f *fake, s settings.Settings, at int, reboot bool, want State) bool {
	t.Helper()
	f.left = at
	err := apply(t, f, s)
	if err == nil {
		return false
	}
	require.ErrorIs(t, err, errKilled)
	if reboot {
		f.reboot()
	}
	require.NoError(t, apply(t, f, s))
	if !reboot {
		require.Equal(t, []string{"reboot"}, planned(t, f, s))
	}
	f.reboot()
	require.Empty(t, planned(t, f, s))
	require.Equal(t, want, f.State)
	return true
}

// TestProvisioningData: the document has the file of djoin.exe as base64, or the text in it.
func TestProvisioningData(t *testing.T) {
	t.Parallel()
	file := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune("AQIDBA==\x00")) {
		file = append(file, byte(unit), byte(unit>>8))
	}
	for _, encoded := range []string{"AQIDBA==", " AQIDBA==\n", base64.StdEncoding.EncodeToString(file)} {
		data, err := provisioningData([]byte(encoded))
		require.NoError(t, err)
		assert.Equal(t, file, data)
	}
	for _, wrong := range []string{"", "  ", canary, "AQI"} {
		err := apply(t, workgroup(), offline(wrong))
		e := pluginv1.AsError(err)
		require.Len(t, e.Violations, 1, wrong)
		assert.Equal(t, "spec.offlineJoinBlob", e.Violations[0].Field)
		assert.NotContains(t, fmt.Sprintf("%+v", e), "c4n4ry")
	}
}

func FuzzProvisioningData(f *testing.F) {
	f.Add([]byte("AQIDBA=="))
	f.Add([]byte("//4="))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		data, err := provisioningData(encoded)
		if err == nil && (len(data) < 2 || data[0] != 0xff || data[1] != 0xfe) {
			t.Errorf("%q became %q", encoded, data)
		}
	})
}

// TestUnsupported: each value that Windows cannot express is refused with its field and a hint.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	secret := v1alpha1.NewSecret([]byte(canary))
	var fields []string
	for _, v := range Unsupported(v1alpha1.DomainJoinSpec{
		Domain: "ad.example.com", State: "absent", FQDN: "node.example.com", ComputerName: "node", OneTimePassword: &secret,
	}) {
		fields = append(fields, v.Field)
		assert.NotEmpty(t, v.Hint)
	}
	assert.Equal(t, []string{"spec.oneTimePassword", "spec.leave", "spec.fqdn"}, fields)
	assert.Empty(t, Unsupported(v1alpha1.DomainJoinSpec{
		Domain: "ad.example.com", ComputerName: "NODE-1", FQDN: "node-1.ad.example.com", State: "absent", Leave: "disable",
		Credentials: &v1alpha1.DomainCredentials{}, OfflineJoinBlob: &secret,
	}))
}

package netjoin

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// TestErrors: each code has a cause, a remedy and the field to correct; it is a fact, and no error has the password.
func TestErrors(t *testing.T) {
	t.Parallel()
	const retry = pluginv1.CodeRetry
	for code, c := range map[CodeError]struct {
		reason, field string
		code          pluginv1.Code // zero: Precondition
	}{
		2:     {"organizational unit", "spec.organizationalUnit", 0},
		5:     {"access is denied", "spec.credentials", 0},
		53:    {"cannot be reached", "", retry},
		86:    {"user name or the password is wrong", "spec.credentials", 0},
		87:    {"a value is not valid", "", 0},
		1219:  {"connected to the domain controller as another user", "", 0},
		1311:  {"no domain controller is available", "", retry},
		1326:  {"user name or the password is wrong", "spec.credentials", 0},
		1327:  {"restriction", "spec.credentials", 0},
		1330:  {"expired", "spec.credentials", 0},
		1331:  {"disabled", "spec.credentials", 0},
		1355:  {"the domain is not found", "", retry},
		1385:  {"over the network", "spec.credentials", 0},
		1398:  {"clocks", "", 0},
		1722:  {"remote procedure calls", "", retry},
		1793:  {"account of the user has expired", "spec.credentials", 0},
		1907:  {"must be changed", "spec.credentials", 0},
		1909:  {"locked out", "spec.credentials", 0},
		2202:  {"no such user", "spec.credentials", 0},
		2224:  {"has an account of this name", "spec.existingAccount", 0},
		2691:  {"member of a domain already", "", 0},
		2692:  {"not a member of a domain any more", "", 0},
		2693:  {"is a domain controller", "", 0},
		2697:  {"no account for the machine", "", 0},
		2698:  {"edition of Windows", "", 0},
		2710:  {"data of the offline join", "spec.offlineJoinBlob", 0},
		2732:  {"forbids this user to reuse it", "spec.existingAccount", 0},
		8557:  {"ms-DS-MachineAccountQuota", "spec.credentials", 0},
		31337: {"no explanation", "", 0},
	} {
		t.Run(fmt.Sprint(uint32(code)), func(t *testing.T) {
			t.Parallel()
			f := workgroup()
			f.Fails["join"] = []error{code}
			err := apply(t, f, wanted())
			e := pluginv1.AsError(err)
			if c.code == 0 {
				c.code = pluginv1.CodePrecondition
			}
			require.Equal(t, c.code, e.Code)
			assert.Contains(t, e.Message, "Windows cannot join ad.example.com: ")
			assert.Contains(t, e.Message, c.reason)
			assert.Equal(t, map[string]string{"windowsError": fmt.Sprint(uint32(code))}, e.Facts)
			assert.NotContains(t, fmt.Sprintf("%+v", e), canary)
			if c.code == retry {
				assert.Contains(t, e.Message, "; check ")
				return
			}
			assert.NotEmpty(t, e.Hint)
			if c.field == "" {
				assert.Empty(t, e.Violations)
				return
			}
			require.Len(t, e.Violations, 1)
			assert.Equal(t, c.field, e.Violations[0].Field)
		})
	}
}

// TestEveryChange explains its errors, and does nothing after one.
func TestEveryChange(t *testing.T) {
	t.Parallel()
	other := errors.New("the function does not exist")
	rename, leave := wanted(), wanted()
	rename.Computer, rename.Rename = "NODE-2", true
	leave.Absent = true
	for word, do := range map[string]func(*fake) error{
		"rename":    func(f *fake) error { return apply(t, f, rename) },
		"provision": func(f *fake) error { return apply(t, f, offline("AQID")) },
		"leave": func(f *fake) error {
			f.NetBIOS, f.DNS = "AD", "ad.example.com"
			return apply(t, f, leave)
		},
	} {
		f := workgroup()
		f.Fails[word] = []error{CodeError(5), other}
		require.ErrorContains(t, do(f), "(error 5)")
		require.ErrorIs(t, do(f), other, "an error of another kind is a defect or of the machine")
		assert.NotEqual(t, Provisioned, f.State.Mark)
	}
	f := workgroup()
	f.Fails["mark"] = []error{other, other}
	require.ErrorIs(t, apply(t, f, wanted()), other)
	require.ErrorIs(t, apply(t, f, leave), nil)
	assert.Equal(t, []string{"mark begun"}, f.log, "no join without the mark")
	f.Fails["observe"] = []error{CodeError(2138)}
	_, err := Plan(t.Context(), machine(t), wanted(), f)
	require.ErrorContains(t, err, "Windows error 2138")
	require.Equal(t, pluginv1.CodePrecondition, pluginv1.AsError(err).Code)
}

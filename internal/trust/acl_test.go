package trust

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACL(t *testing.T) {
	t.Parallel()
	const me = "S-1-5-21-1-2-3-1001"
	var (
		administrators = account{sidAdministrators, `BUILTIN\Administrators`}
		installer      = account{sidTrustedInstaller, "TrustedInstaller"}
		users          = account{"S-1-5-32-545", `BUILTIN\Users`}
		user           = account{me, `PC\me`}
	)
	// What a fresh Windows has on C:\ and on C:\Program Files, in this order.
	root := descriptor{owner: installer, entries: []aclEntry{
		{aceAllowed, 0x3, 0x1f01ff, account{sidSystem, "SYSTEM"}},
		{aceAllowed, 0x3, 0x1f01ff, administrators},
		{aceAllowed, 0x3, 0x1200a9, users},
		{aceAllowed, 0x0, rightAppendData, account{"S-1-5-11", "Authenticated Users"}},
		{aceAllowed, 0xb, 0x1301bf, account{"S-1-5-11", "Authenticated Users"}},
	}}
	programs := descriptor{owner: installer, entries: []aclEntry{
		{aceAllowed, 0x2, 0x1f01ff, installer},
		{aceAllowed, 0x0, 0x1301bf, administrators},
		{aceAllowed, 0xb, rightGenericAll, account{sidCreatorOwner, "CREATOR OWNER"}},
		{aceAllowed, 0x0, 0x1f01ff, account{sidOwnerRights, "OWNER RIGHTS"}},
		{aceAllowed, 0x0, 0x1200a9, users},
	}}
	with := func(kind, flags byte, mask uint32, a account) descriptor {
		return descriptor{owner: administrators, entries: []aclEntry{{kind, flags, mask, a}}}
	}
	for name, test := range map[string]struct {
		user            string
		descriptor      descriptor
		adding          bool
		problem, remedy string
	}{
		"C:\\ above":                  {descriptor: root},
		"C:\\ as a plugin directory":  {descriptor: root, adding: true, problem: "can be written by Authenticated Users", remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-11`},
		"Program Files":               {descriptor: programs, adding: true},
		"my own":                      {user: me, descriptor: descriptor{owner: user, entries: []aclEntry{{aceAllowed, 0, rightGenericAll, user}}}, adding: true},
		"my own, but I am elevated":   {descriptor: descriptor{owner: user}, problem: `belongs to PC\me, which could change it`, remedy: `icacls "C:\x" /setowner *S-1-5-32-544`},
		"another's":                   {user: me, descriptor: descriptor{owner: users}, problem: `belongs to BUILTIN\Users, which could change it`, remedy: `icacls "C:\x" /setowner *S-1-5-32-544`},
		"no owner":                    {descriptor: descriptor{owner: account{name: "an unknown account"}}, problem: "belongs to an unknown account, which could change it", remedy: `icacls "C:\x" /setowner *S-1-5-32-544`},
		"no list":                     {descriptor: descriptor{owner: administrators, missing: true}, problem: "has no access control list, so everyone can write it", remedy: `icacls "C:\x" /reset`},
		"an empty list":               {descriptor: descriptor{owner: administrators}, adding: true},
		"write":                       {descriptor: with(aceAllowed, 0, rightWriteData, users), adding: true, problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"append":                      {descriptor: with(aceAllowed, 0, rightAppendData, users), adding: true, problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"generic write":               {descriptor: with(aceAllowed, 0, rightGenericWrite, users), adding: true, problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"with a condition":            {descriptor: with(aceAllowedCallback, 0, rightWriteData, users), adding: true, problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"add to a directory above":    {descriptor: with(aceAllowed, 0, rightWriteData|rightAppendData|rightGenericWrite, users)},
		"delete children above":       {descriptor: with(aceAllowed, 0, rightDeleteChild, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"delete above":                {descriptor: with(aceAllowed, 0, rightDelete, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"change permissions above":    {descriptor: with(aceAllowed, 0, rightWriteDAC, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"take ownership above":        {descriptor: with(aceAllowed, 0, rightWriteOwner, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"write attributes above":      {descriptor: with(aceAllowed, 0, rightWriteAttributes, users)},
		"make a link of it":           {descriptor: with(aceAllowed, 0, rightWriteAttributes, users), adding: true, problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"everything above":            {descriptor: with(aceAllowed, 0, rightGenericAll, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"read and execute":            {descriptor: with(aceAllowed, 0, 0x1200a9, users), adding: true},
		"only for children":           {descriptor: with(aceAllowed, aceInheritOnly, rightGenericAll, users), adding: true},
		"a prohibition":               {descriptor: with(aceDenied, 0, rightGenericAll, users), adding: true},
		"an entry of another kind":    {descriptor: with(0x5, 0, 0, users), problem: "has an access control list with an entry of a kind that files do not have", remedy: `icacls "C:\x" /reset`},
		"me, who am not this process": {descriptor: with(aceAllowed, 0, rightWriteData, user), adding: true, problem: `can be written by PC\me`, remedy: `icacls "C:\x" /inheritance:d /remove:g *` + me},
		"an entry without an account": {descriptor: with(aceAllowed, 0, rightWriteData, account{name: "an unknown account"}), adding: true, problem: "can be written by an unknown account", remedy: `icacls "C:\x" /inheritance:d /remove:g *`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problem, remedy := aclChecker{user: test.user}.check(`C:\x`, test.descriptor, test.adding)
			assert.Equal(t, test.problem, problem)
			assert.Equal(t, test.remedy, remedy)
		})
	}
}

// TestStockACLs checks the lists that Windows Server 2022 sets up, in the security descriptor definition language.
func TestStockACLs(t *testing.T) {
	t.Parallel()
	const (
		drive    = "O:TID:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICIIO;GA;;;CO)"
		client   = "O:TID:PAI(A;;LC;;;AU)(A;OICIIO;SDGXGWGR;;;AU)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
		data     = "O:SYD:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;DCLCRPCR;;;BU)"
		made     = "O:BAD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIIOID;GA;;;CO)(A;OICIID;0x1200a9;;;BU)(A;CIID;DCLCRPCR;;;BU)"
		stream   = "O:BAD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)(A;ID;0x1200a9;;;BU)"
		own      = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
		users    = "O:SYD:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;OICI;0x1200a9;;;WD)"
		deleting = "O:SYD:PAI(A;CI;DCLCRPCRDT;;;BU)"
	)
	for name, test := range map[string]struct {
		sddl    string
		adding  bool
		problem string
	}{
		`above: C:\ of a server`:                        {sddl: drive},
		`above: C:\ of a client`:                        {sddl: client},
		`above: C:\ProgramData`:                         {sddl: data},
		`above: a directory made in C:\ProgramData`:     {sddl: made},
		`above: C:\Users`:                               {sddl: users},
		`above: users can delete what is in it`:         {sddl: deleting, problem: "can be written by BU"},
		`the stream in C:\ProgramData`:                  {sddl: stream, adding: true},
		`C:\ProgramData as a run directory`:             {sddl: data, adding: true, problem: "can be written by BU"},
		`made in C:\ProgramData, as a plugin directory`: {sddl: made, adding: true, problem: "can be written by BU"},
		`machineadm's own directory`:                    {sddl: own, adding: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problem, _ := aclChecker{}.check(`C:\x`, parseSDDL(t, test.sddl), test.adding)
			assert.Equal(t, test.problem, problem)
		})
	}
}

// parseSDDL reads the subset that the test uses; an account is named by its abbreviation.
func parseSDDL(t *testing.T, text string) descriptor {
	t.Helper()
	accounts := map[string]string{
		"BA": sidAdministrators, "SY": sidSystem, "TI": sidTrustedInstaller, "CO": sidCreatorOwner,
		"BU": "S-1-5-32-545", "AU": "S-1-5-11", "WD": "S-1-1-0",
	}
	flags := map[string]byte{"OI": 0x1, "CI": 0x2, "IO": aceInheritOnly, "ID": 0x10}
	rights := map[string]uint32{
		"DC": rightWriteData, "LC": rightAppendData, "RP": 0x10, "DT": rightDeleteChild, "CR": rightWriteAttributes, "SD": rightDelete,
		"FA": 0x1f01ff, "GA": rightGenericAll, "GX": 0x20000000, "GW": rightGenericWrite, "GR": 0x80000000,
	}
	owner, list, found := strings.Cut(strings.TrimPrefix(text, "O:"), "D:")
	require.True(t, found)
	d := descriptor{owner: account{accounts[owner], owner}}
	for _, entry := range strings.Split(list, "(")[1:] {
		fields := strings.Split(strings.TrimSuffix(entry, ")"), ";")
		require.Len(t, fields, 6)
		require.Equal(t, "A", fields[0])
		e := aclEntry{kind: aceAllowed, account: account{accounts[fields[5]], fields[5]}}
		require.NotEmpty(t, e.account.sid, fields[5])
		for i := 0; i < len(fields[1]); i += 2 {
			require.Contains(t, flags, fields[1][i:i+2])
			e.flags |= flags[fields[1][i:i+2]]
		}
		if mask, ok := strings.CutPrefix(fields[2], "0x"); ok {
			n, err := strconv.ParseUint(mask, 16, 32)
			require.NoError(t, err)
			e.mask = uint32(n)
		} else {
			for i := 0; i < len(fields[2]); i += 2 {
				require.Contains(t, rights, fields[2][i:i+2])
				e.mask |= rights[fields[2][i:i+2]]
			}
		}
		d.entries = append(d.entries, e)
	}
	return d
}

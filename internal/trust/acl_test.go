package trust

import (
	"errors"
	"testing"
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
		"my own, but I am elevated":   {descriptor: descriptor{owner: user}, problem: `belongs to PC\me, who could change it`, remedy: `icacls "C:\x" /setowner *S-1-5-32-544`},
		"another's":                   {user: me, descriptor: descriptor{owner: users}, problem: `belongs to BUILTIN\Users, who could change it`, remedy: `icacls "C:\x" /setowner *S-1-5-32-544`},
		"no owner":                    {descriptor: descriptor{owner: account{name: "nobody"}}, problem: "belongs to nobody, who could change it", remedy: `icacls "C:\x" /setowner *S-1-5-32-544`},
		"no list":                     {descriptor: descriptor{owner: administrators, missing: true}, problem: "has no access control list, so that everyone can write it", remedy: `icacls "C:\x" /reset`},
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
		"make a link of it":           {descriptor: with(aceAllowed, 0, rightWriteAttributes, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"everything above":            {descriptor: with(aceAllowed, 0, rightGenericAll, users), problem: `can be written by BUILTIN\Users`, remedy: `icacls "C:\x" /inheritance:d /remove:g *S-1-5-32-545`},
		"read and execute":            {descriptor: with(aceAllowed, 0, 0x1200a9, users), adding: true},
		"only for children":           {descriptor: with(aceAllowed, aceInheritOnly, rightGenericAll, users), adding: true},
		"a prohibition":               {descriptor: with(aceDenied, 0, rightGenericAll, users), adding: true},
		"an entry of another kind":    {descriptor: with(0x5, 0, 0, users), problem: "has an access control list with an entry of a kind that files do not have", remedy: `icacls "C:\x" /reset`},
		"me, who am not this process": {descriptor: with(aceAllowed, 0, rightWriteData, user), adding: true, problem: `can be written by PC\me`, remedy: `icacls "C:\x" /inheritance:d /remove:g *` + me},
		"an entry without an account": {descriptor: with(aceAllowed, 0, rightWriteData, account{name: "nobody"}), adding: true, problem: "can be written by nobody", remedy: `icacls "C:\x" /inheritance:d /remove:g *`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := aclJudge{user: test.user}.judge(`C:\x`, test.descriptor, test.adding)
			if test.problem == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Problem != test.problem || refused.Remedy != test.remedy || refused.Path != `C:\x` {
				t.Fatalf("%#v", err)
			}
		})
	}
}

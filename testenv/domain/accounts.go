package domain

import "strings"

// The domain of every controller.
const (
	Name    = "ad.example.test"
	Realm   = "AD.EXAMPLE.TEST"
	NetBIOS = "EXAMPLE"
	BaseDN  = "DC=ad,DC=example,DC=test"
	// Servers is the organizational unit in which Joiner creates computers.
	Servers = "OU=Servers," + BaseDN
	// Locked is one in which only an administrator does.
	Locked = "OU=Locked," + BaseDN
)

// Account is a user or a computer of the domain. The passwords are canaries: they have no meaning outside a test.
type Account struct{ Name, Password string }

// Administrator has all rights.
func Administrator() Account { return Account{"Administrator", "c4n4ry.Adm1n.pass"} }

// Joiner creates, deletes and manages computers in Servers.
func Joiner() Account { return Account{"joiner", "c4n4ry.J0iner.pass"} }

// Plain is a user without such rights.
func Plain() Account { return Account{"plain", "c4n4ry.Pl4in.pass"} }

// Disabled is a user whose account is disabled.
func Disabled() Account { return Account{"disabled", "c4n4ry.Dis4bled.pass"} }

// Expired is a user whose account has expired.
func Expired() Account { return Account{"expired", "c4n4ry.Exp1red.pass"} }

// MustChange is a user whose password must be changed before anything else.
func MustChange() Account { return Account{"mustchange", "c4n4ry.Ch4nge.pass"} }

// Staged is a computer in Servers that was created ahead of its machine, with a one-time password.
func Staged() Account { return Account{"STAGED$", "c4n4ry.0ne-time.pass"} }

// seed creates the accounts; it runs before the controller starts.
func seed() string {
	create := func(a Account, options string) string {
		return "samba-tool user create " + a.Name + " '" + a.Password + "' " + options + "\n"
	}
	staged := strings.TrimSuffix(Staged().Name, "$")
	return `set -eu
samba-tool ou create '` + Servers + `'
samba-tool ou create '` + Locked + `'
` + create(Joiner(), "") + create(Plain(), "") + create(Disabled(), "") + create(Expired(), "") + create(MustChange(), "--must-change-at-next-login") + `
samba-tool user disable ` + Disabled().Name + `
samba-tool user setexpiry ` + Expired().Name + ` --days=0
samba-tool computer create ` + staged + ` --computerou=OU=Servers
samba-tool user setpassword '` + Staged().Name + `' --newpassword='` + Staged().Password + `'
sid=$(samba-tool user show ` + Joiner().Name + ` --attributes=objectSid | sed -n 's/^objectSid: //p')
# Create and delete computers in the unit, and full control of those below it.
samba-tool dsacl set --objectdn='` + Servers + `' --sddl="(OA;CI;CCDC;bf967a86-0de6-11d0-a285-00aa003049e2;;$sid)(OA;CIIO;GA;;bf967a86-0de6-11d0-a285-00aa003049e2;$sid)"
# Otherwise each user may create ten computers.
printf 'dn: ` + BaseDN + `\nchangetype: modify\nreplace: ms-DS-MachineAccountQuota\nms-DS-MachineAccountQuota: 0\n' | ldbmodify -H /var/lib/samba/private/sam.ldb
`
}

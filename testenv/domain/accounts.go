package domain

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"
)

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
	// Computers is the default container, in which only an administrator does.
	Computers = "CN=Computers," + BaseDN
	// HeldSPN is a service principal name that another account, Holder, has.
	HeldSPN = "HTTP/duplicate." + Name
	Holder  = "holder"
)

// Account is a user or a computer of the domain. The passwords are canaries: they have no meaning outside a test.
type Account struct{ Name, Password string }

// Administrator has all rights.
func Administrator() Account { return Account{"Administrator", "c4n4ry.Adm1n.pass"} }

// Joiner creates, deletes and manages computers in Servers.
func Joiner() Account { return Account{"joiner", "c4n4ry.J0iner.pass"} }

// Resetter resets the passwords and writes the attributes of the computers in Servers, and creates none.
func Resetter() Account { return Account{"resetter", "c4n4ry.R3setter.pass"} }

// Plain is a user without such rights.
func Plain() Account { return Account{"plain", "c4n4ry.Pl4in.pass"} }

// Disabled is a user whose account is disabled.
func Disabled() Account { return Account{"disabled", "c4n4ry.Dis4bled.pass"} }

// Expired is a user whose account has expired.
func Expired() Account { return Account{"expired", "c4n4ry.Exp1red.pass"} }

// PasswordExpired is a user whose password is older than the domain allows.
func PasswordExpired() Account { return Account{"passwordexpired", "c4n4ry.0ld.pass"} }

// LockedOut is a user whose account is locked, as after too many wrong passwords.
func LockedOut() Account { return Account{"lockedout", "c4n4ry.L0cked.pass"} }

// MustChange is a user whose password must be changed before anything else.
func MustChange() Account { return Account{"mustchange", "c4n4ry.Ch4nge.pass"} }

// Staged is a computer in Servers that was created ahead of its machine, with a one-time password.
func Staged() Account { return Account{"STAGED$", "c4n4ry.0ne-time.pass"} }

// StagedDisabled is one whose account is disabled.
func StagedDisabled() Account { return Account{"STAGEDOFF$", "c4n4ry.0ff-time.pass"} }

// Taken is the computer in Servers of another machine, with the service principal names HOST/taken and HOST/taken.Name.
func Taken() Account { return Account{"TAKEN$", "c4n4ry.T4ken.pass"} }

//go:embed seed.sh
var seedScript string

// seed is a script that makes the directory of a controller, once for each name and address that a controller has.
func seed(host string, address netip.Addr) string {
	var variables strings.Builder
	fmt.Fprintf(&variables, "host=%s address=%s name=%s realm=%s netbios=%s base=%s\n", host, address, Name, Realm, NetBIOS, BaseDN)
	for _, a := range []Account{
		Administrator(), Joiner(), Resetter(), Plain(), Disabled(), Expired(), PasswordExpired(), LockedOut(), MustChange(), Staged(),
		StagedDisabled(), Taken(),
	} {
		fmt.Fprintf(&variables, "%s='%s'\n", strings.ToLower(strings.TrimSuffix(a.Name, "$")), a.Password)
	}
	return variables.String() + seedScript
}

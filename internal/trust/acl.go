package trust

// Checks of Windows access control lists, separate from the system calls that read them so that tests run on every
// platform. Source of the numbers: winnt.h.

const (
	aceAllowed              = 0x0
	aceDenied               = 0x1
	aceDeniedObject         = 0x6
	aceAllowedCallback      = 0x9 // the layout of aceAllowed, followed by a condition
	aceDeniedCallback       = 0xa
	aceDeniedCallbackObject = 0xc

	aceInheritOnly = 0x8

	rightWriteData       = 0x2 // of a directory: add a file
	rightAppendData      = 0x4 // of a directory: add a directory
	rightDeleteChild     = 0x40
	rightWriteAttributes = 0x100 // of an empty directory: turn it into a link
	rightDelete          = 0x10000
	rightWriteDAC        = 0x40000
	rightWriteOwner      = 0x80000
	rightGenericAll      = 0x10000000
	rightGenericWrite    = 0x40000000

	// rightsAdd allow to change a file or to add to a directory. On an ancestor of the checked path they are harmless:
	// existing entries stay, and a directory that is not empty cannot become a link. C:\ProgramData grants them to all
	// users.
	rightsAdd     = rightWriteData | rightAppendData | rightWriteAttributes | rightGenericWrite
	rightsReplace = rightDeleteChild | rightDelete | rightWriteDAC | rightWriteOwner | rightGenericAll
)

const (
	sidAdministrators   = "S-1-5-32-544"
	sidSystem           = "S-1-5-18"
	sidTrustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
	sidCreatorOwner     = "S-1-3-0"
	sidOwnerRights      = "S-1-3-4"
)

// account is a user or group; name is for messages.
type account struct{ sid, name string }

type aclEntry struct {
	kind, flags byte
	mask        uint32
	account     account
}

// descriptor is a security descriptor. A missing discretionary list grants everything to everyone.
type descriptor struct {
	owner   account
	missing bool
	entries []aclEntry
}

// aclChecker checks access control lists. user is the SID of this process's user, empty if the process is elevated.
type aclChecker struct{ user string }

func (c aclChecker) trusted(sid string) bool {
	switch sid {
	case sidAdministrators, sidSystem, sidTrustedInstaller:
		return true
	default:
		return sid != "" && sid == c.user
	}
}

// check returns how an untrusted account can change an object and the command that prevents it, or empty strings. With
// adding, the rights of rightsAdd are refused too: on a file, and on a directory that must not get new entries.
func (c aclChecker) check(path string, d descriptor, adding bool) (problem, remedy string) {
	icacls := "icacls " + `"` + path + `"`
	if !c.trusted(d.owner.sid) {
		return "belongs to " + d.owner.name + ", which could change it", icacls + " /setowner *" + sidAdministrators
	}
	if d.missing {
		return "has no access control list, so everyone can write it", icacls + " /reset"
	}
	refused := uint32(rightsReplace)
	if adding {
		refused |= rightsAdd
	}
	for _, e := range d.entries {
		if e.flags&aceInheritOnly != 0 {
			continue // applies to new children only
		}
		switch e.kind {
		case aceDenied, aceDeniedObject, aceDeniedCallback, aceDeniedCallbackObject:
			continue // a denial never makes an object trusted
		case aceAllowed, aceAllowedCallback:
		default:
			return "has an access control list with an entry of a kind that files do not have", icacls + " /reset"
		}
		// Creator Owner and Owner Rights mean the owner, which is checked above.
		if e.mask&refused == 0 || c.trusted(e.account.sid) || e.account.sid == sidCreatorOwner || e.account.sid == sidOwnerRights {
			continue
		}
		return "can be written by " + e.account.name, icacls + " /inheritance:d /remove:g *" + e.account.sid
	}
	return "", ""
}

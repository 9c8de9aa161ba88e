package trust

// Checks of Windows access control lists, apart from the calls that read them, so that they are tested everywhere.
// Numbers are those of winnt.h.

const (
	aceAllowed              = 0x0
	aceDenied               = 0x1
	aceDeniedObject         = 0x6
	aceAllowedCallback      = 0x9 // laid out as aceAllowed, with a condition behind
	aceDeniedCallback       = 0xa
	aceDeniedCallbackObject = 0xc

	aceInheritOnly = 0x8

	rightWriteData       = 0x2 // of a directory: add a file
	rightAppendData      = 0x4 // of a directory: add a directory
	rightDeleteChild     = 0x40
	rightWriteAttributes = 0x100 // of a directory that is empty: make a link of it
	rightDelete          = 0x10000
	rightWriteDAC        = 0x40000
	rightWriteOwner      = 0x80000
	rightGenericAll      = 0x10000000
	rightGenericWrite    = 0x40000000

	// rightsAdd change a file, and add to a directory. Above a directory or file that is checked they are harmless: what
	// is there stays, and a directory that is not empty cannot become a link. C:\ProgramData gives them to all users.
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

// account is a user or group; name is for people.
type account struct{ sid, name string }

type aclEntry struct {
	kind, flags byte
	mask        uint32
	account     account
}

// descriptor is a security descriptor with its discretionary list, which may be missing: then everyone may do everything.
type descriptor struct {
	owner   account
	missing bool
	entries []aclEntry
}

// aclJudge knows which accounts are trusted. user is this process's, empty if it is elevated.
type aclJudge struct{ user string }

func (j aclJudge) trusted(sid string) bool {
	switch sid {
	case sidAdministrators, sidSystem, sidTrustedInstaller:
		return true
	default:
		return sid != "" && sid == j.user
	}
}

// judge says how another account can change an object, and the command against it; empty: none can. adding is whether the
// right to add to it is refused: true for a file, false for a directory that need only keep what is there.
func (j aclJudge) judge(path string, d descriptor, adding bool) (problem, remedy string) {
	icacls := "icacls " + `"` + path + `"`
	if !j.trusted(d.owner.sid) {
		return "belongs to " + d.owner.name + ", who could change it", icacls + " /setowner *" + sidAdministrators
	}
	if d.missing {
		return "has no access control list, so that everyone can write it", icacls + " /reset"
	}
	refused := uint32(rightsReplace)
	if adding {
		refused |= rightsAdd
	}
	for _, e := range d.entries {
		if e.flags&aceInheritOnly != 0 {
			continue // it is for what will be made below
		}
		switch e.kind {
		case aceDenied, aceDeniedObject, aceDeniedCallback, aceDeniedCallbackObject:
			continue // trust must not depend on a prohibition
		case aceAllowed, aceAllowedCallback:
		default:
			return "has an access control list with an entry of a kind that files do not have", icacls + " /reset"
		}
		// The owner, which these two stand for, was checked above.
		if e.mask&refused == 0 || j.trusted(e.account.sid) || e.account.sid == sidCreatorOwner || e.account.sid == sidOwnerRights {
			continue
		}
		return "can be written by " + e.account.name, icacls + " /inheritance:d /remove:g *" + e.account.sid
	}
	return "", ""
}

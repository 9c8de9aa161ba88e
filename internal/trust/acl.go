package trust

// The judgement of Windows access control lists, apart from the calls that read them, so that it is tested everywhere.
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
	rightWriteAttributes = 0x100 // also makes a link of an empty directory
	rightDelete          = 0x10000
	rightWriteDAC        = 0x40000
	rightWriteOwner      = 0x80000
	rightGenericAll      = 0x10000000
	rightGenericWrite    = 0x40000000

	// rightsAdd let one put something new into a directory, but not replace what is there.
	rightsAdd     = rightWriteData | rightAppendData | rightGenericWrite
	rightsReplace = rightDeleteChild | rightWriteAttributes | rightDelete | rightWriteDAC | rightWriteOwner | rightGenericAll
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

// judge judges one object. adding is whether the right to add to it is refused: true for a file, false for a directory
// that need only keep what is there.
func (j aclJudge) judge(path string, d descriptor, adding bool) error {
	if !j.trusted(d.owner.sid) {
		return &Error{
			Path: path, Problem: "belongs to " + d.owner.name + ", who could change it",
			Remedy: "icacls " + quoteWindows(path) + " /setowner *" + sidAdministrators,
		}
	}
	if d.missing {
		return &Error{
			Path: path, Problem: "has no access control list, so that everyone can write it",
			Remedy: "icacls " + quoteWindows(path) + " /reset",
		}
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
			continue // a prohibition that something depends on would be a poor one
		case aceAllowed, aceAllowedCallback:
		default:
			return &Error{
				Path: path, Problem: "has an access control list with an entry of a kind that files do not have",
				Remedy: "icacls " + quoteWindows(path) + " /reset",
			}
		}
		// The owner, whom these two stand for, was judged above.
		if e.mask&refused == 0 || j.trusted(e.account.sid) || e.account.sid == sidCreatorOwner || e.account.sid == sidOwnerRights {
			continue
		}
		return &Error{
			Path: path, Problem: "can be written by " + e.account.name,
			Remedy: "icacls " + quoteWindows(path) + " /inheritance:d /remove:g *" + e.account.sid,
		}
	}
	return nil
}

// quoteWindows makes a path one word for cmd and PowerShell: a Windows path holds no quotes.
func quoteWindows(path string) string { return `"` + path + `"` }

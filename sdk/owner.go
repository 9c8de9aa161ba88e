package sdk

import (
	"regexp"
	"strconv"
	"strings"
)

// ValidOwner reports whether a text is USER:GROUP, each a name or a number, as the documents of machineadm have owners. A number is
// below the highest of 32 bits, which means no change in chown(2).
func ValidOwner(text string) bool {
	user, group, found := strings.Cut(text, ":")
	return found && validAccount(user) && validAccount(group)
}

func validAccount(text string) bool {
	_, isNumber := accountNumber(text)
	return isNumber || regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`).MatchString(text)
}

func accountNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err == nil && n < 1<<32-1 //nolint:gosec // 32 bits fit
}

// LookupOwner returns the numbers of a valid owner; names are the machine's. Its errors are the errors of files.LookupOwner.
func LookupOwner(files interface {
	LookupOwner(user, group string) (uid, gid int, err error)
}, text string,
) (Owner, error) {
	user, group, _ := strings.Cut(text, ":")
	uid, userIsNumber := accountNumber(user)
	gid, groupIsNumber := accountNumber(group)
	if userIsNumber {
		user = ""
	}
	if groupIsNumber {
		group = ""
	}
	namedUID, namedGID, err := files.LookupOwner(user, group)
	if err != nil {
		return Owner{}, err
	}
	if !userIsNumber {
		uid = namedUID
	}
	if !groupIsNumber {
		gid = namedGID
	}
	return Owner{UID: uid, GID: gid}, nil
}

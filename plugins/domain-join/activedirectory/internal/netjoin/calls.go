// Package netjoin plans the membership of a Windows machine in a domain. Windows itself speaks to the directory: this package
// decides which of its calls are made, and explains their errors.
package netjoin

import "fmt"

// Calls are the functions of Windows. An error of Windows is a CodeError.
type Calls interface {
	// Observe reads the names and the membership of the machine. It changes nothing and asks no other machine.
	Observe() (State, error)
	// Mark records what this boot has begun; the end of the boot forgets it.
	Mark(m Mark) error
	// Rename sets the DNS host name, and with it the name of the account, from the next boot on.
	Rename(host string) error
	// Join makes the machine a member.
	Join(r Request) error
	// Leave ends the membership and disables the account of the machine.
	Leave(account string, password []byte) error
}

// State is what Windows shows of its membership.
type State struct {
	// NetBIOS and DNS are the names of the domain; both are empty for the member of a work group.
	NetBIOS, DNS string
	// Name is the NetBIOS name of the machine, NextName the one after the next boot.
	Name, NextName string
	// Mark is what this boot has begun.
	Mark Mark
}

func (s State) member() bool { return s.NetBIOS != "" || s.DNS != "" }

// Mark is what this boot has begun. Windows does not show that a membership waits for a reboot.
type Mark string

// The marks.
const (
	// Begun is set before a membership begins or ends: if it then has the desired state, the reboot is due.
	Begun Mark = "begun"
	// Provisioned is set after Windows has accepted the data of an offline join, with which the next boot joins.
	Provisioned Mark = "provisioned"
)

// Request is a join.
type Request struct {
	// Blob is the data of an offline join, with which the machine joins at its next boot. The other fields are then not used.
	Blob []byte
	// Domain is the DNS name of the domain, followed by a backslash and the domain controller where one is preferred.
	Domain string
	// Unit is empty for the default of the domain.
	Unit string
	// Account is user@domain.
	Account  string
	Password []byte
	Flags    Flags
}

// Flags are the options of NetJoinDomain.
type Flags uint32

// The options that a join uses. An unsecured join (NETSETUP_JOIN_UNSECURE, 0x40) is none of them.
// Source: lmjoin.h; for NoReuse KB5020276.
const (
	JoinDomain  Flags = 0x1
	Create      Flags = 0x2
	WithNewName Flags = 0x400
	NoReuse     Flags = 0x20000
)

// CodeError is an error code of Windows.
type CodeError uint32

// Error implements error.
func (c CodeError) Error() string { return fmt.Sprintf("Windows error %d", uint32(c)) }

package nodes

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
)

// instance is one node's name and directory. The name says which process owns the node, so that a process that
// finds it on a machine (control group, mount, directory) can check whether it is still in use.
type instance struct {
	name string // machineadm-node-PID-STARTTIME-RANDOM: a host name label of less than 64 characters
	dir  string
}

const instancePrefix = "machineadm-node-"

// process identifies a process also after its number was given to another one.
type process struct {
	pid   string
	start string // clock ticks since boot, proc_pid_stat(5) field 22
}

func newInstance(runDir string, owner process) instance {
	var random [4]byte
	rand.Read(random[:]) // never returns an error
	name := fmt.Sprintf("%s%s-%s-%s", instancePrefix, owner.pid, owner.start, hex.EncodeToString(random[:]))
	return instance{name: name, dir: filepath.Join(runDir, name)}
}

// ownerOf reads a name back; ok is false for everything that is no instance's name.
func ownerOf(name string) (owner process, ok bool) {
	m := regexp.MustCompile(`^` + instancePrefix + `(\d{1,10})-(\d{1,20})-[0-9a-f]{8}$`).FindStringSubmatch(name)
	if m == nil {
		return process{}, false
	}
	return process{pid: m[1], start: m[2]}, true
}

package machine

import "github.com/machineadm/machineadm/contract/pluginv1"

// PlannedFile is the state in which planned changes leave a file, a directory or a link.
type PlannedFile = pluginv1.PlannedFile

// rehearsal has the files that planned changes leave, by paths without links. The files of an FS with a rehearsal are the files of the
// machine below these, and its changes go into the rehearsal alone.
type rehearsal struct {
	files map[string]PlannedFile
	given map[string]PlannedFile // by the plans before this one
}

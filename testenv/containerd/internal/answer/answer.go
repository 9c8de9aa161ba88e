// Package answer is the output of the command cri in a node.
package answer

import "github.com/machineadm/machineadm/internal/cri"

// Answer is the response of a runtime to one call, or the error.
type Answer struct {
	Version      cri.Version
	RuntimeReady cri.Condition
	NetworkReady cri.Condition
	Info         map[string]string // of Status, by key
	Ref          string            // of what was pulled
	Image        cri.Image
	Found        bool // there is such an image

	Error     string // empty when the call succeeded
	Down      bool   // the error is cri.ErrDown
	NotServed bool   // the error is cri.ErrNotServed
}

// Login has the credentials of a pull, on the standard input of the command: an argument would show it to every process of the node.
type Login struct{ User, Password string }

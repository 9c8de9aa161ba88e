package launch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// ClauseInTime is the clause that a plugin violates that makes no handshake in time.
const ClauseInTime = "H-13"

// Error is a failure to start a plugin or to make the handshake.
type Error struct{ Cause error }

var (
	errElsewhere   = errors.New("the plugin listens outside of PLUGIN_UNIX_SOCKET_DIR")
	errCertificate = errors.New("the plugin's line is malformed, or has a certificate, which was not requested")
)

// failure is a text in the cause, the message for operators in its place, and the clause of SPEC.md that the plugin violates.
type failure struct{ text, message, clause string }

func failures() []failure {
	version := fmt.Sprintf("the plugin uses another version of the protocol (this host uses version %d)", pluginv1.ProtocolVersion)
	return []failure{
		{"timeout while waiting for plugin to start", "the plugin did not complete the handshake in time", ClauseInTime},
		{"incompatible API version", version, "H-12"},
		{"incompatible core API version", version, "H-10"},
		{"unsupported plugin protocol", "the plugin does not use gRPC", "H-10"},
		{"Failed to read any lines", "the plugin ended before the handshake", "H-10"},
		{"plugin exited before", "the plugin ended before the handshake", "H-10"},
		{"Unrecognized remote plugin message", "the first line on the plugin's standard output is no handshake", "H-14"},
		{errElsewhere.Error(), "the plugin could not be started: " + errElsewhere.Error(), "H-7"},
		{errCertificate.Error(), "the plugin could not be started: " + errCertificate.Error(), "H-11"},
	}
}

func (e *Error) failure() failure {
	text := e.Cause.Error()
	for _, f := range failures() {
		if strings.Contains(text, f.text) {
			return f
		}
	}
	return failure{message: "the plugin could not be started: " + text, clause: "H-10"}
}

// Error replaces go-plugin's messages.
func (e *Error) Error() string { return e.failure().message }

// Clause names the clause of SPEC.md that the plugin violates; H-10 where the plugin ended before its line.
func (e *Error) Clause() string { return e.failure().clause }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

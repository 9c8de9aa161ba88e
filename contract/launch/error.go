package launch

import (
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Error is a failure to start a plugin or to make the handshake.
type Error struct{ Cause error }

// Error replaces go-plugin's messages, which are written for the author of a plugin.
func (e *Error) Error() string {
	text := e.Cause.Error()
	switch {
	case strings.Contains(text, "timeout while waiting for plugin to start"):
		return "the plugin did not complete the handshake in time"
	case strings.Contains(text, "incompatible API version"), strings.Contains(text, "incompatible core API version"):
		return fmt.Sprintf("the plugin uses another version of the protocol (this host uses version %d)", pluginv1.ProtocolVersion)
	case strings.Contains(text, "unsupported plugin protocol"):
		return "the plugin does not use gRPC"
	case strings.Contains(text, "Failed to read any lines"), strings.Contains(text, "plugin exited before"):
		return "the plugin ended before the handshake"
	case strings.Contains(text, "Unrecognized remote plugin message"):
		return "the first line on the plugin's standard output is no handshake"
	default:
		return "the plugin could not be started: " + text
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

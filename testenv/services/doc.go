// Package services runs the SDK's service manager and its activations against the real systemd of booted nodes.
package services

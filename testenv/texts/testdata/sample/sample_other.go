//go:build !linux && !windows

package sample

import "errors"

func only() error { return errors.New("by a file of no platform of ours") }

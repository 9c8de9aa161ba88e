package sample

import (
	"errors"

	"golang.org/x/sys/windows"
)

func only() error {
	if windows.GetCurrentProcessToken().IsElevated() {
		return errors.New("by a file of Windows")
	}
	return nil
}

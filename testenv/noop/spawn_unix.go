//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// spawn starts a child that leaves session and process group, ignores every polite signal and outlives its parent.
func spawn(pidFile string) error {
	//nolint:noctx // outliving everything is what it is for
	c := exec.Command("/bin/sh", "-c", `trap '' TERM HUP INT; echo $$ > "$0.new" && mv "$0.new" "$0"; while :; do sleep 1000; done`, pidFile)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}

//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// spawn starts a child that leaves session and process group, ignores every signal except SIGKILL and outlives its parent.
func spawn(pidFile string) error {
	//nolint:noctx // it outlives its parent on purpose
	c := exec.Command("/bin/sh", "-c", `trap '' TERM HUP INT; echo $$ > "$0.new" && mv "$0.new" "$0"; while :; do sleep 1000; done`, pidFile)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}

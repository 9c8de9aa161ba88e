// Command measure runs a command and writes what that took to standard output, as bench.Usage in JSON. It is a program of
// its own because a child's peak memory, as the kernel counts it, is never below the peak of the process that started it.
//
//	measure PROGRAM ARGUMENT...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/testenv/bench"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(argv []string) error {
	if len(argv) == 0 {
		return errors.New("usage: measure PROGRAM [ARGUMENT]")
	}
	output, err := os.CreateTemp("", "measure-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(output.Close(), os.Remove(output.Name())) }() // what it holds was read
	cmd := exec.Command(argv[0], argv[1:]...)                                    //nolint:noctx // it ends by itself
	cmd.Stdout, cmd.Stderr = output, output
	began := time.Now()
	err = cmd.Run()
	u := bench.Usage{Wall: time.Since(began)}
	if cmd.ProcessState == nil {
		return err
	}
	u.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if rusage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = rusage.Maxrss
	}
	if u.Exit = cmd.ProcessState.ExitCode(); u.Exit != 0 {
		words, err := os.ReadFile(output.Name())
		if err != nil {
			return err
		}
		u.Output = string(words)
	}
	return json.NewEncoder(os.Stdout).Encode(u)
}

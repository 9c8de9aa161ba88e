// Package hardship runs the real host with real plugins against a hostile disk: full, without inodes, read-only,
// immutable, over its quota, or with a directory that is exchanged for a link while it is written. A run fails in
// order, leaves each file complete, and the next one succeeds once the cause is gone.
package hardship

//machineadm:first

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	hostBinary   = "machineadm"
	sysctlBinary = "machineadm-sysctl-plugin-procfs"
	motdBinary   = "machineadm-motd-plugin-file"
	noopBinary   = "machineadm-noop-plugin-test"
	sourceBinary = "machineadm-remote-configuration-provider-file"
	// The directories of built: the plugins, and the files of the tests.
	plugins = "p"
	benches = "b"
	// waitLimit bounds every wait; a run takes well under a second on a quiet machine.
	waitLimit = 4 * time.Minute
)

// built is where the host and the directories of the tests are; short, because the name of a socket is.
var built string

func TestMain(m *testing.M) {
	// Under nohup this process ignores SIGHUP, and so would the host. What is handled here is at its default there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(testMain(m))
}

func testMain(m *testing.M) (code int) {
	var err error
	if built, err = os.MkdirTemp("", "hard-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := leave(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	if err := os.Mkdir(filepath.Join(built, benches), 0o700); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := tools.Products(context.Background(), built, map[string]string{
		hostBinary: "host/cmd/machineadm", plugins + "/" + sysctlBinary: "plugins/sysctl/procfs",
		plugins + "/" + motdBinary: "testenv/outside/motd", plugins + "/" + noopBinary: "testenv/noop",
		plugins + "/" + sourceBinary: "plugins/remote-config/file",
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// leave removes what the tests made, and checks that every loop device is released, which the kernel does a
// moment after its last mount is gone.
func leave() error {
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(10 * time.Millisecond) {
		used, err := loopDevices(filepath.Base(built))
		if err != nil {
			return err
		}
		if len(used) == 0 {
			return os.RemoveAll(built)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not released: %q", used)
		}
	}
}

// loopDevices are those whose backing file has this mark in its name. The rest of its path is another one in another
// namespace.
func loopDevices(mark string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var used []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), mark) { // else it was released meanwhile
			used = append(used, file)
		}
	}
	return used, err
}

package nodes

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// bindNewNetNS makes a network namespace, with nothing but a loopback device that is down, and keeps it at path, where
// a hub can later reach it (ip link set DEV netns PATH).
func bindNewNetNS(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	const own = "/proc/thread-self/ns/net"
	err = onThread(own, unix.CLONE_NEWNET, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount(own, path, "", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("new network namespace: %w", err)
	}
	return nil
}

// unbindNetNS unmounts the namespaces at path, however many are stacked there. Each ends with its last process.
func unbindNetNS(path string) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// inNamespace starts something from a thread that is in the namespace at path. own is the path of the thread's own one.
func inNamespace(path, own string, kind int, start func() error) error {
	return onThread(own, kind, func() error {
		if err := enter(path, kind); err != nil {
			return err
		}
		return start()
	})
}

// onThread runs work, which changes the namespace of its thread, and restores the thread before any other goroutine gets it.
// A thread that cannot be restored ends with its goroutine.
func onThread(own string, kind int, work func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open(own)
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		err = work()
		if back := unix.Setns(int(home.Fd()), kind); back == nil {
			runtime.UnlockOSThread()
		} else {
			err = errors.Join(err, fmt.Errorf("return to the own namespace: %w", back))
		}
		done <- errors.Join(err, home.Close())
	}()
	return <-done
}

func enter(path string, kind int) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Setns(int(f.Fd()), kind); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	return nil
}

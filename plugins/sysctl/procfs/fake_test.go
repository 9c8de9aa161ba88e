package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// fakeKernel is a kernel in memory whose reads can fail, and whose parameters can change with others.
type fakeKernel struct {
	*machinetest.Kernel
	// readErrors are the errors of reading a key.
	readErrors map[string]error
	// resets maps a key to the values that writing it changes.
	resets map[string]map[string]string
	// lock lists keys that can be written only once.
	lock []string
	// log records the writes and loads.
	log []string
}

func newKernel() *fakeKernel {
	return &fakeKernel{
		Kernel: machinetest.NewKernel(map[string]string{
			"kernel/ostype": "Linux", "kernel/panic": "0", "net/ipv4/ip_forward": "0",
			"net/ipv4/tcp_rmem": "4096\t131072\t6291456", "net/ipv4/conf/all/rp_filter": "0",
			"net/ipv4/conf/eth0.100/rp_filter": "0",
		}),
		readErrors: map[string]error{}, resets: map[string]map[string]string{},
	}
}

func (k *fakeKernel) Parameter(key string) (string, error) {
	if err := k.readErrors[key]; err != nil {
		return "", fmt.Errorf("read kernel parameter: %s: %w", key, err)
	}
	return k.Kernel.Parameter(key)
}

func (k *fakeKernel) SetParameter(key, value string) error {
	if slices.Contains(k.lock, key) && slices.ContainsFunc(k.log, func(l string) bool { return strings.HasPrefix(l, key+" = ") }) {
		return fmt.Errorf("set kernel parameter: %s: %w", key, syscall.EPERM)
	}
	if err := k.Kernel.SetParameter(key, value); err != nil {
		return err
	}
	k.log = append(k.log, fmt.Sprintf("%s = %s", key, value))
	maps.Copy(k.Parameters, k.resets[key])
	return nil
}

func (k *fakeKernel) LoadModule(ctx context.Context, name string) error {
	k.log = append(k.log, "load "+name)
	return k.Kernel.LoadModule(ctx, name)
}

// recorder is a Progress that keeps the reports.
type recorder struct{ reports []string }

func (l *recorder) Report(message string)  { l.reports = append(l.reports, message) }
func (*recorder) Warn(string, string)      {}
func (*recorder) RequestReboot(sdk.Reboot) {}

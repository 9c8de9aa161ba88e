package plugins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// init keeps the main goroutine on the first thread, which adopts orphans: other goroutines start children on other threads.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // before the first goroutine

// TestMain serves a source plugin if the program has the name of one.
func TestMain(m *testing.M) {
	if naming.IsPlugin(runtime.GOOS, filepath.Base(os.Args[0])) {
		launch.Serve(scripted{})
		return
	}
	os.Exit(m.Run())
}

// scripted is a plugin that does what the name of an object says.
type scripted struct{ pluginv1.Source }

// Describe implements pluginv1.Source.
func (scripted) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return pluginv1.Description{
		Name: filepath.Base(os.Args[0]), Version: "v1", Capabilities: []string{pluginv1.CapabilityStore},
		Kinds: []pluginv1.Kind{{APIVersion: "machineadm.cluster.x-k8s.io/v1alpha1", Kind: "RemoteConfig"}}, Fitness: pluginv1.FitnessInstalled,
	}, nil
}

// Store implements pluginv1.Source. The URI of the answer is the number of the process.
func (scripted) Store(ctx context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	switch r.Name {
	case "exit":
		os.Exit(1)
	case "slow":
		<-ctx.Done()
		return pluginv1.Stored{}, ctx.Err()
	case "refused":
		return pluginv1.Stored{}, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "the store answers 403", Hint: "check the key"}
	}
	return pluginv1.Stored{URI: fmt.Sprint(os.Getpid())}, nil
}

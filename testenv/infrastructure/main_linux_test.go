package infrastructure

//machineadm:alone

import (
	"context"
	"errors"
	"log"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // of the libraries; the provider has its own
	management.Main(m, func(ctx context.Context) error {
		if _, err := tools.Path(ctx, log.Writer(), ".", "nfpm"); err != nil {
			return err
		}
		var failures []error
		for _, system := range []nodes.Options{
			cluster.System(),
			Immutable(),
			{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Samba}},
			{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Member}},
		} {
			failures = append(failures, nodes.BuildCache(ctx, system, log.Printf))
		}
		return errors.Join(failures...)
	})
}

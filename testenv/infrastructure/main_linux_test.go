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
		return errors.Join(nodes.BuildCache(ctx, cluster.System(), log.Printf), nodes.BuildCache(ctx, Immutable(), log.Printf))
	})
}

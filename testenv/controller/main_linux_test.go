package controller

//machineadm:alone

import (
	"context"
	"log"
	"testing"

	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

func TestMain(m *testing.M) {
	management.Main(m, func(ctx context.Context) error {
		_, err := tools.Path(ctx, log.Writer(), ".", "s3/versitygw")
		return err
	})
}

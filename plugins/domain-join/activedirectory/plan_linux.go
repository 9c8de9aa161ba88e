package main

import (
	"context"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/linuxjoin"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.DomainJoin) (sdk.Plan, error) {
	s, err := settings.Resolve(m, doc)
	if err != nil {
		return sdk.Plan{}, err
	}
	return linuxjoin.Plan(ctx, m, s)
}

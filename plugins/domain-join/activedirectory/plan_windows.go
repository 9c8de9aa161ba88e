package main

import (
	"context"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/netjoin"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// plan joins or leaves the domain by the functions of Windows.
func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.DomainJoin) (sdk.Plan, error) {
	want, err := settings.Resolve(m, doc)
	if err != nil {
		return sdk.Plan{}, err
	}
	if err := sdk.UnsupportedFields(netjoin.Unsupported(doc.Spec)...); err != nil {
		return sdk.Plan{}, err
	}
	return netjoin.Plan(ctx, m, want, netjoin.Windows{})
}

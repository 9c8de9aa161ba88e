package session

import (
	"context"
	"fmt"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/version"
)

// Schema asks the installed plugins of a kind for its JSON schema.
func Schema(ctx context.Context, o Options, kind string) (apiVersion string, schema []byte, err error) {
	s, err := Open(ctx, o)
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	fleet, err := s.Fleet()
	if err != nil {
		return "", nil, err
	}
	plugins, err := fleet.ByType(kind)
	if err != nil {
		wrong := launch.Failure(err.Error(), err)
		if near := document.SuggestKind(kind); near != "" {
			wrong.Hint = "did you mean " + near + "?"
		}
		return "", nil, wrong
	}
	for _, p := range plugins {
		started, err := fleet.Start(ctx, p)
		if err != nil {
			return "", nil, launch.Failure(fmt.Sprintf("plugin %s: %s", p.Binary, err), err)
		}
		d, err := started.Describe(ctx, pluginv1.DescribeRequest{Target: s.Target, RuntimeVersion: version.String(), JSONSchema: true})
		if err != nil {
			return "", nil, &report.Error{Code: pluginv1.CodeInternal.String(), Message: fmt.Sprintf("plugin %s: %s", p.Binary, err)}
		}
		for _, k := range d.Kinds {
			if k.Kind == kind && len(k.JSONSchema) > 0 {
				return k.APIVersion, k.JSONSchema, nil
			}
		}
	}
	return "", nil, &report.Error{
		Code: pluginv1.CodePrecondition.String(), Message: "no installed plugin has a JSON schema of the kind " + kind,
		Hint: "see the documentation of the plugin: machineadm plugins list",
	}
}

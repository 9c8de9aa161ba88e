package main

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
)

// lenient drops what it does not know.
func lenient(r *pluginv1.Request) error {
	var doc map[string]any
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return errors.New("the document is not JSON")
	}
	if spec, ok := doc["spec"].(map[string]any); ok {
		for name := range spec {
			if !slices.Contains([]string{"provider", "files", "tokenFile", "token", "needs", "link", "reload"}, name) {
				delete(spec, name)
			}
		}
	}
	var err error
	r.Document, err = json.Marshal(doc)
	return err
}

// firstFault keeps the first of several violations.
func firstFault(e *pluginv1.Error) { e.Violations = e.Violations[:min(1, len(e.Violations))] }

// lenientBelow ignores what it does not know of a file.
func lenientBelow(r *pluginv1.Request) error {
	var doc struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return errors.New("the document is not JSON")
	}
	all, _ := doc.Spec["files"].([]any)
	for _, one := range all {
		if one, is := one.(map[string]any); is {
			maps.DeleteFunc(one, func(name string, _ any) bool { return name != "path" && name != "content" })
		}
	}
	var err error
	r.Document, err = json.Marshal(doc)
	return err
}

// nullAverse takes a field that is null for one of another type.
func nullAverse(r *pluginv1.Request) error {
	var doc struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return errors.New("the document is not JSON")
	}
	if provider, has := doc.Spec["provider"]; has && provider == nil {
		return sdk.InvalidConfig(sdk.Violation{Field: "spec.provider", Message: "must be a text", Hint: "write a text"})
	}
	return nil
}

// atHome describes every target as one that uses what the plugin configures.
func atHome(d *pluginv1.Description) {
	if d.Fitness != pluginv1.FitnessUnsupported {
		d.Fitness = pluginv1.FitnessActive
	}
}

// unhealthy has no health service.
func unhealthy(request, response any, err error) (any, error) {
	if _, is := request.(*grpc_health_v1.HealthCheckRequest); is {
		return nil, status.Error(codes.Unimplemented, "no such service")
	}
	return response, err
}

package main

import (
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
)

// parameter is the desired value of one kernel parameter.
type parameter struct {
	key   sysctld.Key
	value string
	// field is the field path that sets the parameter: of spec.parameters, or else of a profile.
	field    string
	explicit bool
	// optional marks a key of ignoreMissing.
	optional bool
}

// resolver collects the parameters and modules of a document and all of its violations.
type resolver struct {
	known      map[string]profile
	spec       v1alpha1.SysctlSpec
	violations []document.Violation
	warnings   []sdk.Warning
	byKey      map[sysctld.Key]parameter
	modules    []string
	fields     map[string]string // of modules
}

func (r *resolver) refuse(field document.Path, message, hint string) {
	r.violations = append(r.violations, document.Violation{Field: string(field), Message: message, Hint: hint})
}

func (r *resolver) warn(field, message string) {
	r.warnings = append(r.warnings, sdk.Warning{Field: field, Message: message})
}

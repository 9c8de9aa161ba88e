package answers

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Describes is the check describe.
func Describes(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	d, err := p.CallDescribe(ctx, f.Planning(), false)
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-10"), Expected: "Describe answers, with the parts that P-11 lists",
			Got: "Describe fails: " + process.Explained(err), Cause: process.CauseOf(err, "Describe does work that can fail"),
		}), nil
	}
	if err := p.CallHealth(ctx); err != nil {
		return rig.Failed(rig.Finding{
			Clause: "P-2", Expected: "Check of grpc.health.v1.Health answers SERVING for the service plugin", Got: fmt.Sprintf("Check fails: %v", err),
			Cause: "the health service of gRPC is not registered, or not for this name",
		}), nil
	}
	header := f.Runner.Case.Header
	for _, part := range []func() rig.Result{
		func() rig.Result { return checkNames(f, d, header) },
		func() rig.Result { return checkDistributions(d.Distributions) },
		func() rig.Result { return checkCapabilities(d, header.Role()) },
		func() rig.Result {
			if kind, serves := d.Serves(header.APIVersion, header.Kind); serves {
				return checkSecretFields(kind, f.Runner.Case.Expect.Secrets)
			}
			return rig.Passed()
		},
	} {
		if got := part(); got.Status != rig.Pass {
			return got, nil
		}
	}
	return checkSchemas(ctx, f, p, d), nil
}

// checkNames compares a description with the name of the file and with the kind of the case.
func checkNames(f *rig.Fixture, d pluginv1.Description, h testcase.Header) rig.Result {
	kind, serves := d.Serves(h.APIVersion, h.Kind)
	file := filepath.Base(f.Runner.Binary)
	switch {
	case naming.ValidProvider(d.Name) != nil:
		return rig.Failed(rig.Finding{
			Clause: "P-11", Expected: "name is the provider: small letters, digits and hyphens",
			Got: fmt.Sprintf("the name %q is no provider's name", d.Name), Cause: "name holds the name of the program or a title",
		})
	case d.Fitness == pluginv1.FitnessUnspecified:
		return rig.Failed(rig.Finding{
			Clause: "P-12", Expected: "fitness is UNSUPPORTED, ABSENT, INSTALLED or ACTIVE",
			Got: "the answer of Describe has no fitness", Cause: "the field fitness is not set",
		})
	case !serves && !f.Runner.Case.RefusedWith(pluginv1.CodeUnsupported):
		return rig.Failed(rig.Finding{
			Clause: "P-11", Expected: "kinds lists the apiVersion and kind of the case",
			Got:   fmt.Sprintf("Describe does not list the kind %s of %s", h.Kind, h.APIVersion),
			Cause: "another apiVersion in kinds than in config.yaml, or a kind that is missing",
		})
	case serves && kind.Phase == pluginv1.PhaseUnspecified && h.Role() == testcase.Configurator:
		return rig.Failed(rig.Finding{
			Clause: "P-13", Expected: "each kind has the phase PREPARATION or PROVISIONING",
			Got: fmt.Sprintf("the kind %s has no phase", h.Kind), Cause: "the field phase is not set",
		})
	case !slices.Contains(filesOf(d), file):
		return rig.Failed(rig.Finding{
			Clause: "N-1", Expected: "the file has the name by which machineadm looks for the kind and the provider",
			Got: fmt.Sprintf("the name is %q and the kinds belong to the files %s, which machineadm looks for, but the file is called %s",
				d.Name, strings.Join(filesOf(d), ", "), file),
			Cause: "a build under another name; rename the file, or correct the name or the kinds of Describe",
		})
	}
	return rig.Passed()
}

// checkDistributions requires IDs of os-release(5), each once.
func checkDistributions(ids []string) rig.Result {
	form := regexp.MustCompile(`^[a-z0-9._-]+$`)
	for i, id := range ids {
		if !form.MatchString(id) || slices.Contains(ids[:i], id) {
			return rig.Failed(rig.Finding{
				Clause: "P-36", Expected: "distributions lists IDs of os-release(5), each once",
				Got:   fmt.Sprintf("distributions names %q, which is no ID of os-release(5), or is listed twice", id),
				Cause: "NAME or PRETTY_NAME of os-release(5) in the place of ID",
			})
		}
	}
	return rig.Passed()
}

// checkSecretFields requires the secrets of the case in the secret fields of Describe.
func checkSecretFields(kind pluginv1.Kind, secrets []string) rig.Result {
	for _, secret := range secrets {
		if !slices.ContainsFunc(kind.SecretFields, func(pattern string) bool { return MatchesField(pattern, secret) }) {
			return rig.Failed(rig.Finding{
				Clause: "P-38", Expected: "secret_fields lists every secret field of the kind",
				Got: fmt.Sprintf("%s is a secret of the case, and secret_fields of the kind %s does not have it: %q",
					secret, kind.Kind, kind.SecretFields),
				Cause: "a field that was added to the kind and not to secret_fields",
			})
		}
	}
	return rig.Passed()
}

// MatchesField reports whether a pattern of secret_fields names a field. A secret is a string, or a mapping with a value.
func MatchesField(pattern, field string) bool {
	element := `(?:\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\]|\.[A-Za-z_][A-Za-z0-9_-]*)`
	form, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\[\]`, element) + "$")
	return err == nil && (form.MatchString(field) || form.MatchString(strings.TrimSuffix(field, ".value")))
}

// checkSchemas requires schemas only in the answer to a request for them, as JSON objects.
func checkSchemas(ctx context.Context, f *rig.Fixture, p *process.Plugin, d pluginv1.Description) rig.Result {
	for _, k := range d.Kinds {
		if len(k.JSONSchema) > 0 {
			return rig.Failed(rig.Finding{
				Clause: "P-37", Expected: "no JSON schema, because json_schema of the request is not set",
				Got: fmt.Sprintf("the kind %s has a JSON schema that was not asked for", k.Kind), Cause: "Describe ignores json_schema of the request",
			})
		}
	}
	d, err := p.CallDescribe(ctx, f.Planning(), true)
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-37"), Expected: "Describe answers, with JSON schemas or without",
			Got: fmt.Sprintf("asked for JSON schemas, Describe fails: %v", err), Cause: process.CauseOf(err, "the schema is not found where the plugin is installed"),
		})
	}
	for _, k := range d.Kinds {
		var object map[string]any
		if len(k.JSONSchema) > 0 && json.Unmarshal(k.JSONSchema, &object) != nil {
			return rig.Failed(rig.Finding{
				Clause: "P-37", Expected: "each JSON schema is a JSON object",
				Got: fmt.Sprintf("the JSON schema of the kind %s is no JSON object", k.Kind), Cause: "a schema in YAML, or with another encoding",
			})
		}
	}
	return rig.Passed()
}

// filesOf returns the names by which a host looks for a plugin with this description: one for each kind.
func filesOf(d pluginv1.Description) []string {
	var out []string
	for _, kind := range d.Kinds {
		out = append(out, naming.File(runtime.GOOS, naming.Binary(kind.Kind, d.Name)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

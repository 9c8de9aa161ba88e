package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

func describes(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	d, err := p.describe(ctx, f.planning(), false)
	if err != nil {
		return failed(finding{
			clause: clauseOf(err, "P-10"), expected: "Describe answers, with the parts that P-11 lists",
			got: "Describe fails: " + explained(err), cause: causeOf(err, "Describe does work that can fail"),
		}), nil
	}
	if err := p.healthy(ctx); err != nil {
		return failed(finding{
			clause: "P-2", expected: "Check of grpc.health.v1.Health answers SERVING for the service plugin", got: fmt.Sprintf("Check fails: %v", err),
			cause: "the health service of gRPC is not registered, or not for this name",
		}), nil
	}
	header := f.runner.c.header
	for _, part := range []func() result{
		func() result { return f.checkNames(d, header) },
		func() result { return checkDistributions(d.Distributions) },
		func() result { return checkCapabilities(d, header.role()) },
		func() result {
			if kind, serves := d.Serves(header.apiVersion, header.kind); serves {
				return checkSecretFields(kind, f.runner.c.expect.Secrets)
			}
			return passed()
		},
	} {
		if got := part(); got.status != Pass {
			return got, nil
		}
	}
	return f.checkSchemas(ctx, p, d), nil
}

// checkNames compares a description with the name of the file and with the kind of the case.
func (f *fixture) checkNames(d pluginv1.Description, h header) result {
	kind, serves := d.Serves(h.apiVersion, h.kind)
	file := filepath.Base(f.runner.binary)
	switch {
	case naming.ValidProvider(d.Name) != nil:
		return failed(finding{
			clause: "P-11", expected: "name is the provider: small letters, digits and hyphens",
			got: fmt.Sprintf("the name %q is no provider's name", d.Name), cause: "name holds the name of the program or a title",
		})
	case d.Fitness == pluginv1.FitnessUnspecified:
		return failed(finding{
			clause: "P-12", expected: "fitness is UNSUPPORTED, ABSENT, INSTALLED or ACTIVE",
			got: "the answer of Describe has no fitness", cause: "the field fitness is not set",
		})
	case !serves && !f.runner.c.refusedWith(pluginv1.CodeUnsupported):
		return failed(finding{
			clause: "P-11", expected: "kinds lists the apiVersion and kind of the case",
			got:   fmt.Sprintf("Describe does not list the kind %s of %s", h.kind, h.apiVersion),
			cause: "another apiVersion in kinds than in config.yaml, or a kind that is missing",
		})
	case serves && kind.Phase == pluginv1.PhaseUnspecified && h.role() == configurator:
		return failed(finding{
			clause: "P-13", expected: "each kind has the phase PREPARATION or PROVISIONING",
			got: fmt.Sprintf("the kind %s has no phase", h.kind), cause: "the field phase is not set",
		})
	case !slices.Contains(filesOf(d), file):
		return failed(finding{
			clause: "N-1", expected: "the file has the name by which machineadm looks for the kind and the provider",
			got: fmt.Sprintf("the name is %q and the kinds belong to the files %s, which machineadm looks for, but the file is called %s",
				d.Name, strings.Join(filesOf(d), ", "), file),
			cause: "a build under another name; rename the file, or correct the name or the kinds of Describe",
		})
	}
	return passed()
}

// checkDistributions requires IDs of os-release(5), each once.
func checkDistributions(ids []string) result {
	form := regexp.MustCompile(`^[a-z0-9._-]+$`)
	for i, id := range ids {
		if !form.MatchString(id) || slices.Contains(ids[:i], id) {
			return failed(finding{
				clause: "P-36", expected: "distributions lists IDs of os-release(5), each once",
				got:   fmt.Sprintf("distributions names %q, which is no ID of os-release(5), or is listed twice", id),
				cause: "NAME or PRETTY_NAME of os-release(5) in the place of ID",
			})
		}
	}
	return passed()
}

// checkSecretFields requires the secrets of the case in the secret fields of Describe.
func checkSecretFields(kind pluginv1.Kind, secrets []string) result {
	for _, secret := range secrets {
		if !slices.ContainsFunc(kind.SecretFields, func(pattern string) bool { return matchesField(pattern, secret) }) {
			return failed(finding{
				clause: "P-38", expected: "secret_fields lists every secret field of the kind",
				got: fmt.Sprintf("%s is a secret of the case, and secret_fields of the kind %s does not have it: %q",
					secret, kind.Kind, kind.SecretFields),
				cause: "a field that was added to the kind and not to secret_fields",
			})
		}
	}
	return passed()
}

// matchesField reports whether a pattern of secret_fields names a field. A secret is a string, or a mapping with a value.
func matchesField(pattern, field string) bool {
	element := `(?:\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\]|\.[A-Za-z_][A-Za-z0-9_-]*)`
	form, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\[\]`, element) + "$")
	return err == nil && (form.MatchString(field) || form.MatchString(strings.TrimSuffix(field, ".value")))
}

// checkSchemas requires schemas only in the answer to a request for them, as JSON objects.
func (f *fixture) checkSchemas(ctx context.Context, p *plugin, d pluginv1.Description) result {
	for _, k := range d.Kinds {
		if len(k.JSONSchema) > 0 {
			return failed(finding{
				clause: "P-37", expected: "no JSON schema, because json_schema of the request is not set",
				got: fmt.Sprintf("the kind %s has a JSON schema that was not asked for", k.Kind), cause: "Describe ignores json_schema of the request",
			})
		}
	}
	d, err := p.describe(ctx, f.planning(), true)
	if err != nil {
		return failed(finding{
			clause: clauseOf(err, "P-37"), expected: "Describe answers, with JSON schemas or without",
			got: fmt.Sprintf("asked for JSON schemas, Describe fails: %v", err), cause: causeOf(err, "the schema is not found where the plugin is installed"),
		})
	}
	for _, k := range d.Kinds {
		var object map[string]any
		if len(k.JSONSchema) > 0 && json.Unmarshal(k.JSONSchema, &object) != nil {
			return failed(finding{
				clause: "P-37", expected: "each JSON schema is a JSON object",
				got: fmt.Sprintf("the JSON schema of the kind %s is no JSON object", k.Kind), cause: "a schema in YAML, or with another encoding",
			})
		}
	}
	return passed()
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

package conformance

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

func describes(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	d, err := p.describe(ctx, b.planning())
	if err != nil {
		return failed("Describe fails: %v", err).of(clauseOf(err, "P-10")), nil
	}
	header, err := b.trial.header()
	if err != nil {
		return finding{}, err
	}
	kind, serves := d.Serves(header.apiVersion, header.kind)
	file := filepath.Base(b.trial.binary)
	switch {
	case trouble(naming.ValidProvider(d.Name)) != "":
		return failed("the name %q is no provider's name", d.Name).of("P-11"), nil
	case d.Fitness == pluginv1.FitnessUnspecified:
		return failed("it does not say how the plugin fits").of("P-12"), nil
	case !serves && !b.trial.c.refusedWith(pluginv1.CodeUnsupported):
		return failed("it does not list the kind %s of %s", header.kind, header.apiVersion).of("P-11"), nil
	case serves && kind.Phase == pluginv1.PhaseUnspecified:
		return failed("the kind %s has no phase", header.kind).of("P-13"), nil
	case !slices.Contains(filesOf(d), file):
		return failed("the name is %q and the kinds are those of the files %s, which the host looks for, but the file is called %s: "+
			"rename it, or correct the name or the kinds of Describe", d.Name, strings.Join(filesOf(d), ", "), file).of("N-1"), nil
	}
	if f := judgeDistributions(d.Distributions); f.verdict != Pass {
		return f, nil
	}
	if serves {
		if f := judgeSecretFields(kind, b.trial.c.expect.Secrets); f.verdict != Pass {
			return f, nil
		}
	}
	return b.judgeSchemas(ctx, p, d)
}

// judgeDistributions: an ID of os-release(5), each once.
func judgeDistributions(ids []string) finding {
	form := regexp.MustCompile(`^[a-z0-9._-]+$`)
	for i, id := range ids {
		if !form.MatchString(id) || slices.Contains(ids[:i], id) {
			return failed("distributions names %q, which is no ID of os-release(5), or stands twice", id).of("P-36")
		}
	}
	return passed()
}

// judgeSecretFields: the secrets of the case are among the fields that Describe calls secret.
func judgeSecretFields(kind pluginv1.Kind, secrets []string) finding {
	for _, secret := range secrets {
		if !slices.ContainsFunc(kind.SecretFields, func(pattern string) bool { return matchesField(pattern, secret) }) {
			return failed("%s is a secret of the case, and secret_fields of the kind %s does not have it: %q",
				secret, kind.Kind, kind.SecretFields).of("P-38")
		}
	}
	return passed()
}

// matchesField says whether a pattern of secret_fields names a field. A secret is a string, or a mapping with a value.
func matchesField(pattern, field string) bool {
	element := `(?:\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\]|\.[A-Za-z_][A-Za-z0-9_-]*)`
	form, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\[\]`, element) + "$")
	return err == nil && (form.MatchString(field) || form.MatchString(strings.TrimSuffix(field, ".value")))
}

// judgeSchemas: a schema comes when it is asked for and not otherwise, and is a JSON object.
func (b *bench) judgeSchemas(ctx context.Context, p *plugin, d pluginv1.Description) (finding, error) {
	for _, k := range d.Kinds {
		if len(k.JSONSchema) > 0 {
			return failed("the kind %s has a JSON schema that was not asked for", k.Kind).of("P-37"), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := p.Describe(ctx, pluginv1.DescribeRequest{Root: b.root, Target: targetOf(b.root), RuntimeVersion: runtimeVersion, JSONSchema: true})
	if err != nil {
		return failed("asked for JSON schemas, Describe fails: %v", p.explain(err)).of(clauseOf(err, "P-37")), nil
	}
	for _, k := range d.Kinds {
		var object map[string]any
		if len(k.JSONSchema) > 0 && json.Unmarshal(k.JSONSchema, &object) != nil {
			return failed("the JSON schema of the kind %s is no JSON object", k.Kind).of("P-37"), nil
		}
	}
	return passed(), nil
}

// filesOf are the names under which a host looks for a plugin that describes itself so: one for each kind.
func filesOf(d pluginv1.Description) []string {
	var out []string
	for _, kind := range d.Kinds {
		out = append(out, naming.File(runtime.GOOS, naming.Binary(kind.Kind, d.Name)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

type header struct{ apiVersion, kind string }

func (t *trial) header() (header, error) {
	root, err := parse(t.document)
	if err != nil {
		return header{}, err
	}
	version, _ := root["apiVersion"].(string)
	kind, _ := root["kind"].(string)
	return header{version, kind}, nil
}

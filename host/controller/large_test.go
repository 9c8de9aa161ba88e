package controller

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
)

// secrets are values that differ in their length, in their lines, and in how well they compress. The first is a guess that the document
// repeats beside the secret.
func secrets() []string {
	r, noise := rand.New(rand.NewPCG(5, 5)), make([]byte, 3000)
	for i := range noise {
		noise[i] = byte('a' + r.IntN(26))
	}
	return []string{guess, "s3cr3t-x9-y8", "", string(noise), strings.Repeat("line\n", 700), strings.Repeat("a", 4000), "{{ machine_config"}
}

const guess = "s3cr3t-a1-b2"

// rendering is a work whose config has a format, and whose Secrets and ConfigMaps are there.
func rendering(format bootstrap.Format, values map[input]string) *work {
	config := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"}}
	config.Spec.Format = format
	r := &Reconciler{readers: newReaders()}
	bodies := map[input]body{}
	for of, text := range values {
		bodies[of] = body{values: map[string][]byte{"value": []byte(text)}}
	}
	return &work{r: r, config: config, reading: &reading{r: r, config: config, bodies: bodies}}
}

func named(kind, name string) input {
	return input{schema.GroupKind{Kind: kind}, client.ObjectKey{Namespace: "a", Name: name}}
}

// templated is a format with a template in an object.
func templated(kind string, format bootstrap.Format) bootstrap.Format {
	format.TemplateRef = &bootstrap.TemplateReference{Kind: kind, Name: "template"}
	return format
}

// TestNoMessageDependsOnASecret: the messages of data that cannot be made are the same for every value of a secret.
func TestNoMessageDependsOnASecret(t *testing.T) {
	t.Parallel()
	// The first line encodes the stream 7 times, each other one 1,000 bytes: the line at which the limit is exceeded is the size.
	lines := "{{ $x := machine_config | base64 }}" + strings.Repeat("{{ $y := base64 $x }}", 6) +
		strings.Repeat("\n{{ $y := base64 `"+strings.Repeat("a", 1000)+"` }}", 450)
	noise := rand.New(rand.NewPCG(1, 1))
	padding := make([]byte, 800_000)
	for i := range padding {
		padding[i] = byte('a' + noise.IntN(26))
	}
	for about, c := range map[string]struct {
		format   bootstrap.Format
		template func(secret string) string
		padding  string
		want     string
	}{
		"cloudConfig": {format: bootstrap.Format{MaxBytes: 1}, want: "1 bytes are allowed"},
		"ignition":    {format: bootstrap.Format{Type: "ignition", MaxBytes: 1}, want: "1 bytes are allowed"},
		"plain":       {format: bootstrap.Format{Type: "plain", Target: "virtualbox"}, padding: string(padding[:2000]), want: "virtualbox accepts 1024 bytes"},
		"a Secret":    {format: bootstrap.Format{Type: "plain"}, padding: string(padding) + string(padding), want: "1048564 bytes are allowed"},
		"unattend":    {format: bootstrap.Format{Type: "unattend"}, padding: string(padding), want: "at most 500 commands"},
		"talos":       {format: bootstrap.Format{Type: "talos", MaxBytes: 1}, want: "1 bytes are allowed"},
		"a template": {
			format: templated("ConfigMap", bootstrap.Format{MaxBytes: 1}), template: func(string) string { return "#cloud-config\na: {{ machine_config | gzipBase64 }}" },
			want: "1 bytes are allowed",
		},
		"lines of a template": {
			format: templated("ConfigMap", bootstrap.Format{}), template: func(string) string { return lines },
			padding: string(padding[:430_000]), want: "encodes more than 4194304 bytes",
		},
		"a Secret as the template": {
			format: templated("Secret", bootstrap.Format{}), template: func(secret string) string { return secret }, want: "the template is not valid",
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			messages := map[string]bool{}
			for _, secret := range secrets() {
				values := map[input]string{}
				if c.template != nil {
					values[named(c.format.TemplateRef.Kind, "template")] = c.template(secret)
				}
				spec, err := json.Marshal(map[string]any{"guess": guess, "padding": c.padding, "secret": map[string]string{"value": secret}})
				require.NoError(t, err)
				documents := []emit.Document{{
					Header: contract.Header{APIVersion: "example.com/v1", Kind: "Test", Metadata: contract.Metadata{Name: "a"}}, Spec: json.RawMessage(spec), Bytes: 7,
				}}
				_, err = rendering(c.format, values).wrapped(t.Context(), documents, documents)
				if c.format.TemplateRef != nil && values[named(c.format.TemplateRef.Kind, "template")] == "" {
					require.NoError(t, err) // an empty template adds nothing
					continue
				}
				require.ErrorContains(t, err, c.want)
				messages[err.Error()] = true
			}
			assert.Len(t, messages, 1)
		})
	}
}

// TestNoPlaceInASecret: an error of a stream in a Secret has no line, and no length of what is in front of it.
func TestNoPlaceInASecret(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"apiVersion: example.com/v1\nkind: Test\nmetadata: {name: a}\nspec: {}\n", // a name that is taken
		"apiVersion: example.com/v1\nkind: Test\nmetadata: {name: b}\nspec: {a: 1, a: 2}\n",
		"apiVersion: example.com/v1\nkind: Test\nmetadata: {name: b}\nspec: [\n",
		strings.Repeat("---\na\n", 20000),
		strings.Repeat("---\nkind: A\napiVersion: a/v1\nspec: {}\nmetadata: {name: A}\n", 20000),
	} {
		messages := map[string]bool{}
		for _, secret := range secrets() {
			text, err := json.Marshal(strings.ReplaceAll(secret, "\n", " "))
			require.NoError(t, err)
			// Long values in YAML have more lines.
			value := strings.ReplaceAll(string(text), " ", "\n   ")
			_, err = decoded("Secret/a", []byte("apiVersion: example.com/v1\nkind: Test\nmetadata: {name: a}\nspec: {secret: {value: "+value+"}}\n---\n"+wrong))
			require.Error(t, err)
			messages[err.Error()] = true
		}
		assert.Len(t, messages, 1, "%v", messages)
	}
}

// TestSizesOfSpecs: the message lists specs by their own size, and what comes from a Secret without one.
func TestSizesOfSpecs(t *testing.T) {
	t.Parallel()
	of := func(name string, bytes int) emit.Document {
		return emit.Document{Header: contract.Header{Kind: "Test", Metadata: contract.Metadata{Name: name}}, Spec: json.RawMessage(`{}`), Bytes: bytes}
	}
	documents := []emit.Document{of("small", 16), of("foreign", 0), of("large", 200)}
	for i := range documents {
		documents[i].APIVersion = "example.com/v1"
	}
	documents = append(documents, emit.Document{
		Header: contract.Header{APIVersion: "example.com/v1", Kind: "Other", Metadata: contract.Metadata{Name: "a"}},
		Spec:   json.RawMessage(`{"a":"` + strings.Repeat("a", 2000) + `"}`),
	})
	_, err := rendering(bootstrap.Format{Target: "virtualbox", Type: "plain"}, nil).wrapped(t.Context(), documents, documents)
	require.EqualError(t, err, "TooLarge: the data is too large: virtualbox accepts 1024 bytes; bytes per document without the values of Secrets: "+
		"Test/large 200, Test/small 16, Test/foreign not counted, Other/a not counted: "+
		"move files from the documents into the image, or set format.maxBytes if the infrastructure accepts more")
}

// TestNoMetricDependsOnASecret: a metric counts what the config says, so that the sums of two scrapes are no size of the data.
func TestNoMetricDependsOnASecret(t *testing.T) {
	t.Parallel()
	counted := map[string]bool{}
	for _, secret := range secrets() {
		registry := prometheus.NewRegistry()
		m, err := newMetrics(registry)
		require.NoError(t, err)
		documents := []emit.Document{{Bytes: 20, Spec: json.RawMessage(secret)}, {Bytes: 3}, {Spec: json.RawMessage(secret)}}
		m.made(&bootstrap.MachineBootstrapConfig{}, documentBytes(documents), time.Time{}, time.Time{})
		families, err := registry.Gather()
		require.NoError(t, err)
		text := ""
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				text += fmt.Sprintln(family.GetName(), metric.GetHistogram().GetSampleSum(), metric.GetHistogram().GetBucket())
			}
		}
		counted[text] = true
	}
	assert.Len(t, counted, 1)
}

// TestDigestsOfEqualContent: the digest of a secret differs from the digest of another object with the same content.
func TestDigestsOfEqualContent(t *testing.T) {
	t.Parallel()
	in := newInputs([]byte("key"))
	in.add(named("Secret", "a"), []byte(guess))
	in.add(named("Secret", "b"), []byte(guess))
	in.add(named("ConfigMap", "a"), []byte(guess))
	seen := map[string]bool{}
	for _, digest := range in.digests {
		seen[digest] = true
	}
	assert.Len(t, seen, 3)
}

package v1alpha1_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const canary = "c4n4ry"

// holder keeps a secret in every place that a struct has for one.
type holder struct {
	Plain   v1alpha1.Secret
	Pointer *v1alpha1.Secret
	List    []v1alpha1.Secret
	Map     map[string]v1alpha1.Secret
	Key     map[v1alpha1.Secret]int
	Any     any
	Nested  struct{ Deep *v1alpha1.Secret }
	hidden  v1alpha1.Secret
	chain   **v1alpha1.Secret
	bag     map[string][]v1alpha1.Secret
}

func full() holder {
	s := v1alpha1.NewSecret([]byte(canary))
	p := &s
	h := holder{
		Plain: s, Pointer: p, List: []v1alpha1.Secret{s}, Map: map[string]v1alpha1.Secret{"k": s},
		Key: map[v1alpha1.Secret]int{s: 1}, Any: s, hidden: s, chain: &p, bag: map[string][]v1alpha1.Secret{"k": {s}},
	}
	h.Nested.Deep = p
	return h
}

// shapes are a secret and what can hold it.
func shapes() map[string]any {
	h := full()
	return map[string]any{
		"value": h.Plain, "pointer": h.Pointer, "pointer to pointer": &h.Pointer, "copy": func(s v1alpha1.Secret) any { return s }(h.Plain),
		"struct": h, "pointer to struct": &h, "slice": h.List, "pointer to slice": &h.List, "map": h.Map, "map key": h.Key,
		"array": [1]v1alpha1.Secret{h.Plain}, "any": []any{h.Plain, h.Pointer}, "unexported": struct{ s holder }{h},
	}
}

// leak looks for the secret in every form in which a program would print bytes.
func leak(t *testing.T, where, text string) {
	t.Helper()
	forms := []string{
		canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("% x", canary), fmt.Sprintf("%d", []byte(canary)),
		fmt.Sprintf("%#v", []byte(canary)), strings.Trim(fmt.Sprintf("%#v", []byte(canary)), "[]byte{}"), "YzRuNHJ5",
	}
	for _, form := range forms {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the secret as %q: %s", where, form, text)
		}
	}
}

func TestSecretIsNotFormatted(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes() {
		for _, flags := range []string{"", "+", "#", " ", "-20", "0", "+#", ".2", "200"} {
			for verb := 'A'; verb <= 'z'; verb++ {
				format := "%" + flags + string(verb)
				leak(t, name+" with "+format, fmt.Sprintf(format, shape))
			}
		}
		leak(t, name+" with Sprint", fmt.Sprint(shape))
		leak(t, name+" in an error", fmt.Errorf("use %v: %w", shape, errors.New("no")).Error())
	}
	secret := full().Plain
	for _, text := range []string{fmt.Sprintf("%x", secret), fmt.Sprintf("%#v", secret), secret.String(), secret.GoString(), fmt.Sprint(&secret)} {
		if text != v1alpha1.Redacted {
			t.Errorf("shown as %q", text)
		}
	}
	if got := fmt.Sprintf("%+v", struct{ S []v1alpha1.Secret }{[]v1alpha1.Secret{secret}}); got != "{S:[[redacted]]}" {
		t.Errorf("in a struct it is shown as %s", got)
	}
}

func TestSecretIsNotLogged(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes() {
		var out bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).With("bound", shape).WithGroup("g").Info("hello", "secret", shape, slog.Group("h", "s", shape))
		}
		leak(t, name, out.String())
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("hello", "secret", full().Plain)
	if !strings.Contains(out.String(), "secret="+v1alpha1.Redacted) {
		t.Errorf("logged as %s", out.String())
	}
}

func TestSecretIsNotMarshalled(t *testing.T) {
	t.Parallel()
	h := full()
	for name, shape := range shapes() {
		_, jsonErr := json.Marshal(shape)
		if name == "unexported" { // nothing of it is marshalled
			continue
		}
		if jsonErr == nil || !strings.Contains(jsonErr.Error(), v1alpha1.ErrSecretMarshal.Error()) {
			t.Errorf("%s: json answers %v", name, jsonErr)
		}
	}
	var out bytes.Buffer
	for _, holder := range []any{h.Plain, h.Pointer, h.List, struct{ S v1alpha1.Secret }{h.Plain}} {
		if err := gob.NewEncoder(&out).Encode(holder); err == nil {
			t.Errorf("gob encodes %T", holder)
		}
		if err := xml.NewEncoder(&out).Encode(holder); err == nil {
			t.Errorf("xml encodes %T", holder)
		}
	}
	if _, err := h.Plain.MarshalYAML(); !errors.Is(err, v1alpha1.ErrSecretMarshal) {
		t.Errorf("yaml answers %v", err)
	}
	if err := template.Must(template.New("").Parse("{{.Plain}} {{.}} {{printf `%x` .Pointer}}")).Execute(&out, h); err != nil {
		t.Fatal(err)
	}
	leak(t, "an encoder", out.String())
}

// vault is a document with secrets, as the encoder and the decoder know them.
type vault struct {
	v1alpha1.Header
	Spec struct {
		Password v1alpha1.Secret  `json:"password"`
		Token    *v1alpha1.Secret `json:"token,omitempty"`
		None     v1alpha1.Secret  `json:"none,omitzero"`
	} `json:"spec"`
}

// TestSecretInADocument: the document encoder alone opens a secret, and what it writes is read back.
func TestSecretInADocument(t *testing.T) {
	t.Parallel()
	var in vault
	in.Header = v1alpha1.Header{APIVersion: "example.com/v1", Kind: "Vault", Metadata: v1alpha1.Metadata{Name: "x"}}
	in.Spec.Password = v1alpha1.NewSecret([]byte(canary + "\n\"'\t\u00e9"))
	token := v1alpha1.NewSecret(nil)
	in.Spec.Token = &token
	var out bytes.Buffer
	if err := document.Encode(&out, in); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "none") {
		t.Errorf("a secret that was not given is written: %s", out.String())
	}
	stream, err := document.Decode("x", &out)
	if err != nil || len(stream.Errors) > 0 || len(stream.Documents) != 1 {
		t.Fatalf("read back: %+v, %v", stream, err)
	}
	data, err := stream.Documents[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back vault
	if violations := document.Unmarshal(data, &back); len(violations) > 0 {
		t.Fatalf("violations %+v", violations)
	}
	if !bytes.Equal(back.Spec.Password.Reveal(), in.Spec.Password.Reveal()) {
		t.Error("the secret is read back as another one")
	}
	if back.Spec.Token == nil || back.Spec.Token.IsZero() || len(back.Spec.Token.Reveal()) != 0 || !back.Spec.None.IsZero() {
		t.Error("an empty secret equals an absent one")
	}
	in.Spec.Password = v1alpha1.NewSecret([]byte(canary + "\xff"))
	err = document.Encode(&bytes.Buffer{}, in)
	if err == nil {
		t.Fatal("bytes that are no text were written")
	}
	leak(t, "the encoder's error", err.Error())
}

func TestSecretRefusals(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`"c4n4ry"`, `12345`, `["c4n4ry"]`, `{}`, `null`, `{"value":12345}`, `{"value":null}`, `{"value":{"c4n4ry":1}}`, `{"value":"x","c4n4ry":1}`,
		`{"Value":"c4n4ry"}`, `{"value":"c4n4ry`, `{"valueFrom":{"secretKeyRef":"c4n4ry"}}`, `{"value":"c4n4ry"} {}`,
	} {
		s := v1alpha1.NewSecret([]byte("before"))
		err := s.UnmarshalJSON([]byte(data))
		if err == nil {
			t.Errorf("%s was read", data)
			continue
		}
		leak(t, "the error", err.Error())
		if strings.Contains(err.Error(), "12345") {
			t.Errorf("the error quotes what it read: %v", err)
		}
		if string(s.Reveal()) != "before" {
			t.Errorf("%s changed the secret", data)
		}
	}
	var s v1alpha1.Secret
	if err := json.Unmarshal([]byte(` {"value": "c4n4ry"} `), &s); err != nil || string(s.Reveal()) != canary {
		t.Errorf("a secret was not read: %v", err)
	}
}

// TestSecretIsACopy: a change of the source does not change the secret, and copies are equal.
func TestSecretIsACopy(t *testing.T) {
	t.Parallel()
	data := []byte(canary)
	s := v1alpha1.NewSecret(data)
	data[0] = 'X'
	twin := s
	if string(s.Reveal()) != canary || string(twin.Reveal()) != canary || twin != s {
		t.Error("the secret is not what it was made of")
	}
	var zero v1alpha1.Secret
	if !zero.IsZero() || zero.Reveal() != nil || s.IsZero() || v1alpha1.NewSecret(nil).IsZero() {
		t.Error("the zero secret equals a given one")
	}
}

// TestSecretOfACluster: the reference of an object in a cluster is no secret of a document, and the error names the difference.
func TestSecretOfACluster(t *testing.T) {
	t.Parallel()
	var s v1alpha1.Secret
	err := json.Unmarshal([]byte(`{"valueFrom": {"secretKeyRef": {"name": "c4n4ry", "key": "a"}}}`), &s)
	assert.EqualError(t, err, "has valueFrom, which is for objects in a cluster: write the text itself, as value")
}

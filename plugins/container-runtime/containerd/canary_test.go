package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
)

const secretive = `{"registries":{
	"r.test":{"auth":{"username":"u","password":{"value":"c4n4ry-1"}},"headers":{"X-A":{"value":"c4n4ry-2"}},
		"mirrors":[{"url":"https://m.test","headers":{"X-A":{"value":"c4n4ry-3"}},"client":{"cert":"@CERT@","key":{"value":"@KEY@"}}}]},
	"t.test":{"auth":{"identityToken":{"value":"c4n4ry-4"}}}},
	"proxy":{"httpSecret":{"value":"http://u:c4n4ry-5@p.test"},"httpsSecret":{"value":"http://u:c4n4ry-6@p.test"}}}`

// TestNothingShowsASecret: whatever of this package is formatted or logged.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	doc := containerRuntime(t, secretive)
	for _, system := range []string{"linux", "windows"} {
		d, violations := resolve(doc, system)
		if len(violations) > 0 {
			t.Fatalf("%+v", violations)
		}
		settings, _ := d.settings(release{2, 1, 4})
		secrets := 0
		for _, s := range settings {
			if s.secret {
				secrets++
			}
		}
		if secrets != 3 {
			t.Errorf("%d settings are secret", secrets)
		}
		shapes := map[string]any{
			"document": doc, "desired": d, "pointer": &d, "unexported": struct{ d desired }{d}, "settings": settings, "setting": settings[0],
			"environment": d.environment, "variables": struct{ v []variable }{d.environment}, "registries": d.registries,
			"certs": d.certs(release{2, 1, 4}), "files": d.serviceFiles(), "violations": violations,
		}
		for name, shape := range shapes {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
				leak(t, name+" with "+verb, fmt.Sprintf(verb, shape))
			}
			var out bytes.Buffer
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "y", shape)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "y", shape)
			leak(t, name+" in a log", out.String())
		}
		for _, s := range settings {
			leak(t, "setting", fmt.Sprintf("%v %+v %#v %s %x", s, s, s, s, s))
		}
	}
}

func leak(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), strings.Trim(fmt.Sprintf("%d", []byte(canary)), "[]"), "MIGHAgEA"} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows a secret: %.400s", where, text)
		}
	}
}

// TestViolationsNeverQuote: every secret of the document in a form that is refused.
func TestViolationsNeverQuote(t *testing.T) {
	t.Parallel()
	text := filled(t, strings.NewReplacer(
		"c4n4ry-", `c4n4ry\n-`, `"@KEY@"`, `"-----BEGIN PRIVATE KEY-----\nc4n4ry\n-----END PRIVATE KEY-----\n"`, `"u"`, `"c4n4ry\n"`,
	).Replace(secretive))
	doc := containerRuntime(t, text)
	_, violations := resolve(doc, "linux")
	if len(violations) < 8 {
		t.Errorf("%d violations: %+v", len(violations), violations)
	}
	for _, v := range violations {
		leak(t, "a violation", v.Field+v.Message+v.Hint)
	}
	// The strict decoder, too.
	var other struct{}
	for _, v := range document.Unmarshal([]byte(text), &other) {
		leak(t, "the decoder", fmt.Sprint(v))
	}
}

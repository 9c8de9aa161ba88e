package cri

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const canary = "c4n4ry"

func TestWhatMayHoldASecretIsNotShown(t *testing.T) {
	t.Parallel()
	auth, info := NewAuth("user", canary), Info{hide(map[string]string{"config": canary})}
	shapes := map[string]any{
		"Auth": auth, "*Auth": &auth, "Info": info, "*Info": &info, "Status": Status{Info: info}, "*Status": &Status{Info: info},
		"in a list": []Auth{auth}, "in a map": map[string]Info{"a": info}, "unexported": struct {
			a Auth
			i *Info
		}{auth, &info},
	}
	for name, shape := range shapes {
		for _, flags := range []string{"", "+", "#", " ", "-20", "+#", "200"} {
			for verb := 'A'; verb <= 'z'; verb++ {
				leak(t, name, fmt.Sprintf("%"+flags+string(verb), shape))
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", shape)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", shape)
		leak(t, name+" in a log", log.String())
		text, err := json.Marshal(shape)
		leak(t, name+" as JSON", string(text))
		if err == nil && name != "unexported" {
			t.Errorf("%s is marshaled to JSON: %s", name, text)
		}
		var stream bytes.Buffer
		if err := gob.NewEncoder(&stream).Encode(shape); err == nil {
			t.Errorf("%s is marshaled by gob", name)
		}
		leak(t, name+" by gob", stream.String())
	}
}

func TestTheZeroValuesHoldNothing(t *testing.T) {
	t.Parallel()
	var info Info
	if text, ok := info.Reveal("config"); ok || text != "" || len(info.Keys()) != 0 {
		t.Errorf("the zero Info holds %q", text)
	}
}

func TestHiddenShowsThatItIs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		for _, shape := range []any{Auth{}, Info{}, NewAuth("user", canary)} {
			if got := fmt.Sprintf(format, shape); got != redacted {
				t.Errorf("%s shows %q", format, got)
			}
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", NewAuth("user", canary))
	if !strings.Contains(log.String(), `"v":"`+redacted+`"`) {
		t.Errorf("a log shows %s", log.String())
	}
}

// leak looks for the secret in every form in which a program would print it.
func leak(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("%d", []byte(canary))} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the secret as %q: %s", where, form, text)
		}
	}
}

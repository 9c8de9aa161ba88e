package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestStatusIsCompared: what the running daemon tells of its configuration is held against the document.
func TestStatusIsCompared(t *testing.T) {
	t.Parallel()
	k := checker{c: configuration{settings: core(release{1, 7, 24})}}
	config := map[string]any{"containerd": map[string]any{"snapshotter": "native"}, "sandboxImage": "registry.example.com/pause:3.10"}
	show := func() error {
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return k.shown(string(text))
	}
	if err := show(); err != nil {
		t.Error(err)
	}
	config["sandboxImage"] = "another"
	if err := show(); err == nil || !strings.Contains(err.Error(), "spec.sandboxImage") {
		t.Errorf("got %v", err)
	}
}

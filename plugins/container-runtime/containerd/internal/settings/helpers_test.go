package settings

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/sdk"
)

// releases are those that every case is shown for.
func releases() []Release {
	return []Release{{1, 6, 20}, {1, 7, 24}, {2, 0, 0}, {2, 1, 4}, {2, 3, 7}}
}

// wanted is the document, found to be right.
func wanted(t testing.TB, os, spec string) Desired {
	t.Helper()
	d, violations := Resolve(containerdtest.ContainerRuntime(t, spec), os)
	if len(violations) > 0 {
		t.Fatalf("%+v", violations)
	}
	return d
}

// compare holds violations against "FIELD: part of the message", all of them in their order.
func compare(t *testing.T, name string, got []sdk.Violation, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %+v, want %q", name, got, want)
		return
	}
	for i, text := range want {
		field, message, _ := strings.Cut(text, ": ")
		if got[i].Field != field || !strings.Contains(got[i].Message, message) {
			t.Errorf("%s: got %+v, want %s", name, got[i], text)
		}
	}
}

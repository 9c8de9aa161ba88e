package cri_test

import (
	"errors"
	"testing"

	"github.com/machineadm/machineadm/internal/cri"
)

func TestDialSaysThatNamedPipesAreNotSupported(t *testing.T) {
	t.Parallel()
	if _, err := cri.Dial(t.Context(), "npipe:////./pipe/containerd-containerd"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

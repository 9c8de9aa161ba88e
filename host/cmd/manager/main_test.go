package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestLogger: a watch of controller-runtime has a name in the log, and other values are as they were.
func TestLogger(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Motd")
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })
	var out bytes.Buffer
	logger(&out, slog.LevelInfo).Info("Starting EventSource", "source", source.Kind[client.Object](cache.Cache(nil), object, enqueue), "object", client.ObjectKey{Name: "n"})
	var line struct {
		Source string
		Object map[string]string
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	assert.Equal(t, "kind source: *unstructured.Unstructured[example.com/v1 Motd]", line.Source)
	assert.Equal(t, "n", line.Object["Name"])
}

package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	streams "github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/wrap"
)

// BenchmarkBootstrapData orders, encodes and wraps the documents of a control plane with its certificate authorities. It has a
// heap like a manager's; with an empty one, a third of the time would be the garbage collector's.
func BenchmarkBootstrapData(b *testing.B) {
	golden, err := os.ReadFile("../../host/controller/emit/testdata/control-plane.yaml")
	require.NoError(b, err)
	read, err := streams.Decode("", bytes.NewReader(golden))
	require.NoError(b, err)
	var documents []emit.Document
	for _, d := range read.Documents {
		data, err := d.JSON()
		require.NoError(b, err)
		header := contract.Header{APIVersion: d.APIVersion, Kind: d.Kind, Metadata: contract.Metadata{Name: d.Name}}
		spec := any(json.RawMessage(`{}`))
		if into := contract.New(d.Kind); into != nil {
			require.Empty(b, streams.Unmarshal(data, into))
			spec = reflect.ValueOf(into).Elem().FieldByName("Spec").Interface()
		}
		documents = append(documents, emit.Document{Header: header, Spec: spec})
	}
	var wrapper wrap.Wrapper
	heap := make([]byte, 64<<20)
	defer runtime.KeepAlive(heap)
	began := processorTime(b)
	for b.Loop() {
		ordered, err := emit.Order(documents)
		require.NoError(b, err)
		stream, err := emit.Stream(ordered)
		require.NoError(b, err)
		_, err = wrapper.Wrap(wrap.Format{}, stream)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(time.Millisecond)/float64(b.N), "cpu-ms")
}

// processorTime includes the garbage collector's.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

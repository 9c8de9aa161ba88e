package envelope

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/host/envelope"
	machine "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/bench"
)

// BenchmarkOpen10MiB compares the decryption of 10 MiB with the derivation of its key by openssl, and 50 ms for everything else.
func BenchmarkOpen10MiB(b *testing.B) {
	machine.Tool(b, "openssl")
	plain := bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)
	doc, err := envelope.Seal("site", "file", "file:///key", nil, []byte(passphrase), plain)
	require.NoError(b, err)
	var ours, theirs []float64
	for b.Loop() {
		theirs = append(theirs, milliseconds(func() { derive(b, []byte(passphrase), make([]byte, 16), doc.Spec.Iterations) }))
		ours = append(ours, milliseconds(func() { _, err = envelope.NewOpener().Open(b.Context(), doc, []byte(passphrase)) }))
		require.NoError(b, err)
	}
	b.ReportMetric(0, "ns/op") // of both
	b.ReportMetric(bench.Median(theirs)+50, "openssl-and-50-wall-ms")
	b.ReportMetric(bench.Median(ours), "wall-ms")
}

func milliseconds(do func()) float64 {
	began := time.Now()
	do()
	return float64(time.Since(began)) / float64(time.Millisecond)
}

package cli

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
)

// TestAStreamIsDecodedOnce: also where the run looks for a secret that other users can read, and for the destination of its report.
// The test is not parallel: it counts the decodings of this process.
func TestAStreamIsDecodedOnce(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.source(map[string]any{})
	path := b.stream(home() + b.touch("a"))
	require.NoError(t, os.Chmod(path, 0o644)) //nolint:gosec // for the warning
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = rate }()
	for _, args := range [][]string{{"validate"}, {"plan"}, {"apply", "--phase", "preparation"}} {
		before := decodings(t)
		got := b.run(append(args, "--path", path)...)
		require.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.code, got.String())
		require.Contains(t, got.errOut, "the stream contains a secret")
		assert.Equal(t, before+1, decodings(t), args[0])
	}
	require.Len(t, b.arrivals(), 1)
}

// decodings returns how many streams document.Decode has returned while every allocation was profiled: each is one object.
func decodings(t *testing.T) (n int64) {
	t.Helper()
	runtime.GC() // the profile is from the last collection but one
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1<<16)
	count, ok := runtime.MemProfile(records, true)
	require.True(t, ok)
	size := int64(unsafe.Sizeof(document.Stream{}))
	for _, r := range records[:count] {
		each := r.AllocBytes / max(r.AllocObjects, 1)
		if each < size || each >= size+16 { // a class of sizes of the allocator
			continue
		}
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if strings.HasPrefix(frame.Function, "runtime.") {
				continue
			}
			if strings.HasSuffix(frame.Function, "/contract/document.Decode") {
				n += r.AllocObjects
			}
			break
		}
	}
	return n
}

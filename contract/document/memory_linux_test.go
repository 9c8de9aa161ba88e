package document

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMemoryOfHostileStreams: reading 16 MiB of the texts that cost a parser the most takes at most 400 MiB, measured in
// a process of its own.
func TestMemoryOfHostileStreams(t *testing.T) {
	limit := 400        // MiB
	if raceDetector() { // its own memory is counted with the parser's
		limit *= 2
	}
	for _, c := range []struct {
		prefix, unit string
		units        int // in a document; 0: one document fills the stream
	}{
		{"", "! ", 0},
		{"", "&a ", 0},
		{"", "\"", 0},
		{"[", "a # b\n", 0},
		{"", "a ", 0},
		{"", "...\n", 0},
		{"", "! ", MaxStructure},
		{"", "\"\" ", MaxStructure / 2},
		{"[", "'a':", MaxStructure - 1},
		{"", "- !!str a\n", MaxStructure / 2},
	} {
		t.Run(fmt.Sprintf("%s%s%d", c.prefix, c.unit, c.units), func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestHostileStream$")
			child.Env = append(os.Environ(), "HOSTILE_PREFIX="+c.prefix, "HOSTILE_UNIT="+c.unit, fmt.Sprint("HOSTILE_UNITS=", c.units),
				"GODEBUG=gcstoptheworld=2") // else the peak depends on when a busy machine lets the collector run
			out, err := child.CombinedOutput()
			require.NoError(t, err, string(out))
			usage, ok := child.ProcessState.SysUsage().(*syscall.Rusage)
			require.True(t, ok)
			peak := usage.Maxrss >> 10
			assert.LessOrEqual(t, peak, int64(limit), "MiB")
			t.Log(peak, "MiB")
		})
	}
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestHostileStream is the process that TestMemoryOfHostileStreams measures.
func TestHostileStream(t *testing.T) {
	unit, child := os.LookupEnv("HOSTILE_UNIT")
	if !child {
		t.Skip("runs as a process of its own")
	}
	var units int
	_, err := fmt.Sscan(os.Getenv("HOSTILE_UNITS"), &units)
	require.NoError(t, err)
	document := os.Getenv("HOSTILE_PREFIX")
	if units == 0 {
		document += strings.Repeat(unit, (MaxStreamBytes-len(document))/len(unit))
	} else {
		document += strings.Repeat(unit, units) + "\n---\n"
		document = strings.Repeat(document, MaxStreamBytes/len(document))
	}
	stream, err := Decode("f", strings.NewReader(document))
	require.NoError(t, err)
	assert.NotEmpty(t, stream.Errors)
}

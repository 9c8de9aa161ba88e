package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func text(t *testing.T, l Layout, width int, color bool) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Text(&b, l, width, color))
	return b.String()
}

func svgOf(t *testing.T, l Layout) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, SVG(&b, l))
	return b.String()
}

// layouts are the pictures of the golden files.
func layouts() map[string]Layout {
	killed := tenDocuments()
	d := &killed[0].Documents[9]
	d.Outcome, d.DurationMs, d.Changes[2].Outcome, d.Changes[2].DurationMs = "", 0, report.Interrupted, 0
	killed[0].Outcome, killed[0].Errors, killed[0].FinishedAt = report.RunRunning, nil, time.Time{}
	killed[0].Stages = killed[0].Stages[:4]
	old := tenDocuments()
	old[0].Stages, old[0].UptimeMs = nil, 0
	for i := range old[0].Documents {
		d := &old[0].Documents[i]
		d.StartedAt, d.PlanMs, d.Waits = time.Time{}, 0, nil
		for k := range d.Changes {
			d.Changes[k].StartedAt = time.Time{}
		}
	}
	return map[string]Layout{
		"one": Of(oneDocument(), time.Time{}), "ten": Of(tenDocuments(), time.Time{}), "many": Of(manyDocuments(200), time.Time{}),
		"reboots": Of(twoReboots(), time.Time{}), "nodes": Several(fiftyNodes()), "killed": Of(killed, time.Time{}),
		"running": Of(killed, killed[0].StartedAt.Add(time.Minute)), "old": Of(old, time.Time{}), "none": Of(nil, time.Time{}), "baked": Of(baked(), time.Time{}),
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, l := range layouts() {
		golden(t, name+".txt", text(t, l, DefaultWidth, false))
	}
	golden(t, "color.txt", text(t, layouts()["ten"], 120, true))
	for _, name := range []string{"one", "ten", "reboots", "nodes"} {
		golden(t, name+".svg", svgOf(t, layouts()[name]))
	}
}

// TestWidth: no line of bars is wider than the terminal, and a picture of a narrow one has the smallest width.
func TestWidth(t *testing.T) {
	t.Parallel()
	for _, l := range layouts() {
		for _, width := range []int{1, 40, 80, 113, 250} {
			for line := range strings.Lines(text(t, l, width, false)) {
				assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), max(width, narrowest), line)
			}
		}
	}
}

// TestAcrossReboots: a run that sets the clock ends where the next one begins, and the time in between belongs to the reboot and
// of the boot.
func TestAcrossReboots(t *testing.T) {
	t.Parallel()
	l := Of(twoReboots(), time.Time{})
	total := 21000*time.Millisecond + 3957*time.Millisecond + 25*time.Second + 4557*time.Millisecond + 24*time.Second + 11987*time.Millisecond
	assert.Equal(t, total, l.Length)
	var kinds []Kind
	for i, b := range l.Rows[0].Bars {
		kinds = append(kinds, b.Kind)
		if i > 0 {
			assert.Equal(t, l.Rows[0].Bars[i-1].End, b.Start, "a gap before %s", b.Kind)
		}
	}
	run := []Kind{Prepare, Start, Plan, Apply, Finish}
	want := append([]Kind{Boot}, run...)
	for range 2 {
		want = append(append(want, Reboot, Boot), run...)
	}
	assert.Equal(t, want, kinds)
	assert.Equal(t, l.Length, l.Rows[0].Bars[len(l.Rows[0].Bars)-1].End)
	assert.Equal(t, "Timesync/site (x)", l.Rows[1].Label)
	assert.Equal(t, Changed, l.Rows[1].Kind, "the first run has changed it")
}

// TestUptimeOfAContainer: it can be longer than the time since the run before, and is not longer in the picture.
func TestUptimeOfAContainer(t *testing.T) {
	t.Parallel()
	runs := twoReboots()
	for i := range runs {
		runs[i].UptimeMs = time.Hour.Milliseconds()
	}
	bars := Of(runs, time.Time{}).Rows[0].Bars
	assert.Equal(t, Prepare, bars[0].Kind)
	for i := 1; i < len(bars); i++ {
		assert.Equal(t, bars[i-1].End, bars[i].Start, bars[i].Kind)
	}
}

// TestLargest: of ten thousand documents the picture has those that took longest or failed, in their order.
func TestLargest(t *testing.T) {
	t.Parallel()
	runs := manyDocuments(10000)
	runs[0].Documents[7777].Outcome = report.Failed
	l := Of(runs, time.Time{})
	require.Len(t, l.Rows, maxRows)
	assert.Greater(t, l.Hidden, 9000)
	assert.Contains(t, text(t, l, 80, false), "rows left out, the longest of ")
	assert.True(t, slices.ContainsFunc(l.Rows, func(r Row) bool { return r.Kind == Failed }))
	assert.True(t, slices.IsSortedFunc(l.Rows, func(a, b Row) int { return cmp.Compare(a.Bars[0].Start, b.Bars[0].Start) }))
	var b bytes.Buffer
	require.NoError(t, SVG(&b, l))
	assert.Less(t, b.Len(), 1<<20)
}

// FuzzPicture: whatever a report holds, both pictures end, the SVG is well-formed XML that refers to nothing, and no line holds what
// a terminal executes.
func FuzzPicture(f *testing.F) {
	for _, runs := range [][]report.Report{oneDocument(), tenDocuments(), twoReboots()} {
		data, err := json.Marshal(runs)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`[{"startedAt":"0001-01-01T00:00:00Z","finishedAt":"9999-12-31T23:59:59Z","uptimeMs":9223372036854775807,"stages":[
		{"name":"plan","durationMs":-1},{"name":"\u001b[31m","durationMs":9223372036854775807}],"host":{"hostname":"<script>\u202e"},
		"documents":[{"kind":"\n","name":"]]>&\u0000","planMs":-5,"startedAt":"9999-01-01T00:00:00Z","durationMs":-9223372036854775808,
		"waits":[{"reason":"\u001b]0;x\u0007","startedAt":"0001-01-01T00:00:00Z","durationMs":1}],
		"changes":[{"summary":"a\rb","outcome":"Failed","startedAt":"0001-01-01T00:00:00Z","durationMs":7}]}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var runs []report.Report
		if json.Unmarshal(data, &runs) != nil {
			return
		}
		for _, l := range []Layout{Of(runs, time.Time{}), Of(runs, moment()), Several(runs)} {
			for _, r := range l.Rows {
				for _, b := range r.Bars {
					if b.Start < 0 || b.End < b.Start || b.End > l.Length {
						t.Fatalf("%+v is not within %s", b, l.Length)
					}
				}
			}
			for line := range strings.Lines(text(t, l, 80, false)) {
				if line = strings.TrimSuffix(line, "\n"); words.Escape(line) != line {
					t.Fatalf("%q is not safe to show", line)
				}
			}
			decoder := xml.NewDecoder(strings.NewReader(svgOf(t, l)))
			for {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if start, ok := token.(xml.StartElement); ok {
					require.Contains(t, []string{"svg", "title", "style", "rect", "text", "line"}, start.Name.Local)
				}
			}
		}
	})
}

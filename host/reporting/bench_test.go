package reporting

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// BenchmarkObserve is what the live view costs the run: one event.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{10, 4000} {
		b.Run(fmt.Sprintf("%d documents", n), func(b *testing.B) {
			l := NewLive(newFakeTerminal(), true, nil)
			defer l.Close()
			r := manyDocuments(n)
			d, c := &r.Documents[n/2], change(setValue, report.Changed, 3)
			l.Observe(run.Event{Type: run.EventRunStarted, Time: time.Now(), Report: r})
			l.Observe(run.Event{Type: run.EventDocumentStarted, Time: time.Now(), Document: d})
			begin := run.Event{Type: run.EventChangeStarted, Time: time.Now(), Document: d, Change: &planEvents()[1].Planned[0]}
			c.ID = begin.Change.ID
			end := run.Event{Type: run.EventChangeFinished, Time: time.Now(), Document: d, Result: &c}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					l.Observe(begin)
				} else {
					l.Observe(end)
				}
			}
		})
	}
}

// BenchmarkFrame is what the view costs at each tick, beside the run.
func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{10, 4000} {
		b.Run(fmt.Sprintf("%d documents", n), func(b *testing.B) {
			var l list
			r := manyDocuments(n)
			l.take(run.Event{Type: run.EventRunStarted, Time: moment(), Report: r})
			l.take(run.Event{Type: run.EventDocumentStarted, Time: moment(), Document: &r.Documents[n/2]})
			l.take(run.Event{Type: run.EventChangeStarted, Time: moment(), Document: &r.Documents[n/2], Change: &planEvents()[1].Planned[0]})
			var c canvas
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.draw("", frame(&l, 80, 24, moment().Add(time.Duration(i)*every)), true, 81)
			}
		})
	}
}

// BenchmarkLines is the same event as lines, for comparison.
func BenchmarkLines(b *testing.B) {
	d := sysctl()
	e := run.Event{Type: run.EventChangeStarted, Time: moment(), Document: &d, Change: &planEvents()[1].Planned[0]}
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		Text{Out: &out, Err: &out}.Observe(e)
		out.Reset()
	}
}

func manyDocuments(n int) *report.Report {
	r := head(report.RunRunning, 0)
	for i := range n {
		r.Documents = append(r.Documents, report.Document{Index: i, Kind: "FooBar", Name: fmt.Sprintf("n-%d", i)})
	}
	return &r
}

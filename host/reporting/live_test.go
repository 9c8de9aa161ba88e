package reporting

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// settled is what stays on a terminal: every status line is written with wrapping off and erased before anything else.
func settled(sent string) string {
	return regexp.MustCompile(`\x1b\[\?7l[^\n]*?\x1b\[\?7h\r\x1b\[K`).ReplaceAllString(sent, "")
}

// playRun plays a run with every type of event on the bubble's clock. after is called after each.
func playRun(l *Live, after func()) {
	last := moment()
	for i, e := range exampleEvents() {
		time.Sleep(e.Time.Sub(last))
		last, e.Time = e.Time, time.Now()
		l.Observe(e)
		after()
		if i%3 == 0 {
			_, _ = io.WriteString(l, "a line of the log\n")
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	for _, color := range []Color{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var sent strings.Builder
			l := NewLive(&sent, color, nil, 0)
			var statuses []string
			playRun(l, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				statuses = append(statuses, l.line)
			})
			l.Close()
			golden(t, fmt.Sprintf("live/color-%t.txt", color), settled(sent.String()))
			golden(t, fmt.Sprintf("live/status-%t.txt", color), strings.Join(statuses, "\n")+"\n")
		})
	}
}

// TestLiveCountsSeconds: the status line is renewed without an event, and only when it has changed.
func TestLiveCountsSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent strings.Builder
		l := NewLive(&sent, false, nil, 0)
		r := head(report.RunRunning, 0, sysctl())
		l.Observe(run.Event{Type: run.EventRunStarted, Time: time.Now(), Report: &r})
		time.Sleep(3*time.Second + time.Millisecond)
		l.Close()
		assert.Equal(t, 4, strings.Count(sent.String(), wrapOff), "at 0, 1, 2 and 3 seconds")
		assert.Contains(t, sent.String(), "0 of 1 document planned, 3s")
		assert.Empty(t, settled(sent.String()))
	})
}

// TestLiveErrorsElsewhere: standard error is not the terminal.
func TestLiveErrorsElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent, errors strings.Builder
		l := NewLive(&sent, true, &errors, 0)
		playRun(l, func() {})
		l.Close()
		assert.NotContains(t, sent.String(), "no domain controller")
		assert.Contains(t, errors.String(), "no domain controller")
		assert.NotContains(t, errors.String(), "\x1b")
	})
}

// TestLiveSaysOnceWhatItWaitsFor: the status line keeps it.
func TestLiveSaysOnceWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	var sent strings.Builder
	l := NewLive(&sent, false, nil, 0)
	d := sysctl()
	for _, text := range []string{"no route", "no route", "no name", "no name", "no route"} {
		l.Observe(run.Event{Type: run.EventRetry, Document: &d, Message: text})
	}
	l.Close()
	assert.Equal(t, 3, strings.Count(sent.String(), "waiting"))
}

// TestLiveWithoutARun: output before a run begins has no status line.
func TestLiveWithoutARun(t *testing.T) {
	t.Parallel()
	var sent strings.Builder
	l := NewLive(&sent, true, nil, 0)
	_, _ = io.WriteString(l, "error\n")
	l.Close()
	assert.Equal(t, "error\n", sent.String())
}

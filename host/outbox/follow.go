package outbox

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/state"
)

// The time from the start of a run to the first report of what it does, and to each further one: most runs have ended by then.
const (
	firstProgress = 10 * time.Second
	nextProgress  = 30 * time.Second
)

// Follow sends the report of a run that is not over, as note gets it, until end is called. It tries each once, and keeps none: the
// report at the end of the run is the one that has to arrive.
func (s Sender) Follow(ctx context.Context, to Destination) (note func(report.Report), end func()) {
	var newest atomic.Pointer[[]byte]
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var sent []byte
		for pause := firstProgress; ; pause = nextProgress {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			text := newest.Load()
			if text == nil || bytes.Equal(*text, sent) {
				continue
			}
			switch answer, _ := Classify(state.Outgoing{Document: to.Document}, s.tell(ctx, to, *text)); answer {
			case Delivered:
				sent = *text
			case Refused, NotWanted:
				return
			}
		}
	}()
	note = func(r report.Report) { // which the run changes later, so that its text is kept
		if _, begun := words.Current(r); !begun || r.Outcome != report.RunRunning {
			return
		}
		if text, err := Trim(r, report.MaxBytes); err == nil {
			newest.Store(&text)
		}
	}
	return note, func() {
		cancel()
		<-ended // then the report at the end of the run gets a larger number
	}
}

// tell sends the report of a run that is not over.
func (s Sender) tell(ctx context.Context, to Destination, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	o, err := s.outgoing(to, text, clock())
	if err != nil {
		return err
	}
	if o.Sequence, err = s.Box.Take(time.Now()); err != nil {
		return err
	}
	return s.send(ctx, o)
}

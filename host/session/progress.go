package session

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/outbox"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// The time from the start of a run to the first report of what it does, and to each further one: most runs have ended by then.
const (
	firstProgress = 10 * time.Second
	nextProgress  = 30 * time.Second
)

// progress is the newest report of a run that applies documents.
type progress struct {
	mutex sync.Mutex
	text  []byte
}

// follow sends the report of a run that is not over, until the function that it returns is called. It tries each once, and keeps none: the
// report at the end of the run is the one that has to arrive.
func (s *Session) follow(ctx context.Context, fleet *launch.Fleet, with *run.Dependencies) (end func()) {
	to, found := s.destination()
	if !s.delivers || !found {
		return func() {}
	}
	var p progress
	record := with.Record
	with.Record = func(r report.Report, details map[string]string) error {
		p.note(r)
		return record(r, details)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var sent []byte
		for pause := firstProgress; wait(ctx, pause); pause = nextProgress {
			text := p.newest()
			if text == nil || bytes.Equal(text, sent) {
				continue
			}
			switch answer, _ := outbox.Classify(state.Outgoing{Document: to.Document}, s.tell(ctx, fleet, to, text)); answer {
			case outbox.Delivered:
				sent = text
			case outbox.Refused, outbox.NotWanted:
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended // then the report at the end of the run gets a larger number
	}
}

// note keeps a report that says which document is applied. The run changes its values later, so that it is kept as text.
func (p *progress) note(r report.Report) {
	if _, begun := words.Current(r); !begun || r.Outcome != report.RunRunning {
		return
	}
	if text, err := outbox.Trim(r, report.MaxBytes); err == nil {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.text = text
	}
}

func (p *progress) newest() []byte {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text
}

// tell sends the report of a run that is not over.
func (s *Session) tell(ctx context.Context, fleet *launch.Fleet, to outbox.Destination, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	o, err := s.outgoing(to, text, clock())
	if err != nil {
		return err
	}
	if o.Sequence, err = state.OutboxIn(s.stateDir).Take(time.Now()); err != nil {
		return err
	}
	return s.send(ctx, fleet, o)
}

// wait returns false if the context ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

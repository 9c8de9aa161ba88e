package reporting

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/visible"
)

// JSON writes each event as one line of JSON. The last one, run-finished, holds the report.
type JSON struct {
	Out io.Writer
}

// jsonEvent is the schema of docs/reference/events.md; a test compares them.
type jsonEvent struct {
	Time       time.Time      `json:"time"`
	Type       run.EventType  `json:"type"`
	Document   *jsonDocument  `json:"document,omitempty"`
	Planned    []jsonChange   `json:"planned,omitempty"`
	Pending    string         `json:"pending,omitempty"`
	Warnings   []string       `json:"warnings,omitempty"`
	Change     *jsonChange    `json:"change,omitempty"`
	Message    string         `json:"message,omitempty"`
	Outcome    report.Outcome `json:"outcome,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	DurationMs int64          `json:"durationMs,omitempty"`
	Errors     []report.Error `json:"errors,omitempty"`
	Report     *report.Report `json:"report,omitempty"`
}

type jsonDocument struct {
	Index    int    `json:"index"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Provider string `json:"provider,omitempty"`
}

type jsonChange struct {
	ID         string         `json:"id"`
	Summary    string         `json:"summary"`
	Diff       string         `json:"diff,omitempty"`
	NeedsLive  bool           `json:"needsLive,omitempty"`
	After      string         `json:"after,omitempty"`
	Reboot     string         `json:"reboot,omitempty"`
	Outcome    report.Outcome `json:"outcome,omitempty"`
	DurationMs int64          `json:"durationMs,omitempty"`
}

// Observe writes an event.
func (j JSON) Observe(e run.Event) {
	out := jsonEvent{Time: e.Time.UTC(), Type: e.Type, Pending: e.Pending, Message: e.Message}
	if d := e.Document; d != nil {
		out.Document = &jsonDocument{Index: d.Index, Kind: d.Kind, Name: d.Name, Provider: d.Provider}
		switch e.Type {
		case run.EventDocumentPlanned:
			out.Warnings = d.Warnings
		case run.EventDocumentFinished:
			out.Outcome, out.Reason, out.DurationMs, out.Errors = d.Outcome, d.Reason, d.DurationMs, e.Errors
		default:
		}
	}
	for _, c := range e.Planned {
		change := planned(c.Change)
		change.After = c.After
		out.Planned = append(out.Planned, change)
	}
	if e.Change != nil {
		c := planned(*e.Change)
		out.Change = &c
	}
	if c := e.Result; c != nil {
		out.Change = &jsonChange{ID: c.ID, Summary: c.Summary, Outcome: c.Outcome, DurationMs: c.DurationMs}
	}
	if e.Report != nil && e.Type == run.EventRunFinished {
		out.Outcome, out.Report = e.Report.Outcome, e.Report
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil { // impossible: all fields are strings and numbers
		return
	}
	_, _ = j.Out.Write(visible.JSON(line.Bytes())) // a closed pipe must not stop a run
}

func planned(c pluginv1.Change) jsonChange {
	out := jsonChange{ID: c.ID, Summary: c.Summary, Diff: c.Diff, NeedsLive: c.NeedsLive}
	if c.Reboot != pluginv1.RebootNone {
		out.Reboot = c.Reboot.String()
	}
	return out
}

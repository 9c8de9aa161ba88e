package sdk_test

import (
	"testing"

	"github.com/machineadm/machineadm/sdk"
)

// activate plans, requires this number of changes, and makes them.
func activate(t *testing.T, m sdk.Machine, a sdk.Activation, want int) error {
	t.Helper()
	changes, err := sdk.Activate(t.Context(), m, a)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != want {
		t.Fatalf("%d changes are planned, want %d", len(changes), want)
	}
	for _, c := range changes {
		if err := c.Do(t.Context(), &recorder{}); err != nil {
			return err
		}
	}
	return nil
}

// recorder is a Progress that records its events.
type recorder struct{ lines []string }

func (r *recorder) Report(message string)      { r.lines = append(r.lines, message) }
func (r *recorder) Warn(field, message string) { r.lines = append(r.lines, field+": "+message) }
func (r *recorder) RequestReboot(b sdk.Reboot) { r.lines = append(r.lines, b.String()) }

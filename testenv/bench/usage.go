// Package bench measures what machineadm costs against a floor that is measured in the same run on the same machine: a
// bare host and plugin of go-plugin (bare), or the programs that do a part of the same work elsewhere. make bench prints
// the table; nothing here fails because of a time.
package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Usage is what one run of a command took: its own and that of all descendants that were waited for.
type Usage struct {
	CPU    time.Duration `json:"cpu"`
	Wall   time.Duration `json:"wall"`
	MaxRSS int64         `json:"maxRSS"` // KiB, of the largest process
	Exit   int           `json:"exit"`
	Output string        `json:"output,omitempty"` // of a command that failed
}

// ParseUsage reads what cmd/measure has written, of a command that had to succeed.
func ParseUsage(data []byte) (Usage, error) {
	var u Usage
	if err := json.Unmarshal(data, &u); err != nil {
		return u, fmt.Errorf("this is no usage: %w: %q", err, data)
	}
	if u.Exit != 0 {
		return u, fmt.Errorf("exit status %d: %s", u.Exit, u.Output)
	}
	if u.CPU <= 0 || u.Wall <= 0 || u.MaxRSS <= 0 {
		return u, fmt.Errorf("nothing was measured: %s", data)
	}
	return u, nil
}

// Median is the middle value, or the mean of the middle two. It is 0 of nothing.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Samples are runs of one command.
type Samples []Usage

// CPU is the median in milliseconds.
func (s Samples) CPU() float64 {
	return s.median(func(u Usage) float64 { return milliseconds(u.CPU) })
}

// Wall is the median in milliseconds.
func (s Samples) Wall() float64 {
	return s.median(func(u Usage) float64 { return milliseconds(u.Wall) })
}

// MaxRSS is the largest, in MiB.
func (s Samples) MaxRSS() float64 {
	var most int64
	for _, u := range s {
		most = max(most, u.MaxRSS)
	}
	return float64(most) / 1024
}

func (s Samples) median(of func(Usage) float64) float64 {
	values := make([]float64, 0, len(s))
	for _, u := range s {
		values = append(values, of(u))
	}
	return Median(values)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// PeakRSS is VmHWM of proc_pid_status(5), in KiB: the most memory that a process has had since its exec.
func PeakRSS(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
				return 0, fmt.Errorf("VmHWM: %w", err)
			}
			return kib, nil
		}
	}
	return 0, errors.New("VmHWM is not in the status")
}

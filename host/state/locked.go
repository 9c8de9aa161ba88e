package state

import (
	"errors"
	"fmt"
	"strings"
)

// ErrLocked means that another run holds the lock.
var ErrLocked = errors.New("another run is in progress")

// Process is a process that holds a lock.
type Process struct {
	PID     int
	Command string
}

// LockedError is ErrLocked with the holders of the lock that are visible to this user.
type LockedError struct {
	Run  int       // the process of the current run; 0 if it is unknown or has ended
	Left []Process // processes that a killed run left
}

// Is makes it ErrLocked.
func (*LockedError) Is(target error) bool { return target == ErrLocked }

// Error returns the run, or the processes that it left.
func (e *LockedError) Error() string {
	switch {
	case len(e.Left) > 0:
		var left []string
		for _, p := range e.Left {
			left = append(left, fmt.Sprintf("%d (%s)", p.PID, p.Command))
		}
		return "processes of a run that was killed are still at work: " + strings.Join(left, ", ")
	case e.Run > 0:
		return fmt.Sprintf("%s (process %d)", ErrLocked, e.Run)
	default:
		return ErrLocked.Error()
	}
}

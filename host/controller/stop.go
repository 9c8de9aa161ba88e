package controller

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stop ends a reconciliation with a condition. It is not repeated: a change of what it names starts the next one.
type stop struct {
	condition string
	status    metav1.ConditionStatus
	reason    string
	message   string
	// again is when to reconcile again without a change; 0 is never.
	again time.Duration
}

func (s *stop) Error() string { return s.reason + ": " + s.message }

// waiting is the end of a reconciliation that waits for something else.
func waiting(condition, reason, format string, args ...any) error {
	return &stop{condition: condition, status: metav1.ConditionUnknown, reason: reason, message: fmt.Sprintf(format, args...)}
}

// invalid is the end of a reconciliation by an input that has to change.
func invalid(condition, reason, format string, args ...any) error {
	return &stop{condition: condition, status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...)}
}

// asStop returns the stop in an error, nil if the error is a fault.
func asStop(err error) *stop {
	var s *stop
	if errors.As(err, &s) {
		return s
	}
	return nil
}

// prefix puts before a condition's message where it comes from.
func prefix(where string, err error) error {
	if s := asStop(err); s != nil {
		prefixed := *s
		prefixed.message = where + ": " + s.message
		return &prefixed
	}
	return err
}

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// steps are the conditions of Ready, in the order in which a reconciliation reaches them.
func steps(config *bootstrap.MachineBootstrapConfig) []string {
	all := []string{bootstrap.ConditionPluginsReady, bootstrap.ConditionDocumentsValid, bootstrap.ConditionCertificatesAvailable}
	// A machine that has its data does without what comes later, such as the removal.
	if conditions.Has(config, bootstrap.ConditionDataStored) && config.Status.DataSecretName == "" {
		all = append(all, bootstrap.ConditionDataStored)
	}
	return append(all, bootstrap.ConditionDataSecretAvailable)
}

// messageLimit is far below the 32,768 characters that the API server accepts: thousands of configs may have the message.
const messageLimit = 4 << 10

func mark(config *bootstrap.MachineBootstrapConfig, condition string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(config, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: shortened(message, messageLimit), ObservedGeneration: config.Generation,
	})
}

func reached(config *bootstrap.MachineBootstrapConfig, condition, reason string) {
	mark(config, condition, metav1.ConditionTrue, reason, "")
}

// conclude sets the condition at which a reconciliation ended, those behind it, and Ready.
func (r *Reconciler) conclude(config *bootstrap.MachineBootstrapConfig, failed error) {
	s := asStop(failed)
	if s == nil && failed != nil {
		s = &stop{
			condition: bootstrap.ConditionDataSecretAvailable, status: metav1.ConditionUnknown, reason: bootstrap.ReasonInternalError,
			message: fault(failed),
		}
	}
	if s != nil && !r.made(config) {
		mark(config, s.condition, s.status, s.reason, s.message)
		behind := false
		for _, step := range steps(config) {
			// One that is not true is left by an earlier reconciliation, and this one did not reach it.
			if behind || step != s.condition && !conditions.IsTrue(config, step) {
				mark(config, step, metav1.ConditionUnknown, bootstrap.ReasonWaiting, "waits for "+s.condition)
			}
			behind = behind || step == s.condition
		}
	}
	summarize(config)
}

// summarize makes Ready repeat the condition at which the last reconciliation ended.
func summarize(config *bootstrap.MachineBootstrapConfig) {
	for _, step := range steps(config) {
		if c := conditions.Get(config, step); c != nil && c.Status != metav1.ConditionTrue && c.Reason != bootstrap.ReasonWaiting {
			mark(config, bootstrap.ConditionReady, c.Status, c.Reason, fmt.Sprintf("%s: %s", step, c.Message))
			return
		}
	}
	if c := conditions.Get(config, bootstrap.ConditionBootstrapSucceeded); c != nil && c.Status == metav1.ConditionFalse {
		mark(config, bootstrap.ConditionReady, c.Status, c.Reason, fmt.Sprintf("%s: %s", c.Type, c.Message))
		return
	}
	reached(config, bootstrap.ConditionReady, bootstrap.ReasonReady)
}

// made says whether the data is there: then nothing that fails later takes it back.
func (*Reconciler) made(config *bootstrap.MachineBootstrapConfig) bool {
	return config.Status.DataSecretName != ""
}

// announce records an event for a transition of a condition. That a condition begins as True is none, but for the data itself, and neither
// is that each config begins without an owner, which comes a moment later, and each machine without a report.
func (r *Reconciler) announce(config *bootstrap.MachineBootstrapConfig, before, after *metav1.Condition) {
	switch {
	case after.Type == bootstrap.ConditionReady, after.Reason == bootstrap.ReasonWaiting, after.Type == clusterv1.PausedCondition && before == nil:
		return
	case before != nil && before.Status == after.Status && before.Reason == after.Reason:
		return
	case before == nil && (after.Reason == bootstrap.ReasonWaitingForOwner || after.Reason == bootstrap.ReasonNoReport):
		return
	case after.Type != bootstrap.ConditionDataSecretAvailable && after.Status == metav1.ConditionTrue &&
		(before == nil || before.Reason == bootstrap.ReasonWaiting):
		return
	}
	level := corev1.EventTypeNormal
	if after.Status == metav1.ConditionFalse && after.Type != clusterv1.PausedCondition {
		level = corev1.EventTypeWarning
	}
	message := after.Type + " is " + string(after.Status)
	if after.Message != "" {
		message += ": " + after.Message
	}
	r.events.record(config, level, after.Reason, message)
}

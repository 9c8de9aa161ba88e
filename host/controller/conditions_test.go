package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// summary is the status and the reason of each condition, in the order of steps, and then of Ready with its message.
func summary(config *bootstrap.MachineBootstrapConfig) (all []string) {
	for _, step := range append(steps(config), bootstrap.ConditionReady) {
		c := find(config.Status.Conditions, step)
		switch {
		case c == nil:
			all = append(all, "-")
		case step == bootstrap.ConditionReady:
			all = append(all, fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
		default:
			all = append(all, fmt.Sprintf("%s %s", c.Status, c.Reason))
		}
	}
	return all
}

func TestConclude(t *testing.T) {
	t.Parallel()
	const wait = "Unknown Waiting"
	all := []string{"True Ready", "True Valid", "True Available", "True Available", "True Ready "}
	for about, c := range map[string]struct {
		before func(*bootstrap.MachineBootstrapConfig)
		failed error
		want   []string
	}{
		"nothing failed": {func(c *bootstrap.MachineBootstrapConfig) { (&work{config: c}).available("data") }, nil, all},
		"a first condition": {
			nil, invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference, "spec.pluginRefs[0]: %s", "wrong"),
			[]string{"False InvalidReference", wait, wait, wait, "False InvalidReference PluginsReady: spec.pluginRefs[0]: wrong"},
		},
		"a condition in the middle": {
			func(c *bootstrap.MachineBootstrapConfig) {
				mark(c, bootstrap.ConditionPluginsReady, metav1.ConditionTrue, bootstrap.ReasonReady, "")
			},
			waiting(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonWaitingForCertificates, "none"),
			[]string{"True Ready", wait, "Unknown WaitingForCertificates", wait, "Unknown WaitingForCertificates CertificatesAvailable: none"},
		},
		"the last before any other": {
			nil, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForOwner, "none"),
			[]string{wait, wait, wait, "Unknown WaitingForOwner", "Unknown WaitingForOwner DataSecretAvailable: none"},
		},
		"one before that was not reached again": {
			func(c *bootstrap.MachineBootstrapConfig) {
				mark(c, bootstrap.ConditionPluginsReady, metav1.ConditionUnknown, bootstrap.ReasonObjectNotFound, "gone")
			},
			waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForOwner, "none"),
			[]string{wait, wait, wait, "Unknown WaitingForOwner", "Unknown WaitingForOwner DataSecretAvailable: none"},
		},
		"a condition is lost again": {
			func(c *bootstrap.MachineBootstrapConfig) {
				mark(c, bootstrap.ConditionPluginsReady, metav1.ConditionTrue, bootstrap.ReasonReady, "")
				mark(c, bootstrap.ConditionDocumentsValid, metav1.ConditionTrue, bootstrap.ReasonValid, "")
				mark(c, bootstrap.ConditionCertificatesAvailable, metav1.ConditionTrue, bootstrap.ReasonNotNeeded, "")
			},
			fmt.Errorf("wrapped: %w", waiting(bootstrap.ConditionPluginsReady, bootstrap.ReasonObjectNotFound, "gone")),
			[]string{"Unknown ObjectNotFound", wait, wait, wait, "Unknown ObjectNotFound PluginsReady: gone"},
		},
		"a fault": {
			nil, errors.New("Post https://c4n4ry: refused"),
			[]string{
				wait, wait, wait, "Unknown InternalError",
				"Unknown InternalError DataSecretAvailable: a request to an API server failed, and is repeated",
			},
		},
		"data that is there stays": {
			func(c *bootstrap.MachineBootstrapConfig) { (&work{config: c}).available("data") },
			invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonKeyNotFound, "gone"), all,
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			config := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			if c.before != nil {
				c.before(config)
			}
			new(Reconciler).conclude(config, c.failed)
			assert.Equal(t, c.want, summary(config))
			for i := range config.Status.Conditions {
				assert.EqualValues(t, 7, config.Status.Conditions[i].ObservedGeneration)
			}
		})
	}
}

// TestSummarize: what only waits behind another condition is not the cause.
func TestSummarize(t *testing.T) {
	t.Parallel()
	config := &bootstrap.MachineBootstrapConfig{}
	mark(config, bootstrap.ConditionPluginsReady, metav1.ConditionUnknown, bootstrap.ReasonWaiting, "")
	mark(config, bootstrap.ConditionInputsUpToDate, metav1.ConditionFalse, bootstrap.ReasonInputsChanged, "changed")
	summarize(config)
	ready := find(config.Status.Conditions, bootstrap.ConditionReady)
	assert.Equal(t, metav1.ConditionTrue, ready.Status, "InputsUpToDate is not part of Ready")
	mark(config, bootstrap.ConditionDocumentsValid, metav1.ConditionFalse, bootstrap.ReasonTooLarge, "large")
	summarize(config)
	assert.Equal(t, "DocumentsValid: large", find(config.Status.Conditions, bootstrap.ConditionReady).Message)
}

// TestLongMessages: the API server refuses a status with a message of more than 32,768 characters.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	config := &bootstrap.MachineBootstrapConfig{}
	new(Reconciler).conclude(config, invalid(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonInvalidDocument, "%s", strings.Repeat("name, ", 10000)))
	ready := find(config.Status.Conditions, bootstrap.ConditionReady).Message
	assert.LessOrEqual(t, len(ready), messageLimit)
	assert.Regexp(t, `^CertificatesAvailable: name, .*name, +\.\.\. and 55968 more bytes$`, ready)
	assert.Equal(t, 1, strings.Count(ready, "more bytes"))
}

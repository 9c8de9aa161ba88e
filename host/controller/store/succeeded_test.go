package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/store"
)

func TestSucceeded(t *testing.T) {
	t.Parallel()
	now := at("2026-11-27T10:00:00Z")
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	fetched := func(d time.Duration) *bootstrap.BootstrapStatus {
		return &bootstrap.BootstrapStatus{FetchedAt: ptr.To(metav1.NewTime(ago(d)))}
	}
	said := func(outcome, code string) *bootstrap.BootstrapStatus {
		return &bootstrap.BootstrapStatus{Sequence: 1, Outcome: outcome, Code: code, Message: "M"}
	}
	lately := func(outcome string, since time.Duration) *bootstrap.BootstrapStatus {
		b := said(outcome, "")
		b.ReportedAt = ptr.To(metav1.NewTime(ago(since)))
		return b
	}
	for name, c := range map[string]struct {
		b       *bootstrap.BootstrapStatus
		m       store.Machine
		status  metav1.ConditionStatus
		reason  string
		message string
		again   time.Duration
	}{
		"not provisioned":        {nil, store.Machine{}, "Unknown", "NoReport", "not provisioned", 0},
		"provisioned":            {nil, store.Machine{Provisioned: ago(time.Minute)}, "Unknown", "NoReport", "has not fetched", 19 * time.Minute},
		"too late":               {nil, store.Machine{Provisioned: ago(20 * time.Minute)}, "False", "NoReport", "in 20m0s", 0},
		"too late, but a node":   {nil, store.Machine{Provisioned: ago(time.Hour), Joined: true}, "Unknown", "NoReport", "it has a node", 0},
		"a node, nothing else":   {nil, store.Machine{Joined: true}, "Unknown", "NoReport", "has not fetched its documents; it has a node", 0},
		"fetched":                {fetched(time.Minute), store.Machine{Provisioned: ago(time.Hour)}, "Unknown", "Running", "fetched its documents at 2026-11-27T09:59:00Z", 19 * time.Minute},
		"fetched, then silent":   {fetched(time.Hour), store.Machine{Provisioned: ago(time.Hour)}, "False", "NoReport", "has not reported in 20m0s", 0},
		"fetched, silent, node":  {fetched(time.Hour), store.Machine{Provisioned: ago(time.Hour), Joined: true}, "Unknown", "Running", "it has a node", 0},
		"succeeded":              {said("Succeeded", ""), store.Machine{}, "True", "Succeeded", "M", 0},
		"running":                {said("Running", ""), store.Machine{}, "Unknown", "Running", "M", 0},
		"running, lately":        {lately("Running", time.Minute), store.Machine{}, "Unknown", "Running", "M", 19 * time.Minute},
		"running, then silent":   {lately("Running", time.Hour), store.Machine{}, "False", "NoReport", "M; the machine has not reported in 20m0s", 0},
		"did not come back":      {lately("RebootRequired", time.Hour), store.Machine{}, "False", "NoReport", "M; the machine has not reported in 20m0s", 0},
		"silent, with a node":    {lately("Running", time.Hour), store.Machine{Joined: true}, "Unknown", "Running", "M", 0},
		"failed, then silent":    {lately("Failed", time.Hour), store.Machine{}, "False", "Failed", "M", 0},
		"reboots":                {said("RebootRequired", "Reboot"), store.Machine{}, "Unknown", "Running", "M", 0},
		"failed":                 {said("Failed", "Precondition"), store.Machine{}, "False", "Precondition", "M", 0},
		"failed, with a node":    {said("Failed", "Internal"), store.Machine{Joined: true}, "False", "Internal", "M", 0},
		"invalid":                {said("Invalid", "Conflict"), store.Machine{}, "False", "Conflict", "M", 0},
		"interrupted":            {said("Interrupted", "Interrupted"), store.Machine{}, "False", "Interrupted", "M", 0},
		"without a code":         {said("Failed", ""), store.Machine{}, "False", "Failed", "M", 0},
		"a code that is no word": {said("Failed", "x: y"), store.Machine{}, "False", "Failed", "M", 0},
		"a code of no release":   {said("Failed", "Canary"), store.Machine{}, "False", "Failed", "M", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, again := store.Succeeded(c.b, c.m, 20*time.Minute, now)
			assert.Equal(t, c.status, got.Status)
			assert.Equal(t, c.reason, got.Reason)
			assert.Contains(t, got.Message, c.message)
			assert.Equal(t, c.again, again)
		})
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	spec := func(expiry, deadline string, disabled bool) *bootstrap.MachineBootstrapStorageSpec {
		return &bootstrap.MachineBootstrapStorageSpec{
			Server: &bootstrap.ServerStorage{}, Expiry: expiry, Report: bootstrap.StorageReport{Deadline: deadline, Disabled: ptr.To(disabled)},
		}
	}
	for name, c := range map[string]struct {
		spec             *bootstrap.MachineBootstrapStorageSpec
		pool             bool
		expiry, deadline time.Duration
		err              string
	}{
		"defaults":     {spec("", "", false), false, 24 * time.Hour, 20 * time.Minute, ""},
		"given":        {spec("2h", "1h30m", false), false, 2 * time.Hour, 90 * time.Minute, ""},
		"no reports":   {spec("", "", true), false, 24 * time.Hour, 0, ""},
		"a pool":       {spec("", "", false), true, 24 * time.Hour, 0, ""},
		"neither":      {&bootstrap.MachineBootstrapStorageSpec{}, false, 0, 0, "either server or source"},
		"both":         {&bootstrap.MachineBootstrapStorageSpec{Server: &bootstrap.ServerStorage{}, Source: &bootstrap.SourceStorage{}}, false, 0, 0, "either server or source"},
		"too short":    {spec("5s", "", false), false, 0, 0, "spec.expiry"},
		"too long":     {spec("", "9999h", false), false, 0, 0, "spec.report.deadline"},
		"an overflow":  {spec("99999999999999999999h", "", false), false, 0, 0, "spec.expiry"},
		"no duration":  {spec("1m1", "", false), false, 0, 0, "spec.expiry"},
		"the opposite": {spec("-1h", "", false), false, 0, 0, "spec.expiry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bearer := store.Bearer([]byte("key"), "ns", "config", "uid")
			terms, err := store.NewTerms(c.spec, c.pool)
			if c.err != "" {
				assert.ErrorContains(t, err, c.err)
				return
			}
			assert.NoError(t, err)
			terms.Served(bearer)
			annotation, err := terms.Annotation()
			assert.NoError(t, err)
			assert.NotContains(t, annotation, bearer)
			read := store.ReadTerms(map[string]string{bootstrap.AnnotationStorage: annotation})
			assert.Equal(t, terms, read)
			assert.Equal(t, c.expiry, time.Duration(read.Expiry))
			assert.Equal(t, c.deadline, time.Duration(read.Deadline))
			assert.Equal(t, c.deadline > 0, read.Reports())
			assert.True(t, read.Admits(bearer))
			for _, other := range []string{
				"", bearer + "=", bearer[1:], store.Bearer([]byte("key"), "ns", "config", "uid2"), store.Bearer([]byte("kez"), "ns", "config", "uid"),
				store.Bearer([]byte("key"), "n", "sconfig", "uid"), read.Digest,
			} {
				assert.False(t, read.Admits(other), other)
			}
		})
	}
	for _, wrong := range []string{"", "{}", "[]", `{"bearerSHA256": "ab"}`, `{"bearerSHA256": 1}`, `{"bearerSHA256": "` + string(make([]byte, 64)) + `"}`, `{"expiry":"x"}`} {
		assert.Nil(t, store.ReadTerms(map[string]string{bootstrap.AnnotationStorage: wrong}), wrong)
	}
	assert.Nil(t, store.ReadTerms(nil))
}

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestOrphaned: the object of a Secret is removed when the Secret is deleted, and not when clusterctl has moved it: the other management
// cluster has the same object.
func TestOrphaned(t *testing.T) {
	t.Parallel()
	deleted := metav1.NewTime(time.Unix(1, 0))
	ours := []string{"another", bootstrap.FinalizerStorage}
	for name, c := range map[string]struct {
		of   metav1.ObjectMeta
		want bool
	}{
		"deleted":                {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: ours}, true},
		"moved":                  {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: ours, Annotations: map[string]string{DeleteForMove: ""}}, false},
		"there":                  {metav1.ObjectMeta{Finalizers: ours}, false},
		"deleted without object": {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{"another"}}, false},
	} {
		assert.Equal(t, c.want, orphaned(&c.of), name)
	}
}

// TestSteps: DataStored is a step of the way to the data, and none of what comes later.
func TestSteps(t *testing.T) {
	t.Parallel()
	config := &bootstrap.MachineBootstrapConfig{}
	assert.NotContains(t, steps(config), bootstrap.ConditionDataStored)
	mark(config, bootstrap.ConditionDataStored, metav1.ConditionFalse, "Precondition", "the store answers 403")
	all := steps(config)
	assert.Equal(t, []string{bootstrap.ConditionDataStored, bootstrap.ConditionDataSecretAvailable}, all[len(all)-2:])
	summarize(config)
	assert.Equal(t, "DataStored: the store answers 403", find(config.Status.Conditions, bootstrap.ConditionReady).Message)
	config.Status.DataSecretName = "data"
	summarize(config)
	assert.Equal(t, metav1.ConditionTrue, find(config.Status.Conditions, bootstrap.ConditionReady).Status)
}

package cluster

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// objects are the parts of lists of nodes and of pods that AwaitReady reads.
type objects struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Phase      string `json:"phase"`
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// ready counts the objects that are, and names the others.
func (o objects) ready() (ready int, others []string) {
	for _, i := range o.Items {
		met := false
		for _, c := range i.Status.Conditions {
			met = met || c.Type == "Ready" && c.Status == "True"
		}
		if met {
			ready++
		} else {
			others = append(others, i.Metadata.Name+" "+i.Status.Phase)
		}
	}
	return ready, others
}

// AwaitReady waits until so many objects of a list, such as /api/v1/nodes, are ready, and no more are there.
func AwaitReady(t testing.TB, control *nodes.Node, path string, want int) {
	t.Helper()
	awaited(t, path, func() (bool, string) {
		var o objects
		if err := Get(t, control, path, &o); err != nil {
			return false, err.Error()
		}
		got, others := o.ready()
		return got == want && len(others) == 0, strings.Join(others, ", ")
	})
}

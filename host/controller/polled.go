package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/report"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/store"
)

// The pauses between two looks for a report: the first, which is also that after a new one, and the longest.
const (
	shortLook = 5 * time.Second
	longLook  = time.Minute
)

// poll reads the report of a provisioned machine from its store, until the machine has succeeded. Why it cannot is a message of DataStored.
func (w *work) poll(ctx context.Context, data *metav1.PartialObjectMetadata) ctrl.Result {
	terms, o := objectOf(data)
	if o == nil {
		return ctrl.Result{}
	}
	if !w.expects(terms) || terms.Expired(data.CreationTimestamp.Time, w.r.Now()) {
		return ctrl.Result{}
	}
	p := w.r.paces.of(client.ObjectKeyFromObject(w.config))
	if left := p.look.Sub(w.r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}
	}
	p.interval = min(max(2*p.interval, shortLook), longLook)
	body, err := w.fetchReport(ctx, o)
	if err == nil {
		var news bool
		if news, err = w.reported(body); news {
			p.interval = shortLook
		}
	}
	if err != nil && !noReport(err) {
		message := "the report of the machine cannot be read, which is tried again: "
		if s := asStop(err); s != nil {
			message += s.message
		} else {
			message += fault(err)
		}
		w.stored.Message = message
	}
	p.look = w.r.Now().Add(p.interval)
	return ctrl.Result{RequeueAfter: p.interval}
}

// expects says whether a report of the machine is still to come.
func (w *work) expects(terms *store.Terms) bool {
	machine, ok := w.owner.object.(*clusterv1.Machine)
	if !ok || !terms.Reports() || terms.Removed != "" || !machine.DeletionTimestamp.IsZero() || w.succeeded() {
		return false
	}
	return machine.Status.NodeRef.IsDefined() || conditions.IsTrue(machine, clusterv1.InfrastructureReadyCondition)
}

// succeeded says whether the last report is one of success, after which no other follows.
func (w *work) succeeded() bool {
	b := w.config.Status.Bootstrap
	return b != nil && b.Outcome == string(report.RunSucceeded)
}

// reported takes over a report, and says whether it is another one than that before. An object store keeps the newest.
func (w *work) reported(body []byte) (bool, error) {
	was := w.config.Status.Bootstrap
	if was == nil {
		was = &bootstrap.BootstrapStatus{}
	}
	next, err := store.Reported(body, uint64(was.Sequence)+1, w.r.Now()) //nolint:gosec // it is not negative
	if err != nil {
		return false, &stop{message: err.Error()}
	}
	same := next.DeepCopy()
	same.Sequence, same.ReportedAt, same.FetchedAt = was.Sequence, was.ReportedAt, was.FetchedAt
	if equality.Semantic.DeepEqual(same, was) {
		return false, nil
	}
	w.config.Status.Bootstrap = next
	return true, nil
}

// over says whether the machine needs its documents no more, or else when to look again. Those in a store stay until the last report has
// come: both are removed together.
func (w *work) over(terms *store.Terms) (bool, time.Duration) {
	if !w.owner.joined || !w.expects(terms) || terms.Object == nil {
		return w.owner.joined, 0
	}
	p := w.r.paces.of(client.ObjectKeyFromObject(w.config))
	if p.joined.IsZero() {
		p.joined = w.r.Now()
	}
	left := time.Duration(terms.Deadline) - w.r.Now().Sub(p.joined)
	return left <= 0, left
}

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/store"
)

// keep looks after data that is there, its documents, and what the machine says of them.
func (w *work) keep(ctx context.Context, data *metav1.PartialObjectMetadata) (ctrl.Result, error) {
	if store.ReadTerms(data.Annotations).Remote() {
		w.stored = metav1.Condition{Status: metav1.ConditionTrue, Reason: bootstrap.ReasonStored}
		defer func() {
			mark(w.config, bootstrap.ConditionDataStored, w.stored.Status, w.stored.Reason, w.stored.Message)
		}()
	}
	polled := w.poll(ctx, data)
	reported := w.report(data) // first: the cluster that the machine was to join may never answer
	next, err := w.keepData(ctx, data)
	if err != nil {
		return next, err
	}
	renewal, err := w.keepRemote(ctx, data)
	if err != nil {
		return next, err
	}
	removal, err := w.remove(ctx, data)
	return sooner(sooner(sooner(next, removal), sooner(reported, polled)), renewal), err
}

// keepData looks after data that is there: its token lives until the machine has joined, a pool gets new data when an input changes,
// and the status says what has changed.
func (w *work) keepData(ctx context.Context, data *metav1.PartialObjectMetadata) (ctrl.Result, error) {
	changed, err := w.changed(ctx, data)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := w.adopt(data, changed); err != nil {
		w.none()
		return ctrl.Result{}, err
	}
	w.available(data.Name)
	owner := *metav1.NewControllerRef(w.config, bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapConfig))
	if err := w.r.own(ctx, data, owner); err != nil {
		return ctrl.Result{}, err
	}
	if w.owner.controlPlane {
		if err := w.free(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	epoch, _ := strconv.Atoi(data.Annotations[bootstrap.AnnotationTokenEpoch]) // 0 without a token of ours
	if w.owner.pool() && !w.owner.joined {
		return w.keepPool(ctx, epoch, changed)
	}
	if len(changed) > 0 {
		w.outdated("changed since the data was made: " + strings.Join(changed, ", ") + "; the machine keeps its data: roll out a new template to replace it")
	}
	identified := w.identify(ctx, data)
	if epoch == 0 {
		return sooner(w.unregistered(data), identified), nil
	}
	if w.owner.joined {
		w.r.looks.drop(client.ObjectKeyFromObject(w.config))
		return ctrl.Result{}, w.withdraw(ctx, epoch)
	}
	if age := w.r.Now().Sub(data.CreationTimestamp.Time); age > tokenLife {
		w.say("the bootstrap token is withdrawn after %s without a node: replace the Machine", tokenLife)
		return ctrl.Result{}, w.withdraw(ctx, epoch)
	}
	next, err := w.publish(ctx, epoch)
	return sooner(next, identified), err
}

// nodeLook is how often Cluster API is made to look for the node of a first control plane.
const nodeLook = 30 * time.Second

// unregistered says that the first control plane of a Cluster without a control plane provider has no node yet, and for how long. Cluster
// API has no watch of nodes before there is one. It looks when the Machine or its config changes, which this does, or ten minutes later.
func (w *work) unregistered(data *metav1.PartialObjectMetadata) ctrl.Result {
	age := w.r.Now().Sub(data.CreationTimestamp.Time)
	if !w.owner.controlPlane || w.owner.joined || w.cluster.Spec.ControlPlaneRef.IsDefined() || Initialized(w.cluster) || age > tokenLife {
		return ctrl.Result{}
	}
	if passed := age.Truncate(nodeLook); passed > 0 {
		w.say("the Machine has no node %s after its data was made: run machineadm status on it; if its node is Ready, the node has no provider ID, or another one than the Machine", passed)
	}
	return ctrl.Result{RequeueAfter: nodeLook - age%nodeLook}
}

// free gives the init lock back once the control plane is initialized.
func (w *work) free(ctx context.Context) error {
	if !Initialized(w.cluster) {
		return nil
	}
	lock, err := w.r.metadata(ctx, "ConfigMap", client.ObjectKey{Namespace: w.cluster.Namespace, Name: lockName(w.cluster)})
	if err != nil || lock == nil {
		return err
	}
	return w.r.unlock(ctx, w.cluster)
}

// changed reads the inputs again, and says which are not those that the data was made from. An input that is gone or not valid
// any more is a changed one.
func (w *work) changed(ctx context.Context, data *metav1.PartialObjectMetadata) ([]string, error) {
	defer w.reading.release() // before a request to the cluster of the machine
	sources, err := w.sources(ctx)
	if err == nil && w.owner.pool() && slices.ContainsFunc(sources, isNode) {
		err = w.recordFacts(ctx)
	}
	if err == nil && len(w.config.Status.Order) == 0 {
		err = w.restore(ctx, sources)
	}
	s := asStop(err)
	if err != nil && s == nil {
		return nil, err
	}
	names := w.reading.inputs.changed(data.Annotations[bootstrap.AnnotationInputs])
	if s != nil {
		names = append(names, s.message)
	}
	if len(names) == 0 {
		reached(w.config, bootstrap.ConditionInputsUpToDate, bootstrap.ReasonUpToDate)
	}
	return names, nil
}

func (w *work) outdated(message string) {
	mark(w.config, bootstrap.ConditionInputsUpToDate, metav1.ConditionFalse, bootstrap.ReasonInputsChanged, message)
}

// restore makes a status again that a move has lost.
func (w *work) restore(ctx context.Context, sources []source) error {
	documents, err := w.documents(ctx, sources)
	if err != nil {
		return err
	}
	if node, err := nodeDocument(documents); err != nil || node != nil {
		return err
	}
	reached(w.config, bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonNotNeeded)
	return nil
}

// keepPool makes the data of a pool again when an input has changed, or its token has less than half of its life left: its
// machines come at any time.
func (w *work) keepPool(ctx context.Context, epoch int, changed []string) (ctrl.Result, error) {
	if len(changed) > 0 {
		w.outdated("changed since the data was made: " + strings.Join(changed, ", ") + "; the data is made again")
	}
	next, rotate, err := w.rotation(ctx, epoch)
	if err != nil || len(changed) == 0 && !rotate {
		return next, err
	}
	following := max(epoch, 1)
	if rotate {
		following++
	}
	made, next, err := w.renderWithToken(ctx, following)
	if s := asStop(err); s != nil {
		return w.keepOld(ctx, epoch, s)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	annotations, err := w.annotations(made)
	if err != nil {
		return ctrl.Result{}, err
	}
	secret := &corev1.Secret{}
	if err := w.r.Live.Get(ctx, w.dataKey(), secret); err != nil {
		return ctrl.Result{}, fmt.Errorf("get the Secret with the data: %w", err)
	}
	before := secret.DeepCopy()
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	delete(secret.Annotations, bootstrap.AnnotationTokenEpoch)
	delete(secret.Annotations, bootstrap.AnnotationStorage)
	maps.Copy(secret.Annotations, annotations)
	secret.Data = made.values()
	if err := w.r.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, fmt.Errorf("replace the data of the pool: %w", err)
	}
	reached(w.config, bootstrap.ConditionInputsUpToDate, bootstrap.ReasonUpToDate)
	return next, nil
}

// keepOld keeps the data of a pool, and its token valid, while no other data can be made.
func (w *work) keepOld(ctx context.Context, epoch int, s *stop) (ctrl.Result, error) {
	w.outdated("the pool keeps its data until it can be made again: " + s.message)
	next, err := w.publish(ctx, epoch)
	if s.again > 0 && (next.RequeueAfter == 0 || s.again < next.RequeueAfter) {
		next.RequeueAfter = s.again
	}
	return next, err
}

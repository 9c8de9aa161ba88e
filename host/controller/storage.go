package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/store"
)

// storage reads the storage of the config, and makes it an input; nil if it has none, and empty if it is one of others.
func (rd *reading) storage(ctx context.Context) (*bootstrap.MachineBootstrapStorageSpec, error) {
	ref := rd.config.Spec.StorageRef
	if ref == nil {
		return nil, nil //nolint:nilnil // a config without a storage is no error
	}
	if ref.APIGroup != bootstrap.Group { // its controller reads it
		return &bootstrap.MachineBootstrapStorageSpec{}, nil
	}
	if ref.Kind != bootstrap.KindMachineBootstrapStorage {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidReference, "%s: must be a %s or of another API group, and not %s of %s",
			storageField, bootstrap.KindMachineBootstrapStorage, ref.Kind, ref.APIGroup)
	}
	// It is not made part of the cluster: clusterctl moves it by a label of its kind, and it outlives the last Cluster that uses it.
	object, err := rd.read(ctx, storageField, &bootstrap.PluginReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name})
	if err != nil {
		return nil, err
	}
	var found bootstrap.MachineBootstrapStorage
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	spec, err := json.Marshal(found.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode the spec of the storage: %w", err)
	}
	rd.inputs.add(input{schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, client.ObjectKeyFromObject(object)}, spec)
	return &found.Spec, nil
}

// elsewhere takes documents that have a storage out of the data. It returns what the machine starts with, which for remote documents is known
// only when they are stored, the stream that is kept elsewhere, and on which terms.
func (w *work) elsewhere(documents []emit.Document) (start []emit.Document, stream []byte, terms *store.Terms, err error) {
	if w.storage == nil || w.storage.Server != nil {
		conditions.Delete(w.config, bootstrap.ConditionDataStored)
	}
	if w.storage == nil {
		return documents, nil, nil, nil
	}
	if w.config.Spec.Format.Type == bootstrap.FormatTalos {
		return nil, nil, nil, w.unusable("the format talos has no storage: remove the reference")
	}
	ref := w.config.Spec.StorageRef
	if ref.APIGroup != bootstrap.Group {
		terms = store.NewClaimTerms(*ref)
	} else if terms, err = store.NewTerms(w.storage, w.owner.pool()); err != nil {
		return nil, nil, nil, w.unusable("%s %s: %s", ref.Kind, ref.Name, err)
	}
	// A stream from elsewhere names no destination of the report.
	isTarget := func(d emit.Document) bool {
		return d.APIVersion == contract.APIVersion && d.Kind == contract.KindReportTarget
	}
	targets := slices.DeleteFunc(slices.Clone(documents), func(d emit.Document) bool { return !isTarget(d) })
	switch {
	case len(targets) > 0 && terms.Reports():
		return nil, nil, nil, w.unusable("the report comes back by the storage, but the config has %s/%s, too: remove the document, or set report.disabled of the storage",
			contract.KindReportTarget, targets[0].Metadata.Name)
	case len(targets) > 0 && w.storage.Server == nil:
		return nil, nil, nil, w.unusable("documents in %s %s have no %s/%s: remove it", ref.Kind, ref.Name, contract.KindReportTarget, targets[0].Metadata.Name)
	}
	stream, err = emit.Stream(slices.DeleteFunc(slices.Clone(documents), isTarget))
	if err != nil {
		return nil, nil, nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidDocument, "%s", err)
	}
	if w.storage.Server == nil {
		return nil, stream, terms, w.remote(stream, terms)
	}
	reference, err := w.served(stream, terms)
	return append(targets, reference), stream, terms, err
}

// unusable says why the storage cannot have the documents of the config.
func (w *work) unusable(format string, args ...any) error {
	return invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidStorage, "%s: "+format, append([]any{storageField}, args...)...)
}

// remote has a claim, or an object of the storage, store the documents.
func (w *work) remote(stream []byte, terms *store.Terms) error {
	if w.owner.pool() {
		return w.unusable("a MachinePool has no object store, because its machines come at any time: use a storage with server")
	}
	if terms.Claim != nil {
		terms.Claim.For(stream)
		return nil
	}
	terms.Object = store.NewObject(w.config.Spec.StorageRef.Name, w.storage.Source, w.key, w.config.Namespace, w.config.Name, string(w.config.UID))
	return nil
}

// served has the endpoint serve the documents.
func (w *work) served(stream []byte, terms *store.Terms) (emit.Document, error) {
	if w.r.Endpoint == nil {
		return emit.Document{}, w.unusable("the manager serves no documents: start it with --server-address and --server-url, or remove the reference")
	}
	bearer := store.Bearer(w.key, w.config.Namespace, w.config.Name, string(w.config.UID))
	terms.Served(bearer)
	endpoint := w.r.Endpoint()
	return endpoint.Reference(w.config.Namespace, w.config.Name, bearer, stream, terms.Reports()) //nolint:wrapcheck // it says what
}

// remove takes documents out of their Secret, and of their store, that no machine fetches any more.
func (w *work) remove(ctx context.Context, data *metav1.PartialObjectMetadata) (ctrl.Result, error) {
	terms := store.ReadTerms(data.Annotations)
	if terms == nil || terms.Removed != "" || w.owner.pool() {
		return ctrl.Result{}, nil
	}
	left := time.Duration(terms.Expiry) - w.r.Now().Sub(data.CreationTimestamp.Time)
	switch over, wait := w.over(terms); {
	case over:
		terms.Removed = "the machine has joined"
	case left <= 0:
		terms.Removed = "expired"
	default:
		return sooner(ctrl.Result{RequeueAfter: left}, ctrl.Result{RequeueAfter: wait}), nil
	}
	if terms.Remote() {
		if err := w.removeRemote(ctx, terms); err != nil {
			return w.said(ctrl.Result{}, err)
		}
		w.stored = metav1.Condition{Status: metav1.ConditionTrue, Reason: bootstrap.ReasonRemoved, Message: terms.Removed}
	}
	annotation, err := terms.Annotation()
	if err != nil {
		return ctrl.Result{}, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": data.ResourceVersion, "annotations": map[string]string{bootstrap.AnnotationStorage: annotation}},
		"data":     map[string]any{documentsKey: nil},
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("encode a patch: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: data.Namespace, Name: data.Name}}
	err = w.r.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch))
	// A conflict is a change of the Secret, which starts the next reconciliation.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return ctrl.Result{}, fmt.Errorf("remove the documents from Secret %s: %w", data.Name, err)
	}
	return ctrl.Result{}, nil
}

// report marks what the machine says of its bootstrap, and says when that may change without a report.
func (w *work) report(data *metav1.PartialObjectMetadata) ctrl.Result {
	return ctrl.Result{RequeueAfter: w.r.succeeded(w.config, w.owner, store.ReadTerms(data.Annotations))}
}

func (r *Reconciler) succeeded(config *bootstrap.MachineBootstrapConfig, o *owner, terms *store.Terms) time.Duration {
	machine, ok := o.object.(*clusterv1.Machine)
	if !ok || terms == nil || !terms.Reports() {
		conditions.Delete(config, bootstrap.ConditionBootstrapSucceeded)
		return 0
	}
	of := store.Machine{Joined: o.joined, Unseen: terms.Object != nil}
	if c := conditions.Get(machine, clusterv1.InfrastructureReadyCondition); c != nil && c.Status == metav1.ConditionTrue {
		of.Provisioned = c.LastTransitionTime.Time
	}
	c, again := store.Succeeded(config.Status.Bootstrap, of, time.Duration(terms.Deadline), r.Now())
	mark(config, bootstrap.ConditionBootstrapSucceeded, c.Status, c.Reason, c.Message)
	return again
}

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/store"
)

// claim returns the claim of the config when the controller of the storage has fulfilled it. Without a claim it makes one, and waits.
func (w *work) claim(ctx context.Context, data string, of *store.Claim) (*bootstrap.MachineBootstrapDataClaim, error) {
	claim, want := &bootstrap.MachineBootstrapDataClaim{}, of.Spec(data)
	err := w.r.Client.Get(ctx, client.ObjectKeyFromObject(w.config), claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil, w.newClaim(ctx, want)
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", bootstrap.KindMachineBootstrapDataClaim, w.config.Name, err)
	case !metav1.IsControlledBy(claim, w.config):
		return nil, w.unclaimed(metav1.ConditionFalse, "belongs to something else: delete it, or give the config another name")
	case !claim.DeletionTimestamp.IsZero():
		return nil, w.unclaimed(metav1.ConditionUnknown, "is being deleted, for which it waits for the controller of %s %s", of.Storage.Kind, of.Storage.Name)
	case claim.Spec != want: // the data is made again
		if err := w.unclaim(ctx); err != nil {
			return nil, err
		}
		return nil, w.unclaimed(metav1.ConditionUnknown, "belongs to earlier data, and is deleted")
	case claim.Status.ObservedGeneration == 0:
		return nil, w.fulfilling(want)
	}
	reported := status{ObservedGeneration: claim.Status.ObservedGeneration, Conditions: claim.Status.Conditions, SecretName: claim.Status.SecretName}
	if message := reported.waits(claim.Generation); message != "" {
		return nil, w.unclaimed(metav1.ConditionUnknown, "%s: look at the controller of %s %s", message, of.Storage.Kind, of.Storage.Name)
	}
	return claim, checkName(bootstrap.ConditionDataStored, bootstrap.KindMachineBootstrapDataClaim+" "+claim.Name+": status.secretName", claim.Status.SecretName)
}

// unclaimed is the end of a reconciliation by the claim of the config.
func (w *work) unclaimed(is metav1.ConditionStatus, format string, args ...any) error {
	reason := bootstrap.ReasonClaimNotReady
	if is == metav1.ConditionFalse {
		reason = bootstrap.ReasonInvalidClaim
	}
	message := bootstrap.KindMachineBootstrapDataClaim + " " + w.config.Name + " " + fmt.Sprintf(format, args...)
	return &stop{condition: bootstrap.ConditionDataStored, status: is, reason: reason, message: message}
}

// newClaim makes a claim. Its event starts the next reconciliation.
func (w *work) newClaim(ctx context.Context, spec bootstrap.MachineBootstrapDataClaimSpec) error {
	claim := &bootstrap.MachineBootstrapDataClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.config.Namespace, Name: w.config.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: w.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(w.config, bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapConfig)),
			},
		},
		Spec: spec,
	}
	if w.r.WatchFilter != "" {
		claim.Labels[clusterv1.WatchLabel] = w.r.WatchFilter
	}
	if err := w.r.Client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s: %w", bootstrap.KindMachineBootstrapDataClaim, claim.Name, err)
	}
	return w.fulfilling(spec)
}

func (w *work) fulfilling(spec bootstrap.MachineBootstrapDataClaimSpec) error {
	return w.unclaimed(metav1.ConditionUnknown, "waits for the controller of %s %s: if it does not come, check that the controller runs", spec.StorageRef.Kind, spec.StorageRef.Name)
}

// unclaim deletes the claim of the config. The finalizer of its controller keeps it until the documents are removed.
func (w *work) unclaim(ctx context.Context) error {
	claim := &bootstrap.MachineBootstrapDataClaim{}
	err := w.r.Client.Get(ctx, client.ObjectKeyFromObject(w.config), claim)
	if err == nil && metav1.IsControlledBy(claim, w.config) {
		err = w.r.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	}
	if apierrors.IsConflict(err) { // it is another one
		return nil
	}
	return ignoreNotFound("delete "+bootstrap.KindMachineBootstrapDataClaim+" "+w.config.Name, err)
}

// claimed returns the document by which a machine fetches the documents that the controller of the claim has stored. Only the controller of
// the claim may hand it out, in a Secret of the claim, so that it cannot make the manager copy another one.
func (w *work) claimed(ctx context.Context, data *corev1.Secret, terms *store.Terms) (emit.Document, error) {
	claim, err := w.claim(ctx, data.Name, terms.Claim)
	if err != nil {
		return emit.Document{}, err
	}
	of := w.reading.watch(schema.GroupKind{Kind: "Secret"}, claim.Status.SecretName)
	secret := &corev1.Secret{}
	switch err := w.r.Live.Get(ctx, of.ObjectKey, secret); {
	case apierrors.IsNotFound(err):
		return emit.Document{}, w.unclaimed(metav1.ConditionUnknown, "names Secret %s, which does not exist", of.Name)
	case err != nil:
		return emit.Document{}, fmt.Errorf("get Secret %s: %w", of.Name, err)
	case !metav1.IsControlledBy(secret, claim):
		return emit.Document{}, w.unclaimed(metav1.ConditionFalse, "names Secret %s, which it does not control: its controller has to make the claim the controller of the Secret", of.Name)
	}
	reference, problem := handedOut(secret, terms.Claim.SHA256)
	if problem != nil {
		return emit.Document{}, w.unclaimed(metav1.ConditionFalse, "has a result that a machine cannot use: %s", problem)
	}
	terms.Claim.Version = secret.ResourceVersion
	reference.Metadata.Name = w.config.Name
	return *reference, nil
}

// handedOut is the RemoteConfig in the Secret of a claim, with the digest of the documents. Its errors quote no value.
func handedOut(secret *corev1.Secret, sum string) (*emit.Document, error) {
	where := "Secret/" + secret.Name
	documents, err := decoded(where, secret.Data[valueKey])
	if err != nil {
		return nil, err
	}
	d := documents[0]
	if len(documents) > 1 || d.APIVersion != contract.APIVersion || d.Kind != contract.KindRemoteConfig {
		return nil, fmt.Errorf("%s: its key %s must be one %s of %s", where, valueKey, contract.KindRemoteConfig, contract.APIVersion)
	}
	var spec contract.RemoteConfigSpec
	text, _ := d.Spec.(json.RawMessage) // decoded makes no other
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&spec); {
	case err != nil:
		return nil, fmt.Errorf("%s: spec: has a field of another name or type than a %s: see machineadm explain %[2]s", where, contract.KindRemoteConfig) // not %w: it may quote a value
	case spec.Provider == "" || spec.URI == "":
		return nil, fmt.Errorf("%s: spec: must have provider and uri", where)
	case spec.SHA256 != "" && spec.SHA256 != sum:
		return nil, fmt.Errorf("%s: spec.sha256: differs from the digest in the claim: store the documents byte for byte", where)
	}
	spec.SHA256 = sum
	return &emit.Document{Header: contract.Header{APIVersion: contract.APIVersion, Kind: contract.KindRemoteConfig}, Spec: &spec}, nil
}

// renewed says whether the controller of the claim has changed what it hands out.
func (w *work) renewed(ctx context.Context, data string, of *store.Claim) (bool, error) {
	claim, err := w.claim(ctx, data, of)
	if err != nil {
		return false, err
	}
	secret := w.reading.watch(schema.GroupKind{Kind: "Secret"}, claim.Status.SecretName)
	known, err := w.r.metadata(ctx, "Secret", secret.ObjectKey)
	return known == nil || known.ResourceVersion != of.Version, err
}

// Command claims is the controller of a storage of others: it fulfils the MachineBootstrapDataClaims for objects of kind Directory by writing
// the documents into a directory that a web server serves. It needs what machineadm publishes, and the rights of claims.yaml.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

const (
	kind      = "Directory"
	finalizer = "storage.example.com/documents"
	// moved is the annotation of an object that clusterctl move deletes because another management cluster has it.
	moved = "clusterctl.cluster.x-k8s.io/delete-for-move"
)

func group() schema.GroupVersion {
	return schema.GroupVersion{Group: "storage.example.com", Version: "v1"}
}

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.Error(err, "the controller ended")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), bootstrap.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register the kinds: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}, // no Secret is held
	})
	if err != nil {
		return fmt.Errorf("make a manager: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&bootstrap.MachineBootstrapDataClaim{}).Complete(&reconciler{mgr.GetClient()}); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	return mgr.Start(ctx) //nolint:wrapcheck // it says what
}

type reconciler struct{ client.Client }

// directory is the spec of the storage: where the files are, and the URL under which a web server serves them.
type directory struct {
	Path, URL string
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &bootstrap.MachineBootstrapDataClaim{}
	if err := r.Get(ctx, request.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ref := claim.Spec.StorageRef
	if _, leaves := claim.Annotations[moved]; leaves || ref.APIGroup != group().Group || ref.Kind != kind {
		return ctrl.Result{}, nil
	}
	storage := &unstructured.Unstructured{}
	storage.SetGroupVersionKind(group().WithKind(kind))
	if err := r.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: ref.Name}, storage); apierrors.IsNotFound(err) && claim.DeletionTimestamp.IsZero() {
		result := ctrl.Result{RequeueAfter: time.Second} // a controller of more than a sample watches its storages
		return result, r.report(ctx, claim, metav1.ConditionFalse, "NoStorage", kind+" "+ref.Name+" does not exist: create it")
	} else if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("get the storage: %w", err)
	}
	var spec directory
	spec.Path, _, _ = unstructured.NestedString(storage.Object, "spec", "path")
	spec.URL, _, _ = unstructured.NestedString(storage.Object, "spec", "url")
	if !claim.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, claim, spec)
	}
	if controllerutil.AddFinalizer(claim, finalizer) { // before there is anything to remove
		return ctrl.Result{}, r.Update(ctx, claim) //nolint:wrapcheck // it says what
	}
	return ctrl.Result{}, r.store(ctx, claim, spec)
}

// store hands out a name that cannot be guessed, and then writes the documents under it, so that a repetition finds the name.
func (r *reconciler) store(ctx context.Context, claim *bootstrap.MachineBootstrapDataClaim, at directory) error {
	data := &corev1.Secret{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: claim.Spec.SecretName}, data); err != nil {
		return fmt.Errorf("get the documents: %w", err)
	}
	documents := data.Data["documents"]
	if sum := sha256.Sum256(documents); hex.EncodeToString(sum[:]) != claim.Spec.SHA256 {
		return r.report(ctx, claim, metav1.ConditionFalse, "Changed", "the documents differ from the digest in the claim")
	}
	handed, err := r.handOut(ctx, claim, at)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(at.Path, string(handed.Data["name"])), documents, 0o600); err != nil {
		return fmt.Errorf("store the documents: %w", err)
	}
	claim.Status.SecretName = handed.Name
	return r.report(ctx, claim, metav1.ConditionTrue, "Stored", "")
}

// handOut makes the Secret with the RemoteConfig of the machine, once.
func (r *reconciler) handOut(ctx context.Context, claim *bootstrap.MachineBootstrapDataClaim, at directory) (*corev1.Secret, error) {
	handed := secretOf(claim)
	if err := r.Get(ctx, client.ObjectKeyFromObject(handed), handed); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get what is handed out: %w", err)
	} else if err == nil {
		if !metav1.IsControlledBy(handed, claim) {
			return nil, errors.New("Secret " + handed.Name + " belongs to something else")
		}
		return handed, nil
	}
	name := rand.Text()
	value, err := json.Marshal(contract.RemoteConfig{
		Header: contract.Header{APIVersion: contract.APIVersion, Kind: contract.KindRemoteConfig, Metadata: contract.Metadata{Name: claim.Name}},
		Spec:   contract.RemoteConfigSpec{Provider: "http", URI: at.URL + name, Report: &contract.RemoteReport{Disabled: true}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the RemoteConfig: %w", err)
	}
	handed.Data = map[string][]byte{"name": []byte(name), "value": value}
	handed.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(claim, bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapDataClaim)),
	}
	return handed, r.Create(ctx, handed) //nolint:wrapcheck // it says what
}

func secretOf(claim *bootstrap.MachineBootstrapDataClaim) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name + "-directory"}}
}

// remove removes the documents of a claim that is deleted, and lets go of it.
func (r *reconciler) remove(ctx context.Context, claim *bootstrap.MachineBootstrapDataClaim, at directory) error {
	handed := secretOf(claim)
	if err := r.Get(ctx, client.ObjectKeyFromObject(handed), handed); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get what is handed out: %w", err)
	}
	if name := string(handed.Data["name"]); name != "" && metav1.IsControlledBy(handed, claim) {
		if err := os.Remove(filepath.Join(at.Path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the documents: %w", err)
		}
	}
	if controllerutil.RemoveFinalizer(claim, finalizer) {
		return r.Update(ctx, claim) //nolint:wrapcheck // it says what
	}
	return nil
}

// report writes the status of a claim.
func (r *reconciler) report(ctx context.Context, claim *bootstrap.MachineBootstrapDataClaim, is metav1.ConditionStatus, reason, message string) error {
	claim.Status.ObservedGeneration = claim.Generation
	meta.SetStatusCondition(&claim.Status.Conditions, metav1.Condition{
		Type: bootstrap.ConditionReady, Status: is, Reason: reason, Message: message, ObservedGeneration: claim.Generation,
	})
	return r.Status().Update(ctx, claim) //nolint:wrapcheck // it says what
}

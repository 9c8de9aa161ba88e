package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/store"
	"github.com/machineadm/machineadm/host/controller/wrap"
)

// result is what the inputs of a config make.
type result struct {
	data wrap.Data
	// bytes is the size of the documents without the values of Secrets.
	bytes int
	// epoch counts the bootstrap tokens; 0 if the data has none of ours.
	epoch int
	// documents is the stream that is served by the endpoint or stored, and terms are on which terms; nil if it is in the data.
	documents []byte
	terms     *store.Terms
}

// values are what the Secret with the data has.
func (r *result) values() map[string][]byte {
	if r.terms.Remote() { // yet to be stored
		return map[string][]byte{documentsKey: r.documents}
	}
	values := map[string][]byte{valueKey: r.data.Value, formatKey: []byte(r.data.Format)}
	if r.terms != nil {
		values[documentsKey] = r.documents
	}
	return values
}

// make makes the data, once.
func (w *work) make(ctx context.Context) (ctrl.Result, error) {
	began := w.r.Now()
	made, next, err := w.renderWithToken(ctx, 1)
	if err != nil {
		return ctrl.Result{}, err
	}
	if made.terms.Remote() && made.terms.Object != nil {
		if err := w.validate(ctx, made.terms.Object); err != nil {
			return ctrl.Result{}, err
		}
		if made.documents, err = w.encrypt(ctx, made.terms.Object, made.documents); err != nil {
			return ctrl.Result{}, err
		}
	}
	annotations, err := w.annotations(made)
	if err != nil {
		return ctrl.Result{}, err
	}
	warn(w.r.events, w.config, w.reading.left)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.config.Namespace, Name: dataName(w.config.Name), Annotations: annotations,
			Labels: map[string]string{clusterv1.ClusterNameLabel: w.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(w.config, bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapConfig)),
			},
		},
		Type: clusterv1.ClusterSecretType,
		Data: made.values(),
	}
	if made.terms.Remote() && made.terms.Object != nil {
		w.record(secret)
	}
	err = w.r.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		// A manager that ended here before has made it, and the cache does not have it yet: it stays as it is.
		if err := w.r.Live.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return ctrl.Result{}, fmt.Errorf("get the Secret with the data: %w", err)
		}
		if !metav1.IsControlledBy(secret, w.config) { // its event leads to keep
			return ctrl.Result{}, w.foreign(secret)
		}
		err = nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("create the Secret with the data: %w", err)
	}
	w.r.metrics.made(w.config, made.bytes, began, w.r.Now())
	if terms := store.ReadTerms(secret.Annotations); terms.Pending() {
		next, err := w.deliver(ctx, secret, terms)
		if err == nil {
			reached(w.config, bootstrap.ConditionInputsUpToDate, bootstrap.ReasonUpToDate)
		}
		return next, err
	}
	w.available(secret.Name)
	reached(w.config, bootstrap.ConditionInputsUpToDate, bootstrap.ReasonUpToDate)
	w.r.succeeded(w.config, w.owner, made.terms) // when it may change, says the reconciliation that the Secret starts
	return next, nil
}

func (w *work) annotations(made *result) (map[string]string, error) {
	inputs, err := w.reading.inputs.annotation()
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{bootstrap.AnnotationInputs: inputs}
	if made.epoch > 0 {
		annotations[bootstrap.AnnotationTokenEpoch] = strconv.Itoa(made.epoch)
	}
	if made.terms != nil {
		if annotations[bootstrap.AnnotationStorage], err = made.terms.Annotation(); err != nil {
			return nil, err //nolint:wrapcheck // it says what
		}
	}
	return annotations, nil
}

// renderWithToken makes the data, and its token valid. It takes the next epoch of which no other token has the ID.
func (w *work) renderWithToken(ctx context.Context, epoch int) (*result, ctrl.Result, error) {
	for {
		w.reading.inputs = newInputs(w.key)
		made, err := w.render(ctx, epoch)
		if err != nil {
			return nil, ctrl.Result{}, err
		}
		if made.epoch > 0 {
			if err := w.published(ctx); err != nil {
				return nil, ctrl.Result{}, err
			}
		}
		next, err := w.issue(ctx, made.epoch)
		if !errors.Is(err, errTaken) {
			return made, next, err
		}
		epoch++
	}
}

// render makes the data from the inputs, and writes nothing but clones and the init lock.
func (w *work) render(ctx context.Context, epoch int) (*result, error) {
	w.reading.making = true
	defer w.reading.release() // before a request to the cluster of the machine
	sources, err := w.sources(ctx)
	if err != nil {
		return nil, err
	}
	reached(w.config, bootstrap.ConditionPluginsReady, bootstrap.ReasonReady)
	documents, err := w.documents(ctx, sources)
	if err != nil {
		return nil, err
	}
	reached(w.config, bootstrap.ConditionDocumentsValid, bootstrap.ReasonValid)
	role, token, err := w.node(ctx, documents, epoch)
	if err != nil {
		return nil, err
	}
	if !token {
		epoch = 0
	}
	start, stream, terms, err := w.elsewhere(documents)
	if err != nil {
		return nil, err
	}
	data, room := &wrap.Data{}, referenceBytes // the reference to remote documents is known when they are stored
	if !terms.Remote() {
		if data, err = w.wrapped(ctx, start, documents); err != nil {
			return nil, err
		}
		room = len(data.Value)
	}
	if large := (&wrap.TooLargeError{Limit: wrap.MaxSecret}); room+len(stream) > large.Limit {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonTooLarge, "%s", tooLarge(large, documents))
	}
	if role == contract.ControlPlaneInit {
		// Last, so that a machine whose data cannot be made does not keep the lock from another.
		w.reading.watch(schema.GroupKind{Kind: "ConfigMap"}, lockName(w.cluster))
		if err := w.r.lock(ctx, w.cluster, w.owner.object.GetName()); err != nil {
			return nil, err
		}
	}
	return &result{data: *data, bytes: documentBytes(documents), epoch: epoch, documents: stream, terms: terms}, nil
}

// sources reads what the config refers to.
func (w *work) sources(ctx context.Context) ([]source, error) {
	sources, plugins, err := w.reading.sources(ctx)
	if plugins != nil || err == nil {
		w.config.Status.Plugins = plugins
	}
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidDocument,
			"the config has no document: add one to spec.pluginRefs, spec.pluginTemplateRefs or spec.documents")
	}
	if ref := w.config.Spec.Format.TemplateRef; ref != nil {
		if err := checkName(bootstrap.ConditionDocumentsValid, templateField+".name", ref.Name); err != nil {
			return nil, err
		}
		if err := w.reading.digestOf(ctx, bootstrap.ConditionDocumentsValid, ref.Kind, ref.Name, templateKey(ref)); err != nil {
			return nil, prefix(templateField, err)
		}
	}
	if w.storage, err = w.reading.storage(ctx); err != nil {
		return nil, err
	}
	if w.storage != nil && w.owner.pool() && w.r.Endpoint != nil { // later machines get the address and the authority that the endpoint has then
		endpoint := w.r.Endpoint()
		w.reading.inputs.add(input{GroupKind: schema.GroupKind{Kind: "Endpoint"}, ObjectKey: client.ObjectKey{Name: endpoint.URL}}, endpoint.Trust)
	}
	return sources, nil
}

// documents makes documents of the sources, and puts them in order.
func (w *work) documents(ctx context.Context, sources []source) ([]emit.Document, error) {
	documents, err := w.reading.documents(ctx, sources)
	if err != nil {
		return nil, err
	}
	ordered, err := emit.Order(documents)
	if err != nil {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidOrder, "%s", err)
	}
	w.config.Status.Order = make([]string, len(ordered))
	for i := range ordered {
		w.config.Status.Order[i] = ordered[i].Kind + "/" + ordered[i].Metadata.Name
	}
	return ordered, nil
}

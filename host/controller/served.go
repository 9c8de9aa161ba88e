package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/serve"
	"github.com/machineadm/machineadm/host/controller/store"
)

// Served is what the endpoint of the manager serves. Every replica has one. A request without the right token costs no request to the API server.
type Served struct {
	// Reconciler has the clock, and announces transitions of conditions.
	Reconciler *Reconciler
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Log gets the errors after which a machine has to ask again. Its answer does not have them.
	Log logr.Logger
}

// failed logs an error that is not the answer to a machine, and returns it.
func (s *Served) failed(of types.NamespacedName, what string, err error) error {
	if err != nil && !errors.Is(err, serve.ErrDenied) && !errors.Is(err, serve.ErrOld) && !errors.Is(err, context.Canceled) {
		s.Log.Error(err, what, "MachineBootstrapConfig", of)
	}
	return err
}

// machine is what a token admits to.
type machine struct {
	config *bootstrap.MachineBootstrapConfig
	owner  *owner
	terms  *store.Terms
	data   *metav1.PartialObjectMetadata
}

// Data returns the documents of a machine that has not joined.
func (s *Served) Data(ctx context.Context, of types.NamespacedName, bearer string) ([]byte, error) {
	documents, err := s.data(ctx, of, bearer)
	return documents, s.failed(of, "cannot serve documents", err)
}

func (s *Served) data(ctx context.Context, of types.NamespacedName, bearer string) ([]byte, error) {
	m, err := s.admit(ctx, of, bearer)
	if err != nil {
		return nil, err
	}
	if m.terms.Removed != "" || m.owner.joined || !m.owner.pool() && m.terms.Expired(m.data.CreationTimestamp.Time, s.Reconciler.Now()) {
		return nil, serve.ErrDenied
	}
	var secret corev1.Secret
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(m.data), &secret); apierrors.IsNotFound(err) {
		return nil, serve.ErrDenied
	} else if err != nil {
		return nil, fmt.Errorf("get the documents of %s: %w", of, err)
	}
	// The cache may be older: the annotation belongs to the documents that the answer has.
	terms := store.ReadTerms(secret.Annotations)
	documents, ok := secret.Data[documentsKey]
	if secret.UID != m.data.UID || terms == nil || !terms.Admits(bearer) || !ok {
		return nil, serve.ErrDenied
	}
	s.fetched(ctx, m)
	return documents, nil
}

// admit finds the machine that a token is for. All that is refused is refused alike.
func (s *Served) admit(ctx context.Context, of types.NamespacedName, bearer string) (*machine, error) {
	m := &machine{config: &bootstrap.MachineBootstrapConfig{}, data: &metav1.PartialObjectMetadata{}}
	m.data.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: of.Namespace, Name: dataName(of.Name)}
	if err := s.Client.Get(ctx, key, m.data); err != nil {
		return nil, denied(err)
	}
	m.terms = store.ReadTerms(m.data.Annotations)
	if m.terms == nil || !m.terms.Admits(bearer) {
		return nil, serve.ErrDenied
	}
	if err := s.Client.Get(ctx, of, m.config); err != nil {
		return nil, denied(err)
	}
	if !metav1.IsControlledBy(m.data, m.config) || s.Reconciler.WatchFilter != "" && m.config.Labels[clusterv1.WatchLabel] != s.Reconciler.WatchFilter {
		return nil, serve.ErrDenied
	}
	var err error
	if m.owner, err = findOwner(ctx, s.Client, m.config); err != nil {
		return nil, err
	}
	if m.owner == nil {
		return nil, serve.ErrDenied
	}
	return m, nil
}

func denied(err error) error {
	if apierrors.IsNotFound(err) {
		return serve.ErrDenied
	}
	return err
}

// fetched records when a machine first fetched its documents. It gets them although that cannot be written.
func (s *Served) fetched(ctx context.Context, m *machine) {
	if b := m.config.Status.Bootstrap; m.owner.pool() || b != nil && b.FetchedAt != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	now := ptr.To(metav1.NewTime(s.Reconciler.Now()))
	_ = s.write(ctx, m, func(b *bootstrap.BootstrapStatus) (*bootstrap.BootstrapStatus, error) { // it is for people, and the report says more
		next := b.DeepCopy()
		if next == nil {
			next = &bootstrap.BootstrapStatus{}
		}
		next.FetchedAt = cmp.Or(next.FetchedAt, now)
		return next, nil
	})
}

// Report keeps the report of a machine in the status of its config, if it is newer than the one there.
func (s *Served) Report(ctx context.Context, of types.NamespacedName, bearer string, sequence uint64, body []byte) error {
	m, err := s.reporter(ctx, of, bearer)
	if err != nil {
		return err
	}
	next, err := store.Reported(body, sequence, s.Reconciler.Now())
	if bad := (*store.InvalidReportError)(nil); errors.As(err, &bad) {
		return &serve.InvalidError{Problem: bad.Error()}
	} else if err != nil {
		return err
	}
	return s.failed(of, "cannot keep a report", s.write(ctx, m, func(b *bootstrap.BootstrapStatus) (*bootstrap.BootstrapStatus, error) {
		if b == nil {
			return next, nil
		}
		if b.Sequence >= next.Sequence {
			return nil, serve.ErrOld
		}
		next.FetchedAt = b.FetchedAt
		return next, nil
	}))
}

// tries bounds how often a status is written again after a conflict with another writer.
const tries = 5

// write replaces what a machine has reported together with the conditions that follow from it, so that each report is one change of the
// config. It begins again when another writer of the status was faster.
func (s *Served) write(ctx context.Context, m *machine, change func(*bootstrap.BootstrapStatus) (*bootstrap.BootstrapStatus, error)) error {
	var err error
	for range tries {
		before := m.config.DeepCopy()
		if m.config.Status.Bootstrap, err = change(before.Status.Bootstrap); err != nil {
			return err
		}
		// The conditions of a config that is paused, or has changed, are left to the reconciler.
		if m.config.Status.ObservedGeneration == m.config.Generation && !conditions.IsTrue(m.config, clusterv1.PausedCondition) {
			s.Reconciler.succeeded(m.config, m.owner, m.terms)
			summarize(m.config)
		}
		if err = s.Reconciler.write(ctx, s.Client, before, m.config); !apierrors.IsConflict(err) {
			return err
		}
		latest := &bootstrap.MachineBootstrapConfig{} // an answer leaves fields that it does not have as they are
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(before), latest); err != nil {
			return denied(err)
		} else if latest.UID != before.UID {
			return serve.ErrDenied
		}
		m.config = latest
	}
	return err
}

// Authorize says whether a token belongs to a machine whose report is expected.
func (s *Served) Authorize(ctx context.Context, of types.NamespacedName, bearer string) error {
	_, err := s.reporter(ctx, of, bearer)
	return s.failed(of, "cannot authorize a report", err)
}

func (s *Served) reporter(ctx context.Context, of types.NamespacedName, bearer string) (*machine, error) {
	m, err := s.admit(ctx, of, bearer)
	if err == nil && (m.owner.pool() || !m.terms.Reports()) {
		err = serve.ErrDenied
	}
	return m, err
}

package controller

import (
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/serve"
	"github.com/machineadm/machineadm/host/controller/store"
)

// Served is what the endpoint of the manager serves. Every replica has one. A request without the right token costs no request to the API server.
type Served struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// WatchFilter is that of the Reconciler.
	WatchFilter string
	// Now is the clock.
	Now func() time.Time
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
	if m.terms.Removed != "" || m.owner.joined || !m.owner.pool() && m.terms.Expired(m.data.CreationTimestamp.Time, s.Now()) {
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
	if !metav1.IsControlledBy(m.data, m.config) || s.WatchFilter != "" && m.config.Labels[clusterv1.WatchLabel] != s.WatchFilter {
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
	before := m.config.DeepCopy()
	if m.config.Status.Bootstrap == nil {
		m.config.Status.Bootstrap = &bootstrap.BootstrapStatus{}
	}
	m.config.Status.Bootstrap.FetchedAt = ptr.To(metav1.NewTime(s.Now()))
	_ = s.Client.Status().Patch(ctx, m.config, client.MergeFrom(before)) // it is for people, and the report says more
}

// tries bounds how often a report is written again after a conflict with another writer of the status.
const tries = 5

// Report keeps the report of a machine in the status of its config, if it is newer than the one there.
func (s *Served) Report(ctx context.Context, of types.NamespacedName, bearer string, sequence uint64, body []byte) error {
	m, err := s.reporter(ctx, of, bearer)
	if err != nil {
		return err
	}
	next, err := store.Reported(body, sequence, s.Now())
	if bad := (*store.InvalidReportError)(nil); errors.As(err, &bad) {
		return &serve.InvalidError{Problem: bad.Error()}
	} else if err != nil {
		return err
	}
	return s.failed(of, "cannot keep a report", s.write(ctx, of, m.config, next))
}

// write keeps a report, and begins again when another writer of the status was faster.
func (s *Served) write(ctx context.Context, of types.NamespacedName, config *bootstrap.MachineBootstrapConfig, next *bootstrap.BootstrapStatus) error {
	var err error
	for range tries {
		if err = s.keep(ctx, config, next); !apierrors.IsConflict(err) {
			return err
		}
		uid := config.UID
		if err := s.Live.Get(ctx, of, config); err != nil {
			return denied(err)
		} else if config.UID != uid {
			return serve.ErrDenied
		}
	}
	return err
}

// Authorize says whether a token is that of a machine whose report is expected.
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

func (s *Served) keep(ctx context.Context, config *bootstrap.MachineBootstrapConfig, next *bootstrap.BootstrapStatus) error {
	was := config.Status.Bootstrap
	if was != nil && was.Sequence >= next.Sequence {
		return serve.ErrOld
	}
	before := config.DeepCopy()
	config.Status.Bootstrap = next.DeepCopy()
	if was != nil {
		config.Status.Bootstrap.FetchedAt = was.FetchedAt
	}
	return s.Client.Status().Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})) //nolint:wrapcheck // the caller says what it is for
}

package controller

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/host/controller/plugins"
	"github.com/machineadm/machineadm/host/controller/store"
	"github.com/machineadm/machineadm/host/controller/wrap"
)

// Reconciler reconciles MachineBootstrapConfigs.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads from the API server. The bodies of Secrets and ConfigMaps come from here alone.
	Live client.Reader
	// Workload has connections to the clusters that the machines join.
	Workload clustercache.ClusterCache
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter of the objects to reconcile; empty for all.
	WatchFilter string
	// TokenTTL is how long a bootstrap token is valid after it was last renewed.
	TokenTTL time.Duration
	// Endpoint says where machines reach the manager; nil if it serves no documents.
	Endpoint func() store.Endpoint
	// Plugins are the source plugins that store documents.
	Plugins *plugins.Plugins
	// OwnIdentity lets storages use the identity of the manager at an object store. Who may write a storage then writes with it.
	OwnIdentity bool
	// Metrics is where the metrics of the reconciler are registered.
	Metrics prometheus.Registerer
	// Now is the clock.
	Now func() time.Time

	readers *readers
	// defined is when a definition of a kind last came or changed, in nanoseconds since 1970.
	defined atomic.Int64
	keys    *keys
	digests *digests
	wrapper wrap.Wrapper
	metrics *metrics
	turns   *turns
	looks   looks
	paces   paces
	// events has one for each transition of a condition.
	events  *recorder
	tracker external.ObjectTracker
	// unlisted are kinds that the manager may not list, whose readers are put into queue when it may.
	unlisted unlisted
	queue    queue
}

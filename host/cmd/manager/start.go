package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	reconcilers "github.com/machineadm/machineadm/host/controller"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/kubeconfig"
	"github.com/machineadm/machineadm/host/controller/plugins"
)

// userAgent is what the logs of an API server call the manager.
const userAgent = "machineadm-manager"

// start runs the manager until the context ends.
func start(ctx context.Context, o *options) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the management cluster: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = o.qps, o.burst, userAgent
	_, serving, err := flags.GetManagerOptions(o.diagnostics)
	if err != nil {
		return fmt.Errorf("read the flags: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: *serving, HealthProbeBindAddress: o.healthAddress, Cache: o.cache(),
		LeaderElection: o.leaderElect, LeaderElectionID: "machineadm-manager", LeaderElectionNamespace: o.leaseNamespace, LeaseDuration: &o.leaseDuration,
		RenewDeadline: &o.renewDeadline, RetryPeriod: &o.retryPeriod, LeaderElectionReleaseOnCancel: true,
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := o.setup(ctx, mgr); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func (o *options) setup(ctx context.Context, mgr manager.Manager) error {
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: kubeconfig.Reader{Reader: mgr.GetAPIReader()}, WatchFilterValue: o.watchFilter, ClusterFilter: reconcilers.Initialized,
		Cache: clustercache.CacheOptions{
			DefaultTransform: slim,
			ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}},
				Label:      labels.SelectorFromSet(labels.Set{reconcilers.TokenLabel: ""}),
				Transform:  slimToken,
			}},
		},
		Client: clustercache.ClientOptions{QPS: o.clusterQPS, Burst: o.clusterBurst, UserAgent: userAgent, Timeout: 10 * time.Second},
	}, controller.Options{MaxConcurrentReconciles: o.clusterConcurrency})
	if err != nil {
		return fmt.Errorf("set up the connections to clusters: %w", err)
	}
	providers := slices.DeleteFunc(o.storageProviders, func(name string) bool { return name == off })
	sources, err := plugins.New(plugins.Options{
		Directory: o.plugins, Providers: providers, Log: slog.New(logr.ToSlogHandler(ctrl.LoggerFrom(ctx).WithName("plugins"))),
	})
	if err != nil {
		return err //nolint:wrapcheck // it says what
	}
	if err := mgr.Add(sources); err != nil {
		return fmt.Errorf("add the plugins: %w", err)
	}
	r := &reconcilers.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Workload: clusters, Plugins: sources, OwnIdentity: o.storageOwnIdentity,
		WatchFilter: o.watchFilter, TokenTTL: o.tokenTTL, Metrics: metrics.Registry,
	}
	if err := r.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: o.concurrency}); err != nil {
		return err //nolint:wrapcheck // it says what was set up
	}
	if err := o.serve(ctx, mgr, r); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add a probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add a probe: %w", err)
	}
	return nil
}

// cache keeps of each object what the reconciler reads.
func (o *options) cache() cache.Options {
	all := cache.Options{
		SyncPeriod: &o.syncPeriod, DefaultTransform: slim,
		ByObject: map[client.Object]cache.ByObject{
			&bootstrap.MachineBootstrapConfig{}:                                        {Transform: slimConfig},
			&clusterv1.Machine{}:                                                       {Transform: slimMachine},
			metadataOf(corev1.SchemeGroupVersion, "Secret"):                            {Transform: slimMetadata},
			metadataOf(corev1.SchemeGroupVersion, "ConfigMap"):                         {Transform: slimMetadata},
			metadataOf(apiextensionsv1.SchemeGroupVersion, "CustomResourceDefinition"): {},
		},
	}
	if o.namespace != "" {
		all.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	return all
}

func metadataOf(version schema.GroupVersion, kind string) client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(version.WithKind(kind))
	return object
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, eventsv1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrap.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the kinds: %w", err)
		}
	}
	return scheme, nil
}

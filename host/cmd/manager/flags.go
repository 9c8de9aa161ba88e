package main

import (
	"time"

	"github.com/spf13/pflag"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
)

// options are what the flags say.
type options struct {
	namespace, watchFilter, healthAddress string
	leaseNamespace                        string
	leaderElect                           bool
	leaseDuration, renewDeadline          time.Duration
	retryPeriod                           time.Duration
	tokenTTL, syncPeriod                  time.Duration
	concurrency, clusterConcurrency       int
	qps                                   float32
	burst                                 int
	clusterQPS                            float32
	clusterBurst                          int
	verbosity                             int
	serverAddress, serverURL              string
	serverCertificate, serverReleases     string
	plugins                               string
	storageProviders                      []string
	storageOwnIdentity                    bool
	diagnostics                           flags.ManagerOptions
}

// off is an address at which nothing listens, as for the addresses of controller-runtime.
const off = "0"

func (o *options) flags() *pflag.FlagSet {
	set := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	set.SortFlags = false
	set.StringVar(&o.namespace, "namespace", "", "namespace of the objects to reconcile; empty for all")
	set.StringVar(&o.watchFilter, "watch-filter", "", "value of the label "+clusterv1.WatchLabel+" of the objects to reconcile; empty for all")
	set.BoolVar(&o.leaderElect, "leader-elect", false, "work only while this replica is the leader")
	set.StringVar(&o.leaseNamespace, "leader-elect-namespace", "", "namespace of the lease; by default the namespace of the manager's pod")
	set.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "time after which another replica takes a lease that is not renewed")
	set.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "time after which a leader that cannot renew its lease ends")
	set.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "time between two tries to get or renew the lease")
	set.DurationVar(&o.tokenTTL, "bootstrap-token-ttl", 15*time.Minute, "life of a bootstrap token, which is renewed until its machine has a node")
	set.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute, "interval at which every object is reconciled again")
	set.IntVar(&o.concurrency, "machinebootstrapconfig-concurrency", 100, "number of MachineBootstrapConfigs to reconcile at once")
	set.IntVar(&o.clusterConcurrency, "clustercache-concurrency", 100, "number of clusters to connect to at once")
	set.Float32Var(&o.qps, "kube-api-qps", 100, "requests a second to the management cluster")
	set.IntVar(&o.burst, "kube-api-burst", 200, "requests to the management cluster in one burst")
	set.Float32Var(&o.clusterQPS, "clustercache-client-qps", 20, "requests a second to each workload cluster")
	set.IntVar(&o.clusterBurst, "clustercache-client-burst", 30, "requests to each workload cluster in one burst")
	set.StringVar(&o.serverAddress, "server-address", off, "address at which machines fetch documents and send reports, such as :9443; 0 for none")
	set.StringVar(&o.serverURL, "server-url", "", "https://HOST[:PORT] by which machines reach --server-address")
	set.StringVar(&o.serverCertificate, "server-certificate", "", "name of a Secret with the certificate for --server-url, in the namespace of the manager; empty for an authority of its own")
	set.StringVar(&o.serverReleases, "server-releases", "", "directory of signed releases to serve to machines; empty for none")
	set.StringSliceVar(&o.storageProviders, "storage-providers", nil, "providers of source plugins and of keys that a MachineBootstrapStorage may name, such as s3; 0 or empty for none")
	set.BoolVar(&o.storageOwnIdentity, "storage-own-identity", false, "let a MachineBootstrapStorage without credentials use the identity of the manager, such as the role of its instance: everyone who may write one writes with it")
	set.StringVar(&o.plugins, "plugins", "/usr/libexec/machineadm", "directory of the source plugins and key providers")
	set.StringVar(&o.healthAddress, "health-addr", ":9440", "address of the probes /healthz and /readyz")
	set.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log")
	flags.AddManagerOptions(set, &o.diagnostics)
	return set
}

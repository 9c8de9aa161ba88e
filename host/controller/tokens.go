package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/kubeconfig"
	"github.com/machineadm/machineadm/host/controller/token"
)

// joiners is the group that kubeadm lets join.
const joiners = "system:bootstrappers:kubeadm:default-node-token"

// TokenLabel is on every bootstrap token that the controller makes, which are all that it caches of a cluster's Secrets.
const TokenLabel = "machineadm.cluster.x-k8s.io/bootstrap-token"

// connected returns a client of the cluster that the machine joins. Its tokens come from a cache.
func (w *work) connected(ctx context.Context) (client.Client, error) {
	c, err := w.r.Workload.GetClient(ctx, client.ObjectKeyFromObject(w.cluster))
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, w.unconnected(ctx)
	} else if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", w.cluster.Name, err)
	}
	return c, nil
}

// live is a client that reads from the API server of the cluster.
func (w *work) live(ctx context.Context) (client.Client, error) {
	c, err := w.r.Workload.GetUncachedClient(ctx, client.ObjectKeyFromObject(w.cluster))
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return nil, w.unconnected(ctx)
	} else if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", w.cluster.Name, err)
	}
	return c, nil
}

// sure returns the client that reads the cache, and once in each tokenLook the one that asks the API server. When a cluster has got another
// etcd, the cache still has objects that this etcd never had.
func (w *work) sure(ctx context.Context) (client.Client, error) {
	if w.r.looks.due(client.ObjectKeyFromObject(w.config), w.r.Now()) {
		return w.live(ctx)
	}
	return w.connected(ctx)
}

// unconnected says why there is no connection to the cluster. Its kubeconfig may be one with which the manager does not connect.
func (w *work) unconnected(ctx context.Context) error {
	name := secret.Name(w.cluster.Name, secret.Kubeconfig)
	found, err := w.reading.body(ctx, "Secret", name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get Secret %s: %w", name, err)
	}
	if err == nil {
		if _, err := kubeconfig.Contained(found.values[secret.KubeconfigDataName]); err != nil {
			return invalid(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonInvalidKubeconfig, "Secret %s: kubeconfig: %s", name, err)
		}
	}
	return waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForConnection,
		"there is no connection to the API server of Cluster %s", w.cluster.Name)
}

// publishedLook is the time between two looks for what kubeadm init publishes.
const publishedLook = 10 * time.Second

// published makes sure that kubeadm init has ended, for a Cluster without a control plane provider: it publishes what a machine with a token
// asks for, near its end. Cluster API takes the control plane for initialized as soon as its first node is registered, long before. All
// machines of the Cluster share a look.
func (w *work) published(ctx context.Context) error {
	if w.cluster.Spec.ControlPlaneRef.IsDefined() || w.r.Now().Sub(w.r.keys.published(keyOf(w.cluster))) < tokenLook {
		return nil
	}
	c, err := w.live(ctx)
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}
	if err := c.Get(ctx, key, new(corev1.ConfigMap)); err == nil {
		w.r.keys.setPublished(keyOf(w.cluster), w.r.Now())
		return nil
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("get ConfigMap %s of Cluster %s: %w", key, w.cluster.Name, err)
	}
	return &stop{
		condition: bootstrap.ConditionDataSecretAvailable, status: metav1.ConditionUnknown, reason: bootstrap.ReasonWaitingForControlPlane,
		message: fmt.Sprintf("kubeadm init of Cluster %s has not ended: its ConfigMap %s does not exist", w.cluster.Name, key),
		again:   publishedLook,
	}
}

// errTaken is the error of a token whose ID another token of the cluster has: an ID has 30 bits.
var errTaken = errors.New("another bootstrap token has the ID")

// issue makes a new token valid, and says when to renew it. An epoch of 0 is none. It asks nothing before: the first request of
// a cache to a cluster takes a second.
func (w *work) issue(ctx context.Context, epoch int) (ctrl.Result, error) {
	if epoch == 0 {
		return ctrl.Result{}, nil
	}
	c, err := w.connected(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	t := token.Derive(w.key, w.config.Namespace, w.config.Name, epoch)
	made := tokenSecret(t)
	made.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(w.r.Now().Add(w.r.TokenTTL))
	err = c.Create(ctx, made)
	if err == nil {
		w.r.looks.due(client.ObjectKeyFromObject(w.config), w.r.Now())
		w.r.metrics.tokens.WithLabelValues(tokenCreated).Inc()
		return ctrl.Result{RequeueAfter: w.r.TokenTTL / 2}, nil
	} else if !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, fmt.Errorf("create a bootstrap token in Cluster %s: %w", w.cluster.Name, err)
	}
	// A manager that ended after this step has made it, or it is another token. The cache may not have the one, and has only ours.
	live, err := w.live(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var found corev1.Secret
	if err := live.Get(ctx, client.ObjectKeyFromObject(made), &found); err != nil {
		return ctrl.Result{}, fmt.Errorf("get a bootstrap token of Cluster %s: %w", w.cluster.Name, err)
	}
	return w.renew(ctx, c, t, &found)
}

// publish keeps the token of data that is there valid, and says when to do so again.
func (w *work) publish(ctx context.Context, epoch int) (next ctrl.Result, err error) {
	c, err := w.sure(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	t, found, err := w.issued(ctx, c, epoch)
	if err == nil && found != nil {
		next, err = w.renew(ctx, c, t, found)
	}
	if err == nil && found == nil || apierrors.IsNotFound(err) { // also if it has gone meanwhile
		next, err = w.issue(ctx, epoch)
	}
	next.RequeueAfter = min(next.RequeueAfter, tokenLook)
	if errors.Is(err, errTaken) {
		w.say("the bootstrap token is not valid while another token of the cluster has its ID: wait until that expires, or replace the Machine")
		return ctrl.Result{RequeueAfter: w.r.TokenTTL}, nil
	}
	return next, err
}

// renew gives a token that is there the whole time again when half of it is over.
func (w *work) renew(ctx context.Context, c client.Client, t token.Token, found *corev1.Secret) (ctrl.Result, error) {
	if !same(found, t) {
		return ctrl.Result{}, errTaken
	}
	now := w.r.Now()
	if left(found, now) < w.r.TokenTTL/2 {
		before := found.DeepCopy()
		found.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(now.Add(w.r.TokenTTL))
		if err := c.Patch(ctx, found, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, fmt.Errorf("renew a bootstrap token of Cluster %s: %w", w.cluster.Name, err)
		}
		w.r.metrics.tokens.WithLabelValues(tokenRenewed).Inc()
	}
	return ctrl.Result{RequeueAfter: max(left(found, now)-w.r.TokenTTL/2, time.Second)}, nil
}

// withdraw deletes the token.
func (w *work) withdraw(ctx context.Context, epoch int) error {
	c, err := w.connected(ctx)
	if err != nil {
		return err
	}
	t, found, err := w.issued(ctx, c, epoch)
	if err != nil || found == nil || !same(found, t) {
		return err // It expires by itself, and a connection that comes back starts the next reconciliation.
	}
	if err := c.Delete(ctx, found); err != nil {
		return ignoreNotFound("delete a bootstrap token", err)
	}
	w.r.metrics.tokens.WithLabelValues(tokenWithdrawn).Inc()
	return nil
}

// rotation says whether a pool needs another token, and otherwise when it does.
func (w *work) rotation(ctx context.Context, epoch int) (next ctrl.Result, rotate bool, err error) {
	if epoch == 0 {
		return ctrl.Result{}, false, nil
	}
	c, err := w.sure(ctx)
	if err != nil {
		return ctrl.Result{}, false, err
	}
	t, found, err := w.issued(ctx, c, epoch)
	if err != nil {
		return ctrl.Result{}, false, err
	}
	if found == nil {
		// It expired while the controller was paused or stopped. Machines with it may still come.
		next, err := w.issue(ctx, epoch)
		if errors.Is(err, errTaken) {
			return ctrl.Result{}, true, nil
		}
		return next, false, err
	}
	rest := left(found, w.r.Now()) - w.r.TokenTTL/2
	return ctrl.Result{RequeueAfter: min(max(rest, time.Second), tokenLook)}, rest <= 0 || !same(found, t), nil
}

// issued is what a client has of the token, nil if it is not there.
func (w *work) issued(ctx context.Context, c client.Client, epoch int) (token.Token, *corev1.Secret, error) {
	t := token.Derive(w.key, w.config.Namespace, w.config.Name, epoch)
	found := tokenSecret(t)
	if err := c.Get(ctx, client.ObjectKeyFromObject(found), found); apierrors.IsNotFound(err) {
		return t, nil, nil
	} else if err != nil {
		return t, nil, fmt.Errorf("get a bootstrap token of Cluster %s: %w", w.cluster.Name, err)
	}
	return t, found, nil
}

// tokenSecret is the form in which a cluster keeps a token. Source: Kubernetes documentation, "Bootstrap Token Secret Format".
func tokenSecret(t token.Token) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: bootstrapapi.BootstrapTokenSecretPrefix + t.ID,
			Labels: map[string]string{TokenLabel: ""},
		},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(t.ID),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(t.Secret),
			bootstrapapi.BootstrapTokenUsageSigningKey:     []byte("true"),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(joiners),
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte("made by machineadm for one MachineBootstrapConfig"),
		},
	}
}

// same says whether a Secret belongs to the token. Another token can have the ID.
func same(found *corev1.Secret, t token.Token) bool {
	return string(found.Data[bootstrapapi.BootstrapTokenSecretKey]) == t.Secret
}

func expiration(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339)) }

// left is how long a token is valid. One without a readable expiration is renewed.
func left(found *corev1.Secret, now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339, string(found.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil {
		return 0
	}
	return at.Sub(now)
}

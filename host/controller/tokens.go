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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
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
		return nil, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForConnection,
			"there is no connection to the API server of Cluster %s", w.cluster.Name)
	} else if err != nil {
		return nil, fmt.Errorf("connect to Cluster %s: %w", w.cluster.Name, err)
	}
	return c, nil
}

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
	exists, err := w.create(ctx, c, token.Derive(w.key, w.config.Namespace, w.config.Name, epoch))
	if exists {
		return w.publish(ctx, epoch) // made by a manager that ended after this step
	}
	return ctrl.Result{RequeueAfter: w.r.TokenTTL / 2}, err
}

// create makes the Secret of a token, and says whether it was there already.
func (w *work) create(ctx context.Context, c client.Client, t token.Token) (exists bool, err error) {
	secret := tokenSecret(t)
	secret.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(w.r.Now().Add(w.r.TokenTTL))
	if err := c.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("create a bootstrap token in Cluster %s: %w", w.cluster.Name, err)
	}
	w.r.metrics.tokens.WithLabelValues(tokenCreated).Inc()
	return false, nil
}

// publish keeps the token valid in the cluster, and says when to do so again. An epoch of 0 is none.
func (w *work) publish(ctx context.Context, epoch int) (ctrl.Result, error) {
	if epoch == 0 {
		return ctrl.Result{}, nil
	}
	c, err := w.connected(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	t := token.Derive(w.key, w.config.Namespace, w.config.Name, epoch)
	found := tokenSecret(t)
	err = c.Get(ctx, client.ObjectKeyFromObject(found), found)
	if apierrors.IsNotFound(err) {
		_, err = w.create(ctx, c, t) // one that exists was made a moment ago, and the cache does not have it yet
		return ctrl.Result{RequeueAfter: w.r.TokenTTL / 2}, err
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("get a bootstrap token of Cluster %s: %w", w.cluster.Name, err)
	}
	now := w.r.Now()
	if left(found, now) < w.r.TokenTTL/2 {
		found = found.DeepCopy()
		found.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(now.Add(w.r.TokenTTL))
		if err := c.Update(ctx, found); err != nil {
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
		return err // It expires by itself, and a connection that comes back starts the next reconciliation.
	}
	found := tokenSecret(token.Derive(w.key, w.config.Namespace, w.config.Name, epoch))
	if err := c.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return ignoreNotFound("get a bootstrap token", err)
	}
	w.r.metrics.tokens.WithLabelValues(tokenWithdrawn).Inc()
	return ignoreNotFound("delete a bootstrap token", c.Delete(ctx, found))
}

// rotation says whether a pool needs another token, and otherwise when it does.
func (w *work) rotation(ctx context.Context, epoch int) (next ctrl.Result, rotate bool, err error) {
	if epoch == 0 {
		return ctrl.Result{}, false, nil
	}
	c, err := w.connected(ctx)
	if err != nil {
		return ctrl.Result{}, false, err
	}
	found := tokenSecret(token.Derive(w.key, w.config.Namespace, w.config.Name, epoch))
	if err := c.Get(ctx, client.ObjectKeyFromObject(found), found); apierrors.IsNotFound(err) {
		// It expired while the controller was paused or stopped. Machines with it may still come.
		next, err := w.publish(ctx, epoch)
		return next, false, err
	} else if err != nil {
		return ctrl.Result{}, false, fmt.Errorf("get a bootstrap token: %w", err)
	}
	rest := left(found, w.r.Now()) - w.r.TokenTTL/2
	return ctrl.Result{RequeueAfter: max(rest, time.Second)}, rest <= 0, nil
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

func expiration(at time.Time) []byte { return []byte(at.UTC().Format(time.RFC3339)) }

// left is how long a token is valid. One without a readable expiration is renewed.
func left(secret *corev1.Secret, now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil {
		return 0
	}
	return at.Sub(now)
}

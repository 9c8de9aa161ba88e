package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/kubernetesnode"
	"github.com/machineadm/machineadm/host/controller/token"
)

// node completes the document of kind KubernetesNode. It returns the role of the machine, empty without such a document, and
// whether the document has a bootstrap token of ours.
func (w *work) node(ctx context.Context, documents []emit.Document, epoch int) (role string, withToken bool, err error) {
	spec, err := nodeDocument(documents)
	if err != nil {
		return "", false, err
	}
	if spec == nil {
		reached(w.config, bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonNotNeeded)
		return "", false, nil
	}
	if !ptr.Deref(w.cluster.Status.Initialization.InfrastructureProvisioned, false) { // it has the endpoint
		return "", false, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForInfrastructure,
			"the infrastructure of Cluster %s is not provisioned", w.cluster.Name)
	}
	facts, err := w.facts(ctx, spec)
	if err != nil {
		return "", false, err
	}
	if w.owner.pool() {
		if err := w.recordFacts(ctx); err != nil {
			return "", false, err
		}
	}
	withToken = facts.Role != contract.ControlPlaneInit && !kubernetesnode.OwnDiscovery(spec)
	if withToken {
		facts.Token = token.Derive(w.key, w.config.Namespace, w.config.Name, epoch).String()
	}
	if found := kubernetesnode.Fill(spec, facts); len(found) > 0 {
		messages := make([]string, len(found))
		for i, c := range found {
			messages[i] = "KubernetesNode: " + c.Field + " " + c.Message
		}
		return "", false, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonContradiction, "%s", strings.Join(messages, "; "))
	}
	return facts.Role, withToken, nil
}

// isNode says whether a source becomes a document that node completes.
func isNode(s source) bool {
	return s.secret == "" && s.apiVersion == contract.APIVersion && s.kind == contract.KindKubernetesNode
}

// recordFacts makes the facts inputs of the data. Those of a Machine stay as they are: another version or another authority is
// that of another Machine.
func (w *work) recordFacts(ctx context.Context) error {
	pool := input{clusterv1.GroupVersion.WithKind(w.owner.kind).GroupKind(), client.ObjectKeyFromObject(w.owner.object)}
	w.reading.inputs.add(pool, []byte(w.owner.version))
	spec, err := json.Marshal([]any{w.cluster.Spec.ControlPlaneEndpoint, w.cluster.Spec.ClusterNetwork})
	if err != nil {
		return fmt.Errorf("encode the spec of Cluster %s: %w", w.cluster.Name, err)
	}
	w.reading.inputs.add(input{clusterv1.GroupVersion.WithKind("Cluster").GroupKind(), client.ObjectKeyFromObject(w.cluster)}, spec)
	authority := secret.Name(w.cluster.Name, secret.ClusterCA)
	err = w.reading.digestOf(ctx, bootstrap.ConditionCertificatesAvailable, "Secret", authority, "tls.crt")
	delete(w.reading.left, w.reading.watch(schema.GroupKind{Kind: "Secret"}, authority)) // clusterctl move takes it by its name
	return err
}

// facts are what Cluster API has of the machine and its cluster.
func (w *work) facts(ctx context.Context, spec *contract.KubernetesNodeSpec) (*kubernetesnode.Facts, error) {
	network := &w.cluster.Spec.ClusterNetwork
	f := &kubernetesnode.Facts{
		Role: contract.Worker, Version: w.owner.version, Cluster: w.cluster.Name,
		DNSDomain: network.ServiceDomain, PodSubnets: network.Pods.CIDRBlocks, ServiceSubnets: network.Services.CIDRBlocks,
		Uninitialized: contract.Taint{
			Key: clusterv1.NodeUninitializedTaint.Key, Value: clusterv1.NodeUninitializedTaint.Value,
			Effect: string(clusterv1.NodeUninitializedTaint.Effect),
		},
	}
	if e := &w.cluster.Spec.ControlPlaneEndpoint; e.IsValid() {
		var err error
		if f.Endpoint, err = endpoint(e); err != nil {
			return nil, err
		}
	}
	switch {
	case w.owner.controlPlane && !Initialized(w.cluster):
		f.Role = contract.ControlPlaneInit
	case !Initialized(w.cluster):
		return nil, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForControlPlane,
			"the control plane of Cluster %s is not initialized", w.cluster.Name)
	case w.owner.controlPlane:
		f.Role = contract.ControlPlaneJoin
	}
	if f.Endpoint == "" && f.Role != contract.ControlPlaneInit {
		return nil, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForControlPlane,
			"Cluster %s has no spec.controlPlaneEndpoint yet", w.cluster.Name)
	}
	if f.Role == contract.Worker {
		if err := w.skew(ctx); err != nil {
			return nil, err
		}
	} else if port := network.APIServerPort; port != 0 && int(port) != advertised(spec) {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonContradiction,
			"Cluster.spec.clusterNetwork.apiServerPort is %d, but the API server of the KubernetesNode listens on %d: set spec.node.advertisePort, or remove the field",
			port, advertised(spec))
	}
	return f, w.certificates(ctx, f, spec)
}

// endpoint is HOST:PORT as a document has it. Providers also write capitals, and an IPv6 address in brackets.
func endpoint(e *clusterv1.APIEndpoint) (string, error) {
	host := strings.ToLower(e.Host)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	text := net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
	if contract.CheckAddress(text) != nil {
		return "", invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonContradiction,
			"Cluster.spec.controlPlaneEndpoint is %q, port %d, which is not the address of a host: correct it, with a DNS name or an IP address", e.Host, e.Port)
	}
	return text, nil
}

// advertised is the port on which the API server of a KubernetesNode listens.
func advertised(spec *contract.KubernetesNodeSpec) int {
	if port := spec.Node.AdvertisePort; port != nil {
		return *port
	}
	return 6443
}

// skew holds a worker back whose minor version differs from the control plane's: kubeadm joins only its own.
func (w *work) skew(ctx context.Context) error {
	ref := &w.cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() || w.owner.version == "" {
		return nil
	}
	gk := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	mapping, err := w.r.Client.RESTMapper().RESTMapping(gk)
	if meta.IsNoMatchError(err) {
		return nil // The control plane is there already. Without its kind installed nothing can be compared.
	} else if err != nil {
		return fmt.Errorf("find the version of %s: %w", gk, err)
	}
	w.reading.watch(gk, ref.Name)
	if err := w.r.track(ctx, mapping.GroupVersionKind); err != nil {
		return err
	}
	var controlPlane unstructured.Unstructured
	controlPlane.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := w.r.cached(ctx, client.ObjectKey{Namespace: w.cluster.Namespace, Name: ref.Name}, &controlPlane); err != nil {
		return ignoreNotFound("get the control plane", err)
	}
	version, _, _ := unstructured.NestedString(controlPlane.Object, "status", "version") // a control plane without it has no version
	have, want := semver.MajorMinor(prefixed(w.owner.version)), semver.MajorMinor(prefixed(version))
	switch {
	case have == "" || want == "" || have == want:
		return nil
	case semver.Compare(have, want) > 0:
		return waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonVersionSkew,
			"the machine has Kubernetes %s, the control plane still %s", have, want)
	}
	return invalid(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonVersionSkew,
		"the machine has Kubernetes %s, the control plane %s already: set the version of its MachineDeployment", have, want)
}

func prefixed(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// nodeDocument returns the document of kind KubernetesNode; nil if the stream has none.
func nodeDocument(documents []emit.Document) (*contract.KubernetesNodeSpec, error) {
	var node *contract.KubernetesNodeSpec
	var name string
	for i := range documents {
		spec, ok := documents[i].Spec.(*contract.KubernetesNodeSpec)
		if ok && node != nil {
			return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidOrder,
				"a machine is one node, but the config has several: KubernetesNode/%s and KubernetesNode/%s: remove one of them",
				name, documents[i].Metadata.Name)
		} else if ok {
			node, name = spec, documents[i].Metadata.Name
		}
	}
	return node, nil
}

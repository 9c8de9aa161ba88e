package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// common sets what InitConfiguration and JoinConfiguration share.
func (r *renderer) common(o object) {
	skip := r.s.Spec.SkipPhases
	if r.s.Spec.KubeProxy != nil && r.s.Spec.KubeProxy.Skip {
		skip = append(append([]string{}, skip...), "addon/kube-proxy")
	}
	o.put("skipPhases", skip)
	if len(r.result.Patches) > 0 {
		o["patches"] = object{"directory": r.inWorkDir(PatchesDir)}
	}
	if r.legacy {
		return
	}
	t, timeouts := r.s.Timeouts, object{}
	timeouts.put("controlPlaneComponentHealthCheck", t.ControlPlane)
	timeouts.put("kubeletHealthCheck", t.Kubelet)
	timeouts.put("kubernetesAPICall", t.KubernetesAPI)
	timeouts.put("etcdAPICall", t.EtcdAPI)
	timeouts.put("tlsBootstrap", t.TLSBootstrap)
	timeouts.put("discovery", t.Discovery)
	o["timeouts"] = timeouts
}

func (r *renderer) inWorkDir(name string) string {
	if r.s.Windows {
		return r.s.WorkDir + `\` + name
	}
	return r.s.WorkDir + "/" + name
}

// endpoint is the address of the API server of this node, nil for the choice of kubeadm.
func (r *renderer) endpoint() any {
	o := object{}
	if r.s.Advertised.IsValid() {
		o["advertiseAddress"] = r.s.Advertised.String()
	}
	if port := r.s.Spec.Node.AdvertisePort; port != nil {
		o["bindPort"] = *port
	}
	if len(o) == 0 {
		return nil
	}
	return o
}

func (r *renderer) registration() object {
	o, node := object{}, r.s.Spec.Node
	o.put("name", r.s.NodeName)
	o.put("criSocket", node.CRISocket)
	o.put("imagePullPolicy", node.ImagePullPolicy)
	if node.Taints != nil { // an empty list means no taint
		o["taints"] = node.Taints
	}
	ignored := r.s.Spec.IgnorePreflightErrors
	if r.s.Spec.IgnoreAllPreflightErrors {
		ignored = []string{"all"}
	}
	o.put("ignorePreflightErrors", ignored)
	var addresses, labels []string
	for _, ip := range r.s.NodeIPs {
		addresses = append(addresses, ip.String())
	}
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		labels = append(labels, key+"="+node.Labels[key])
	}
	args := slices.Clone(node.KubeletArgs)
	for _, a := range []v1alpha1.Argument{
		{Name: "cloud-provider", Value: node.CloudProvider},
		{Name: "node-ip", Value: strings.Join(addresses, ",")},
		{Name: "node-labels", Value: strings.Join(labels, ",")},
	} {
		if a.Value != "" {
			args = append(args, a)
		}
	}
	o.put("kubeletExtraArgs", r.arguments(args))
	return o
}

// arguments are a list since v1beta4, and before that a mapping.
func (r *renderer) arguments(args []v1alpha1.Argument) any {
	if !r.legacy || len(args) == 0 {
		return args
	}
	byName := object{}
	for _, a := range args {
		byName[a.Name] = a.Value
	}
	return byName
}

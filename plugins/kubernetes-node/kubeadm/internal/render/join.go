package render

import (
	"cmp"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
)

func (r *renderer) join() object {
	o, spec := r.document("JoinConfiguration"), r.s.Spec
	discovery := object{}
	if d := spec.Discovery; d.Kubeconfig != nil {
		r.result.Kubeconfig = d.Kubeconfig.Reveal()
		discovery["file"] = object{"kubeConfigPath": r.inWorkDir(Kubeconfig)}
	} else {
		discovery["bootstrapToken"] = object{
			"token": string(d.Token.Reveal()), "apiServerEndpoint": cmp.Or(d.Endpoint, spec.Cluster.Endpoint), "caCertHashes": d.CACertHashes,
		}
	}
	if r.legacy {
		discovery.put("timeout", r.s.Timeouts.Discovery)
	}
	o["discovery"], o["nodeRegistration"] = discovery, r.registration()
	if dir := spec.Cluster.CertificatesDir; dir != settings.DefaultCertificatesDir {
		// kubeadm takes the path of the kubelet's clientCAFile from the cluster, and writes the authority elsewhere.
		o["caCertPath"] = map[bool]string{true: "C:"}[r.s.Windows] + dir + "/ca.crt"
	}
	if r.s.ControlPlane() {
		plane := object{}
		plane.put("localAPIEndpoint", r.endpoint())
		if spec.CertificateKey != nil {
			plane["certificateKey"] = string(spec.CertificateKey.Reveal())
		}
		o["controlPlane"] = plane
	}
	r.common(o)
	return o
}

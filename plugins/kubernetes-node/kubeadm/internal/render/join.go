package render

import "cmp"

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

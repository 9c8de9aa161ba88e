package render

import (
	"maps"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
)

func (r *renderer) init() object {
	o := r.document("InitConfiguration")
	// Without a token kubeadm would make one that is valid for a day.
	bootstrap := object{"ttl": "1s", "description": "expired: no token was asked for"}
	if d := r.s.Spec.Discovery; d != nil && d.Token != nil {
		bootstrap = object{"token": string(d.Token.Reveal())}
	}
	o["bootstrapTokens"] = []object{bootstrap}
	o["nodeRegistration"] = r.registration()
	o.put("localAPIEndpoint", r.endpoint())
	if key := r.s.Spec.CertificateKey; key != nil {
		o["certificateKey"] = string(key.Reveal())
		r.result.Flags = append(r.result.Flags, "--upload-certs")
	}
	r.common(o)
	return o
}

func (r *renderer) cluster() object {
	o, c := r.document("ClusterConfiguration"), r.s.Spec.Cluster
	o["kubernetesVersion"] = r.s.Spec.KubernetesVersion
	o.put("clusterName", c.Name)
	o.put("controlPlaneEndpoint", c.Endpoint)
	o.put("imageRepository", c.ImageRepository)
	o.put("certificatesDir", c.CertificatesDir)
	if c.DNSImage != nil {
		o["dns"] = image(c.DNSImage)
	}
	network := object{}
	network.put("dnsDomain", c.DNSDomain)
	network.put("podSubnet", strings.Join(c.PodSubnets, ","))
	network.put("serviceSubnet", strings.Join(c.ServiceSubnets, ","))
	o["networking"] = network
	gates := object{}
	for name, on := range r.s.FeatureGates {
		gates[name] = on
	}
	if r.legacy {
		if c.KeyAlgorithm == "ECDSA-P256" {
			gates["PublicKeysECDSA"] = true
		}
	} else {
		o.put("encryptionAlgorithm", c.KeyAlgorithm)
		o.put("certificateValidityPeriod", c.CertificateValidity)
		o.put("caCertificateValidityPeriod", c.CACertificateValidity)
	}
	if len(gates) > 0 {
		o["featureGates"] = gates
	}
	for _, component := range settings.Components(r.s.Spec) {
		if fields := r.controlPlane(component.Want); len(fields) > 0 {
			o[component.Field] = fields
		}
	}
	server, _ := o["apiServer"].(object)
	if server == nil {
		server = object{}
	}
	server.put("certSANs", c.CertificateSANs)
	if r.legacy {
		server.put("timeoutForControlPlane", r.s.Timeouts.ControlPlane)
	}
	if len(server) > 0 {
		o["apiServer"] = server
	}
	if r.s.Spec.Etcd != nil {
		o["etcd"] = r.etcd(*r.s.Spec.Etcd)
	}
	return o
}

func (r *renderer) controlPlane(want *v1alpha1.ControlPlaneComponent) object {
	o := object{}
	if want == nil {
		return o
	}
	o.put("extraArgs", r.arguments(want.Args))
	o.put("extraEnvs", want.Env)
	var volumes []object
	for _, v := range want.Volumes {
		volume := object{"name": v.Name, "hostPath": v.HostPath, "mountPath": v.HostPath, "readOnly": v.ReadOnly == nil || *v.ReadOnly}
		volume.put("mountPath", v.MountPath)
		volume.put("pathType", v.PathType)
		volumes = append(volumes, volume)
	}
	o.put("extraVolumes", volumes)
	return o
}

func (r *renderer) etcd(want v1alpha1.Etcd) object {
	if e := want.External; e != nil {
		o := object{"endpoints": e.Endpoints, "caFile": "", "certFile": "", "keyFile": ""}
		if e.CA != "" {
			o["caFile"] = r.s.EtcdFile("ca.crt")
		}
		if e.Key != nil {
			o["certFile"], o["keyFile"] = r.s.EtcdFile("client.crt"), r.s.EtcdFile("client.key")
		}
		return object{"external": o}
	}
	l := want.Local
	o := object{"dataDir": "/var/lib/etcd"}
	o.put("dataDir", l.DataDir)
	o.put("extraArgs", r.arguments(l.Args))
	o.put("extraEnvs", l.Env)
	o.put("serverCertSANs", l.ServerCertificateSANs)
	o.put("peerCertSANs", l.PeerCertificateSANs)
	maps.Copy(o, image(l.Image))
	return object{"local": o}
}

func image(want *v1alpha1.ComponentImage) object {
	o := object{}
	if want != nil {
		o.put("imageRepository", want.Repository)
		o.put("imageTag", want.Tag)
	}
	return o
}

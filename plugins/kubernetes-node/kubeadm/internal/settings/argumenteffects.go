package settings

import (
	"cmp"
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

//go:embed argumenteffects.txt
var argumentEffectTable string

// argumentEffects refuses values with which a program does not do its work, and warns of the ones that harm the cluster. A patch or an image of
// the document can change what kubeadm runs: then all of it is a warning.
func (r *resolver) argumentEffects(at document.Path, program string, args []v1alpha1.Argument) {
	patched := slices.ContainsFunc(r.spec.Patches, func(p v1alpha1.ComponentPatch) bool { return p.Target == program })
	for i, a := range args {
		if i != lastArgument(args, a.Name) {
			continue
		}
		for line := range strings.Lines(argumentEffectTable) {
			f := strings.Fields(line)
			fits := func(pattern string) bool { ok, _ := path.Match(pattern, a.Name); return ok }
			if f[0] != program || !slices.ContainsFunc(strings.Split(f[1], "|"), fits) || !r.hasForm(f[2], a.Value) {
				continue
			}
			_, text, _ := strings.Cut(strings.TrimSpace(line), " "+f[3]+" ")
			message, hint, _ := strings.Cut(text, " | ")
			if hint != "" {
				r.fault(at.Index(i)+".value", message, hint, !patched)
			} else {
				r.warn(at.Index(i)+".value", message)
			}
		}
	}
}

// hasForm reports whether a value, or one item of it, has a form of argumenteffects.txt.
func (r *resolver) hasForm(form, value string) bool {
	if name, isFile := strings.CutPrefix(form, "!"); isFile {
		return value != "" && value != cmp.Or(r.spec.Cluster.CertificatesDir, "/etc/kubernetes/pki")+"/"+name
	}
	fits := func(text string) bool { return takes(form, text, r.result.Version.Minor) }
	return value != "" && (fits(value) || strings.Contains(value, ",") && !strings.HasPrefix(form, "/http") && slices.ContainsFunc(strings.Split(value, ","), fits))
}

// effects warns of settings of the control plane, and refuses some, whose effect depends on more than one field.
func (r *resolver) effects() {
	for _, c := range Components(r.spec) {
		if c.Want == nil {
			continue
		}
		at := document.Path("spec").Field(c.Field)
		r.argumentEffects(at+".args", c.Name, c.Want.Args)
		r.ciphers(at+".args", c.Want.Args)
		if i := lastArgument(c.Want.Args, "secure-port"); i >= 0 && c.Field != "apiServer" && !r.patchedTarget(c.Name) {
			port := map[string]string{"controllerManager": "10257", "scheduler": "10259"}[c.Field]
			r.refuse(c.Want.Args[i].Value != port && !r.refused((at+".args").Index(i)), (at+".args").Index(i)+".value", "is not the port that kubeadm's probes ask, "+port+", and the kubelet restarts the component again and again", "remove it")
		}
		r.componentImages(at+".image", c.Name, c.Want.Image)
		for i, v := range c.Want.Volumes {
			mount := cmp.Or(v.MountPath, v.HostPath)
			r.refuse(v.Name == "ca-certs" && mount != "/etc/ssl/certs", (at+".volumes").Index(i)+".name", "is the name of the volume that kubeadm makes of /etc/ssl/certs, which has another content then", "give it another name")
			if c.Want.Image == "" && slices.Contains([]string{"/usr", "/usr/local", "/usr/local/bin"}, mount) {
				r.warn((at + ".volumes").Index(i), "hides /usr/local/bin of the image, where the program of the component is: use another mountPath")
			}
		}
	}
	r.serverEffects()
	r.etcdEffects()
	r.specialNetworks()
	r.nodeEffects()
	r.fileEffects()
}

func (r *resolver) patchedTarget(name string) bool {
	return slices.ContainsFunc(r.spec.Patches, func(p v1alpha1.ComponentPatch) bool { return p.Target == name })
}

// serverEffects looks at the API server.
func (r *resolver) serverEffects() {
	const at = document.Path("spec.apiServer")
	s := r.spec.APIServer
	if s == nil {
		return
	}
	value := func(name string) (text string, field document.Path) {
		if i := lastArgument(s.Args, name); i >= 0 {
			text, field = s.Args[i].Value, (at + ".args").Index(i)
		}
		return text, field
	}
	served := r.spec.Kubelet != nil && r.spec.Kubelet.ServerTLSBootstrap != nil && *r.spec.Kubelet.ServerTLSBootstrap || r.result.Kubelet["tlsCertFile"] != nil || r.patched("serverTLSBootstrap")
	if _, field := value("kubelet-certificate-authority"); field != "" && !served {
		r.warn(field, "makes the API server refuse kubelets, whose certificates are self-signed by default, so that kubectl logs and exec fail: set spec.kubelet.serverTLSBootstrap, and approve the requests of nodes")
	}
	reading, at1 := value("max-requests-inflight")
	writing, at2 := value("max-mutating-requests-inflight")
	r.refuse(at1 != "" && at2 != "" && reading == "0" && writing == "0", at2, "is 0 as is max-requests-inflight, and the API server does not start", "make one of the two larger")
	plugins, field := value("enable-admission-plugins")
	_, configured := value("admission-control-config-file")
	for _, name := range []string{"ImagePolicyWebhook", "EventRateLimit"} {
		r.refuse(configured == "" && slices.Contains(strings.Split(plugins, ","), name), field, name+" needs a configuration, without which the API server does not start",
			"give it in a file of spec.files, with the argument admission-control-config-file, or remove "+name)
	}
	names := map[string]int{}
	for i, v := range s.Env {
		names[strings.ToUpper(v.Name)] = i + 1
	}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY"} {
		if i := names[name]; i > 0 && names["NO_PROXY"] == 0 {
			r.warn((at + ".env").Index(i-1), "is the proxy for requests to kubelets and webhooks of the cluster as well, which it does not reach: set NO_PROXY, with the ranges of nodes, pods and services")
			break
		}
	}
}

// etcdEffects looks at the etcd of a control plane. Sources: server/embed of etcd, app/phases/etcd of kubeadm.
func (r *resolver) etcdEffects() {
	if r.spec.Etcd == nil || r.spec.Etcd.Local == nil {
		return
	}
	const at = document.Path("spec.etcd.local.args")
	local := r.spec.Etcd.Local
	args, changed := local.Args, r.patchedTarget("etcd")
	r.argumentEffects(at, "etcd", args)
	value := func(name string) (text string, field document.Path) {
		if i := lastArgument(args, name); i >= 0 {
			text, field = args[i].Value, at.Index(i)+".value"
		}
		return text, field
	}
	data := cmp.Or(local.DataDir, "/var/lib/etcd")
	if wal, field := value("wal-dir"); wal != "" && !changed {
		r.refuse(!within(wal, data), field, "is a directory in the container, and what etcd wrote is lost with it", "use a directory below spec.etcd.local.dataDir")
	}
	mode, _ := value("auto-compaction-mode")
	if retention, field := value("auto-compaction-retention"); mode == "revision" {
		r.refuse(retention != "" && strings.ContainsAny(retention, "hmsµun"), field, "is a time, and auto-compaction-mode: revision takes a number of revisions", "write a number such as 1000, or set auto-compaction-mode to periodic")
	}
	least, _ := value("tls-min-version")
	most, field := value("tls-max-version")
	r.refuse(least == "TLS1.3" && most == "TLS1.2", field, "is less than tls-min-version, and etcd does not start", "remove one of the two")
	suites, field := value("cipher-suites")
	r.refuse(least == "TLS1.3" && suites != "", field, "excludes tls-min-version: TLS1.3, and etcd does not start", "remove one of the two")
	for _, name := range []string{"listen-metrics-urls", "listen-client-urls", "listen-peer-urls"} {
		urls, field := value(name)
		if _, shared := value("socket-reuse-port"); shared == "" {
			r.refuse(listensTwice(strings.Split(urls, ",")), field, "has one port twice, at all addresses and at one of them, and etcd does not start", "remove the single address, or name single addresses alone")
		}
	}
	metrics, field := value("listen-metrics-urls")
	if clients, _ := value("client-cert-auth"); clients != "false" && !changed {
		r.refuse(strings.HasPrefix(metrics, "https://"), field, "begins with an address for which clients need a certificate: the probe of kubeadm has none, and the kubelet restarts etcd again and again",
			"write http://127.0.0.1:2381 first")
	}
	clients, field := value("listen-client-urls")
	r.refuse(clients != "" && !strings.Contains(clients, "https://") && r.argumentOfServer("etcd-servers") == "", field, "has no address with TLS, with which the API server reaches etcd", "write https")
	const dataDir = document.Path("spec.etcd.local.dataDir")
	r.refuse(slices.Contains([]string{"/", "/etc", "/var", "/var/lib", "/usr", "/opt", "/home", "/root", "/srv", "/run", "/tmp", "/etc/kubernetes", "/var/lib/kubelet", "/etc/kubernetes/manifests"}, path.Clean(data)), dataDir,
		"is a directory of others, which kubeadm refuses because it is not empty", "use a directory of its own, such as /var/lib/etcd")
	if pki := cmp.Or(r.spec.Cluster.CertificatesDir, "/etc/kubernetes/pki"); path.Clean(data) != "/" {
		r.refuse(within(pki, path.Clean(data)) || within(path.Clean(data), "/etc/kubernetes/manifests/"), dataDir, "is a directory of others, which kubeadm refuses because it is not empty", "use a directory of its own, such as /var/lib/etcd")
	}
	for _, lost := range []string{"/run/", "/tmp/", "/var/run/", "/var/tmp/", "/dev/shm/"} {
		if strings.HasPrefix(data, lost) {
			r.warn(dataDir, "is emptied at a boot, or by a timer, and with it the data of the cluster: use a directory such as /var/lib/etcd")
		}
	}
	if i := local.Image; i != nil {
		r.refuse(strings.HasPrefix(i.Tag, "v2.") || strings.HasPrefix(i.Tag, "2."), "spec.etcd.local.image.tag", "is of etcd 2, with which no API server works", "use the tag of an etcd 3")
		if path.Base(i.Repository) == "etcd" {
			r.warn("spec.etcd.local.image.repository", "ends with the name of the image, which kubeadm appends once more: remove /etcd, unless the registry has a directory of that name")
		}
	}
}

// listensTwice reports whether URLs with one scheme-independent port name all addresses and one of the same family.
func listensTwice(urls []string) bool {
	all, single := map[string]bool{}, map[string]bool{}
	for _, text := range urls {
		_, address, _ := strings.Cut(text, "://")
		at := strings.LastIndex(address, ":")
		if at < 0 {
			continue
		}
		family, port := "4:", address[at+1:]
		if strings.HasPrefix(address, "[") {
			family = "6:"
		}
		if host := strings.Trim(address[:at], "[]"); host == "0.0.0.0" || host == "::" {
			all[family+port] = true
		} else {
			single[family+port] = true
		}
	}
	for key := range all {
		if single[key] {
			return true
		}
	}
	return false
}

// componentImages warns of an image of another component or version.
func (r *resolver) componentImages(at document.Path, name, text string) {
	if text == "" {
		return
	}
	base, digest, _ := strings.Cut(path.Base(text), "@")
	image, tag, _ := strings.Cut(base, ":")
	for _, other := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "pause", "coredns"} {
		if image == other && other != name {
			r.warn(at, "is the image of "+other+", and this is the component "+name)
		}
	}
	if tag == "" && digest == "" && image == name {
		r.warn(at, "has neither a tag nor a digest, which means the tag latest: name the version of the cluster")
	}
	minor := strings.Split(strings.TrimPrefix(tag, "v"), ".")
	wanted := strings.Split(strings.TrimPrefix(r.spec.KubernetesVersion, "v"), ".")
	if strings.HasPrefix(tag, "v1.") && len(minor) > 1 && len(wanted) > 1 && minor[1] != wanted[1] && image == name {
		r.warn(at, "is of another minor version than spec.kubernetesVersion: name the same one")
	}
}

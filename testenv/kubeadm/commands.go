package kubeadm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// free is kubeadm's check that no file of an earlier installation is there.
func free(paths ...string) error {
	for _, path := range paths {
		if exists(path) {
			check := "FileAvailable-" + strings.ReplaceAll(path, "/", "-")
			return fmt.Errorf("preflight: [preflight] Some fatal errors occurred:\n\t[ERROR %s]: %s already exists", check, path)
		}
	}
	return nil
}

// join makes the machine a worker: kubeadm writes what the kubelet needs, and the kubelet gets its certificate.
func (p *program) join() error {
	const conf, boot = kubernetesDir + "/kubelet.conf", kubernetesDir + "/bootstrap-kubelet.conf"
	p.step("preflight", "Running pre-flight checks")
	if err := free(conf, boot, kubernetesDir+"/pki/ca.crt"); err != nil {
		return err
	}
	endpoint, token, err := p.discover()
	if err != nil {
		return err
	}
	ca, err := Authority()
	if err != nil {
		return err
	}
	if err := p.write(boot, 0o600, kubeconfig(endpoint, ca, "    token: "+token+"\n")); err != nil {
		return err
	}
	if err := p.write(kubernetesDir+"/pki/ca.crt", 0o644, ca.Certificate); err != nil {
		return err
	}
	if err := p.service("stop"); err != nil {
		return err
	}
	files := []string{"instance-config.yaml", "config.yaml", "kubeadm-flags.env"}
	if err := p.kubeletFiles(files); err != nil {
		return err
	}
	p.step("kubelet-start", "Starting the kubelet")
	if err := p.service("start"); err != nil {
		return err
	}
	p.step("kubelet-start", "Waiting for the kubelet to perform the TLS Bootstrap")
	if err := await("kubelet-wait-bootstrap", func() bool { return exists(conf) }); err != nil {
		return err
	}
	_ = p.remove(boot) // as kubeadm does
	fmt.Fprintln(p.out, "\nThis node has joined the cluster:")
	return nil
}

// discover returns the address of the cluster and the token for it.
func (p *program) discover() (endpoint, token string, err error) {
	if file := p.config.Discovery.File.KubeConfigPath; file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", "", fmt.Errorf("preflight: %w", err)
		}
		var conf struct {
			Clusters []struct{ Cluster struct{ Server string } }
			Users    []struct{ User struct{ Token string } }
		}
		if err := decode(string(text), &conf); err != nil || len(conf.Clusters) != 1 || len(conf.Users) != 1 {
			return "", "", fmt.Errorf("preflight: invalid kubeconfig: %w", err)
		}
		return strings.TrimPrefix(conf.Clusters[0].Cluster.Server, "https://"), conf.Users[0].User.Token, nil
	}
	b := p.config.Discovery.BootstrapToken
	ca, err := Authority()
	if err != nil {
		return "", "", err
	}
	hash, err := ca.Hash()
	if err == nil && !slices.Contains(b.CACertHashes, hash) {
		err = errors.New("preflight: couldn't validate the identity of the API Server: cluster CA found in cluster-info ConfigMap is invalid")
	}
	return b.APIServerEndpoint, b.Token, err
}

// kubeletFiles writes the configuration of the kubelet with the patches of the document.
func (p *program) kubeletFiles(names []string) error {
	config := "kind: KubeletConfiguration\n"
	if dir := p.config.Patches.Directory; dir != "" {
		patches, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("kubelet-start: %w", err)
		}
		for _, patch := range patches {
			text, err := os.ReadFile(filepath.Join(dir, patch.Name()))
			if err != nil {
				return err
			}
			config += "# " + patch.Name() + "\n# " + string(text)
		}
	}
	for _, name := range names {
		text := map[string]string{
			"config.yaml": config, "instance-config.yaml": "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
			"kubeadm-flags.env": `KUBELET_KUBEADM_ARGS="--hostname-override=` + p.config.NodeRegistration.Name + "\"\n",
		}[name]
		if err := p.write(kubeletDir+"/"+name, 0o644, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// create is kubeadm init. Certificates that are there are used.
func (p *program) create() error {
	p.step("init", "Using Kubernetes version: "+version)
	taken := []string{kubernetesDir + "/kubelet.conf", etcdDir + "/member"}
	for _, name := range components() {
		taken = append(taken, manifestsDir+"/"+name+".yaml")
	}
	if err := free(taken...); err != nil {
		return err
	}
	ca, err := p.certificates()
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	name := p.config.NodeRegistration.Name
	for _, c := range []struct{ file, server, user, group string }{
		{"admin", p.config.ControlPlaneEndpoint, "kubernetes-admin", "kubeadm:cluster-admins"},
		{"super-admin", p.config.ControlPlaneEndpoint, "kubernetes-super-admin", "system:masters"},
		{"kubelet", p.config.ControlPlaneEndpoint, "system:node:" + name, "system:nodes"},
		{"controller-manager", apiServer, "system:kube-controller-manager", ""},
		{"scheduler", apiServer, "system:kube-scheduler", ""},
	} {
		p.step("kubeconfig", `Writing "`+c.file+`.conf" kubeconfig file`)
		user, err := issue(c.user, &ca, c.group)
		if err != nil {
			return err
		}
		if err := p.write(kubernetesDir+"/"+c.file+".conf", 0o600, kubeconfig(c.server, ca, inline(user))); err != nil {
			return err
		}
	}
	for _, name := range components() {
		p.step("control-plane", `Creating static Pod manifest for "`+name+`"`)
		manifest := "# " + name + "\n    - --listen-client-urls=https://" + etcd + ",https://192.0.2.1:2379\n"
		if err := p.write(manifestsDir+"/"+name+".yaml", 0o600, []byte(manifest)); err != nil {
			return err
		}
	}
	return p.startControlPlane(name, ca)
}

// startControlPlane is what kubeadm init does from the start of the kubelet on.
func (p *program) startControlPlane(name string, ca Pair) error {
	if err := p.service("stop"); err != nil {
		return err
	}
	if err := p.kubeletFiles([]string{"kubeadm-flags.env", "instance-config.yaml", "config.yaml"}); err != nil {
		return err
	}
	p.step("kubelet-start", "Starting the kubelet")
	if err := p.service("start"); err != nil {
		return err
	}
	p.step("wait-control-plane", "Waiting for the kubelet to boot up the control plane as static Pods")
	if err := await("wait-control-plane", func() bool { return answers(apiServer) && answers(etcd) && exists(rotated) }); err != nil {
		return err
	}
	stored := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, p.config.BootstrapTokens, p.config.CertificateKey)))
	if err := p.write(etcdDir+"/member/stored", 0o600, []byte(stored)); err != nil {
		return err
	}
	p.step("kubelet-finalize", "Updating kubelet.conf to point to a rotatable kubelet client certificate and key")
	if err := p.write(kubernetesDir+"/kubelet.conf", 0o600, kubeconfig(p.config.ControlPlaneEndpoint, ca, rotatable())); err != nil {
		return err
	}
	if err := p.addons(); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\nYour Kubernetes control-plane has initialized successfully!\n\n  kubeadm join %s --token %v \\\n"+
		"\t--control-plane --certificate-key %s # node %s\n", p.config.ControlPlaneEndpoint, p.config.BootstrapTokens, p.config.CertificateKey, name)
	return nil
}

func (p *program) addons() error {
	p.step("addons", "Applied essential addon: CoreDNS")
	return p.write(etcdDir+"/member/addons", 0o600, nil)
}

// reset removes the data of etcd, stops the kubelet, and removes directories and then files, as kubeadm does.
func (p *program) reset(certificates string) error {
	p.step("reset", "Deleted contents of the etcd data directory: "+etcdDir)
	if err := p.clean(etcdDir); err != nil {
		return err
	}
	p.step("reset", "Stopping the kubelet service")
	if err := p.service("stop"); err != nil {
		return err
	}
	for _, dir := range []string{manifestsDir, kubeletDir, certificates} {
		if err := p.clean(dir); err != nil {
			return err
		}
	}
	for _, name := range []string{"admin", "super-admin", "kubelet", "bootstrap-kubelet", "controller-manager", "scheduler"} {
		if err := p.remove(kubernetesDir + "/" + name + ".conf"); err != nil {
			return err
		}
	}
	return nil
}

package kubeadm

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	apiServer = "127.0.0.1:6443"
	etcd      = "127.0.0.1:2379"
	rotated   = kubeletDir + "/pki/kubelet-client-current.pem"
)

// Joined returns the files of a worker by their paths, as far as they show which node it is.
func Joined(node, endpoint string) (map[string][]byte, error) {
	ca, err := Authority()
	if err != nil {
		return nil, err
	}
	own, err := issue("system:node:"+node, &ca, "system:nodes")
	return map[string][]byte{
		kubernetesDir + "/pki/ca.crt":   ca.Certificate,
		kubernetesDir + "/kubelet.conf": kubeconfig(endpoint, ca, rotatable()),
		rotated:                         append(own.Certificate, own.Key...),
	}, err
}

// components are the static pods of a control plane, in the order in which their manifests are written.
func components() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// kubeconfig is a user's; server is HOST:PORT.
func kubeconfig(server string, ca Pair, user string) []byte {
	return []byte("apiVersion: v1\nkind: Config\nclusters:\n- name: kubernetes\n  cluster:\n    server: https://" + server +
		"\n    certificate-authority-data: " + ca.Base64() +
		"\nusers:\n- name: user\n  user:\n" + user)
}

func inline(p Pair) string {
	return "    client-certificate-data: " + p.Base64() +
		"\n    client-key-data: " + base64.StdEncoding.EncodeToString(p.Key) + "\n"
}

func rotatable() string {
	return "    client-certificate: " + rotated + "\n    client-key: " + rotated + "\n"
}

// certificates makes what kubeadm init makes in the directory of certificates, and returns the authority of the cluster.
func (p *program) certificates() (ca Pair, err error) {
	const dir = kubernetesDir + "/pki/"
	var parent Pair
	for _, c := range []struct {
		file      string
		authority bool
	}{
		{"ca", true},
		{"apiserver", false},
		{"apiserver-kubelet-client", false},
		{"front-proxy-ca", true},
		{"front-proxy-client", false},
		{"etcd/ca", true},
		{"etcd/server", false},
		{"etcd/peer", false},
		{"apiserver-etcd-client", false},
	} {
		p.step("certs", `Generating "`+c.file+`" certificate and key`)
		name, by := "/"+c.file, &parent
		if c.authority {
			by = nil
		}
		if c.file == "ca" {
			name = "kubernetes"
		}
		made, err := issue(name, by)
		if err != nil {
			return ca, err
		}
		if c.authority && exists(dir+c.file+".crt") {
			if made, err = readPair(dir + c.file); err != nil {
				return ca, err
			}
		} else {
			err = cmp.Or(p.write(dir+c.file+".key", 0o600, made.Key), p.write(dir+c.file+".crt", 0o644, made.Certificate))
		}
		if err != nil {
			return ca, err
		}
		if c.authority {
			parent = made
		}
		if c.file == "ca" {
			ca = made
		}
	}
	return ca, nil
}

func readPair(path string) (p Pair, err error) {
	if p.Certificate, err = os.ReadFile(local(path + ".crt")); err == nil {
		p.Key, err = os.ReadFile(local(path + ".key"))
	}
	return p, err
}

// kubelet gets its certificate, starts the control plane, if there is one, and says that it is healthy until it is killed.
func (p *program) kubelet() error {
	if !exists(kubeletDir + "/config.yaml") {
		return errors.New("kubelet: config.yaml does not exist")
	}
	if err := p.bootstrap(); err != nil {
		return err
	}
	own, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:10250")
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }() // with this process
	if exists(manifestsDir + "/etcd.yaml") {
		if err := p.controlPlane(); err != nil {
			return err
		}
	}
	health, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:10248")
	if err != nil {
		return err
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})} // healthy
	return s.Serve(health)
}

// bootstrap gets the client certificate of the kubelet. With that of kubeadm init the kubelet only makes a file of its own.
func (p *program) bootstrap() error {
	const conf, boot = kubernetesDir + "/kubelet.conf", kubernetesDir + "/bootstrap-kubelet.conf"
	if exists(rotated) && exists(conf) {
		return nil
	}
	flags, err := os.ReadFile(local(kubeletDir + "/kubeadm-flags.env"))
	if err != nil {
		return err
	}
	_, name, _ := strings.Cut(strings.TrimSpace(string(flags)), "--hostname-override=")
	ca, err := Authority()
	if err != nil {
		return err
	}
	made, err := issue("system:node:"+strings.Trim(name, `"`), &ca, "system:nodes")
	if err != nil {
		return err
	}
	server := apiServer
	if text, err := os.ReadFile(local(boot)); err == nil {
		_, rest, _ := strings.Cut(string(text), "server: https://")
		server, _, _ = strings.Cut(rest, "\n")
	} else if !exists(conf) {
		return err
	}
	first := strings.Replace(rotated, "current", "1", 1)
	if err := p.write(first, 0o600, append(made.Certificate, made.Key...)); err != nil {
		return err
	}
	p.wait(rotated)
	link := os.Symlink
	if runtime.GOOS == "windows" {
		link = os.Link
	}
	if err := link(local(first), local(rotated)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if exists(conf) {
		return nil
	}
	return p.write(conf, 0o600, kubeconfig(server, ca, rotatable()))
}

// controlPlane serves what the plugin asks an API server and an etcd, to clients with a certificate.
func (p *program) controlPlane() error {
	if err := p.write(etcdDir+"/member/wal", 0o600, nil); err != nil {
		return err
	}
	for address, s := range map[string]struct{ authority, pair, answer string }{
		apiServer: {"ca", "apiserver", `{"items":[]}`},
		etcd:      {"etcd/ca", "etcd/server", `{"members":[{}]}`},
	} {
		const dir = kubernetesDir + "/pki/"
		pair, err := tls.LoadX509KeyPair(dir+s.pair+".crt", dir+s.pair+".key")
		if err != nil {
			return err
		}
		authority, err := os.ReadFile(dir + s.authority + ".crt")
		roots := x509.NewCertPool()
		if err != nil || !roots.AppendCertsFromPEM(authority) {
			return fmt.Errorf("%s: %w", s.authority, errors.Join(err, errMissing))
		}
		listener, err := tls.Listen("tcp", address, &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		})
		if err != nil {
			return err
		}
		server := &http.Server{ReadHeaderTimeout: waitLimit, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, s.answer)
		})}
		go func() { _ = server.Serve(listener) }() // until this process ends
	}
	return nil
}

// answers reports whether a server listens.
func answers(address string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", address)
	return err == nil && c.Close() == nil
}

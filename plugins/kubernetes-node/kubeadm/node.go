package main

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/outcome"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/render"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// configFile is in the work directory, on Windows, which has no /dev/stdin.
const configFile = "/config.yaml"

// node makes the changes that kubeadm makes.
type node struct {
	m        sdk.Machine
	s        settings.Settings
	identity member.Identity
	intent   sdk.Intent[member.Begun]
	kubeadm  release.Version
	rendered render.Rendered
	// fingerprint is the fingerprint of the document.
	fingerprint string
	// safe reports whether a plan finds a way on from what kubeadm left.
	safe func(context.Context) bool
}

func newNode(m sdk.Machine, s settings.Settings) *node {
	n := &node{m: m, s: s, intent: sdk.Intent[member.Begun]{State: m.State, Name: "kubeadm"}}
	n.identity = member.Identity{Role: s.Spec.Role, Node: s.NodeName, Endpoint: s.Spec.Cluster.Endpoint}
	switch d, c := s.Spec.Discovery, s.Spec.Certificates; {
	case s.Spec.Role == settings.Init:
		if c != nil && c.CA != nil {
			n.identity.CAHashes = hashes(member.CertificateHash([]byte(c.CA.Certificate)))
		}
	case d != nil && d.Kubeconfig != nil:
		n.identity.CAHashes = hashes(member.AuthorityHash(d.Kubeconfig.Reveal()))
	case d != nil:
		n.identity.CAHashes = d.CACertHashes
	}
	return n
}

func hashes(hash string) []string {
	if hash == "" {
		return nil
	}
	return []string{hash}
}

// redactor hides the secrets of the document.
func (n *node) redactor() outcome.Redactor {
	var secrets [][]byte
	add := func(all ...*v1alpha1.Secret) {
		for _, secret := range all {
			if secret != nil {
				secrets = append(secrets, secret.Reveal())
			}
		}
	}
	spec := n.s.Spec
	add(spec.CertificateKey)
	if spec.Discovery != nil {
		add(spec.Discovery.Token, spec.Discovery.Kubeconfig)
	}
	for _, file := range slices.Concat(n.s.Files, n.s.Credentials) {
		if file.Sensitive {
			secrets = append(secrets, file.Content)
		}
	}
	return outcome.NewRedactor(secrets...)
}

// command is the subcommand of kubeadm.
func (n *node) command() string {
	if n.s.Spec.Role == settings.Init {
		return "init"
	}
	return "join"
}

// workFiles writes what kubeadm reads from files.
func (n *node) workFiles() error {
	if err := n.empty(); err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, patch := range n.rendered.Patches {
		files["/"+render.PatchesDir+"/"+patch.Name] = patch.Content
	}
	if n.rendered.Kubeconfig != nil {
		files["/"+render.Kubeconfig] = n.rendered.Kubeconfig
	}
	if n.s.Windows {
		files[configFile] = n.rendered.Config
	}
	for name, content := range files {
		if err := n.m.FS.MkdirAll(n.work(path.Dir(name)), 0o700); err != nil {
			return err
		}
		if err := n.m.FS.WriteFile(n.work(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// work returns a path below the work directory.
func (n *node) work(name string) string {
	if name = strings.TrimSuffix(name, "/"); n.s.Windows {
		name = strings.ReplaceAll(name, "/", `\`)
	}
	return n.s.WorkDir + name
}

// empty removes the work directory.
func (n *node) empty() error {
	for _, dir := range []string{"/" + render.PatchesDir, ""} {
		names, err := n.m.FS.ReadDir(n.work(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, name := range append(names, "") {
			if err == nil {
				err = n.m.FS.Remove(n.work(dir + "/" + name))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// own returns the paths of the files that the document brings, certificates among them.
func (n *node) own() []string {
	var paths []string
	for _, file := range slices.Concat(n.s.Credentials, n.s.Files) {
		paths = append(paths, file.Path)
	}
	return paths
}

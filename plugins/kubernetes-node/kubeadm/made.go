package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// madeBy is the name of the record of the settings with which kubeadm made the node.
const madeBy = "made-by"

// fingerprint identifies the settings that kubeadm applies once. Not in it are secrets, what is for one run of kubeadm, and
// the files and swap, which stay managed.
func fingerprint(spec v1alpha1.KubernetesNodeSpec) (string, error) {
	spec.Discovery, spec.CertificateKey, spec.Certificates = nil, nil, nil
	spec.Files, spec.StaticPods, spec.Timeouts = nil, nil, nil
	spec.Node.Swap = ""
	spec.SkipPhases, spec.IgnorePreflightErrors, spec.IgnoreAllPreflightErrors = nil, nil, false
	if etcd := spec.Etcd; etcd != nil && etcd.External != nil {
		spec.Etcd = &v1alpha1.Etcd{External: &v1alpha1.ExternalEtcd{Endpoints: etcd.External.Endpoints}}
	}
	data, err := json.Marshal(spec)
	var sorted any // free-form fields have the order of the document
	if err == nil {
		err = json.Unmarshal(data, &sorted)
	}
	if err == nil {
		data, err = json.Marshal(sorted)
	}
	if err != nil {
		return "", errors.New("the settings of the node cannot be encoded") // never %w: it could quote them
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// changed warns of settings that are not those which made the node. Nothing is known of a node that was made otherwise.
func (n *node) changed() ([]sdk.Warning, error) {
	record, err := n.m.State.Load(madeBy)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(record) == n.fingerprint {
		return nil, nil
	}
	return []sdk.Warning{{Field: "spec", Message: "the document has changed since it made this machine a node, and kubeadm changes " +
		"no node that exists: replace the machine, or change its settings by hand"}}, err
}

package settings

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func (r *resolver) files() {
	paths := map[string]document.Path{}
	for i, f := range r.spec.Files {
		at := document.Path("spec.files").Index(i)
		r.filePath(at+".path", f.Path, paths)
		r.refuse(r.spec.Node.Swap == "off" && slices.Contains([]string{"/etc/fstab", "/etc/waagent.conf"}, f.Path), at+".path",
			"is a file that spec.node.swap: off edits", "remove one of the two")
		file := File{Field: string(at), After: f.When == "afterKubernetes", FileSpec: sdk.FileSpec{
			Path: f.Path, Content: r.content(at, f), Mode: r.mode(at, f), Owner: r.owner(at+".owner", f.Owner), Sensitive: f.SecretContent != nil,
			Outside: r.outside(),
		}}
		r.result.Files = append(r.result.Files, file)
	}
}

func (r *resolver) content(at document.Path, f v1alpha1.NodeFile) []byte {
	var content []byte
	switch {
	case f.Content != nil:
		content = []byte(*f.Content)
	case f.SecretContent != nil:
		at, content = at+".secretContent", f.SecretContent.Reveal()
	}
	if f.Encoding == "base64" {
		text := strings.NewReplacer("\n", "", "\r", "").Replace(string(content))
		decoded, err := base64.StdEncoding.Strict().DecodeString(text)
		r.refuse(err != nil, at, "is not valid base64", "use the standard alphabet, with padding") // not %w: secret
		content = decoded
	}
	return content
}

func (r *resolver) mode(at document.Path, f v1alpha1.NodeFile) fs.FileMode {
	text := cmp.Or(f.Mode, "0644")
	if f.SecretContent != nil {
		text = cmp.Or(f.Mode, "0600")
	}
	bits, err := v1alpha1.ParseMode(text)
	r.invalid(err, at+".mode", `write permission bits in octal, such as "0640", which is 416 in decimal`)
	if f.SecretContent != nil && bits&0o004 != 0 {
		r.result.Warnings = append(r.result.Warnings, sdk.Warning{Field: string(at + ".mode"), Message: "lets every user of the machine read a secret; use 0600 or 0640 if nothing else needs it"})
	}
	r.refuse(r.result.Windows && f.Mode != "", at+".mode", "Windows has no such mode", "remove it")
	return bits
}

// owner returns an owner, whose names it looks up on the machine. On Windows a file has none.
func (r *resolver) owner(at document.Path, name string) *sdk.Owner {
	if r.result.Windows {
		r.refuse(name != "", at, "Windows has no such owner", "remove it")
		return nil
	}
	if name == "" || name == "root:root" || r.refuse(!sdk.ValidOwner(name), at, "is not USER:GROUP", "write it like root:root or 65532:65532") {
		return &sdk.Owner{}
	}
	found, err := sdk.LookupOwner(r.m.FS, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.wait(at, "this machine has no such user or group", "create them first, or name others")
	case err != nil && r.err == nil:
		r.err = sdk.At(err, string(at))
	}
	return &found
}

// staticPods adds the manifests, as JSON, to the files.
func (r *resolver) staticPods() {
	names, pods := map[string]document.Path{}, map[string]document.Path{}
	for i, p := range r.spec.StaticPods {
		at := document.Path("spec.staticPods").Index(i)
		r.refuse(!label().MatchString(p.Name) || slices.Contains(v1alpha1.PatchTargets(), p.Name), at+".name", "is not a DNS label, or the name of a component",
			"use at most 63 lower-case letters, digits and -")
		r.unique(at+".name", names, p.Name)
		manifest := r.yaml(at+".manifest", p.Manifest)
		pod := objectOf(manifest)
		metadata, _ := pod["metadata"].(map[string]any)
		if !r.refuse(manifest != nil && (pod["kind"] != "Pod" || pod["apiVersion"] != "v1" || metadata["name"] == nil), at+".manifest",
			"is not a Pod with a name", "write one object of kind Pod and apiVersion v1") && manifest != nil {
			r.unique(at+".manifest", pods, fmt.Sprint(metadata["namespace"], " ", metadata["name"]))
			r.staticPod(at+".manifest", pod)
		}
		r.result.Files = append(r.result.Files, File{Field: string(at), FileSpec: sdk.FileSpec{
			Path: "/etc/kubernetes/manifests/" + p.Name + ".yaml", Content: append(manifest, '\n'), Mode: 0o600, Owner: &sdk.Owner{},
		}})
	}
}

// yaml reads one YAML value as JSON. It returns nil if there is none.
func (r *resolver) yaml(at document.Path, text string) []byte {
	data, err := document.JSON("", []byte(text))
	if r.refuse(err != nil || data == nil, at, "is not one value in YAML or JSON", yamlHint(err)) {
		return nil
	}
	return data
}

// yamlHint is the place and reason of the first error, which does not quote the text.
func yamlHint(err error) string {
	if first, ok := errors.AsType[*document.Error](err); ok {
		return fmt.Sprintf("line %d, column %d of the text: %s", first.Position.Line, first.Position.Column, first.Message)
	}
	return "write a mapping"
}

// patches checks the patches and turns them into JSON. kubeadm ignores a target that it does not have, and applies a patch
// only when it generates the object; Misplaced has the targets of other roles.
func (r *resolver) patches() {
	r.spec.Patches = slices.Clone(r.spec.Patches)
	for i, p := range r.spec.Patches {
		at := document.Path("spec.patches").Index(i)
		data := r.yaml(at+".patch", p.Patch)
		want, start := "a mapping", "{"
		if p.Type == "json" {
			want, start = "a list of operations", "["
		}
		r.refuse(data != nil && !strings.HasPrefix(string(data), start), at+".patch", "must be "+want, "")
		r.spec.Patches[i].Patch, r.spec.Patches[i].Type = string(data), cmp.Or(p.Type, "strategic")
		r.patchOfPod(at+".patch", r.spec.Patches[i])
	}
}

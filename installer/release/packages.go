package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/installer/linux"
	"github.com/machineadm/machineadm/installer/manifest"
)

const (
	maintainer = "The machineadm authors <machineadm@users.noreply.github.com>"
	homepage   = "https://github.com/machineadm/machineadm"
)

// pack is one package of a Linux distribution.
type pack struct {
	name, summary, description string
	roles                      []string
	depends, recommends        []string
	scripts                    bool
}

// The packages. Of the packages for clouds, a machine needs its own cloud's at most.
const (
	command       = "machineadm"
	kit           = "machineadm-conformance"
	plugins       = "machineadm-plugins"
	remotePlugins = "machineadm-remote"
	awsPlugins    = "machineadm-aws"
	googlePlugins = "machineadm-google"
	azurePlugins  = "machineadm-azure"
)

// holds reports whether a program belongs to the package.
func (k pack) holds(program string) bool {
	program = strings.TrimSuffix(program, ".exe")
	if role(program) != rolePlugin {
		return slices.Contains(k.roles, role(program))
	}
	_, provider, elsewhere := strings.Cut(program, "-provider-")
	if !elsewhere {
		return k.name == plugins
	}
	switch provider {
	case "awskms", "s3", "secretsmanager", "ssm":
		return k.name == awsPlugins
	case "gcpkms", "gcs":
		return k.name == googlePlugins
	case "azblob", "azurekeyvault":
		return k.name == azurePlugins
	}
	return k.name == remotePlugins
}

func packs() []pack {
	return []pack{
		{
			name: command, summary: "prepare a machine to be a Kubernetes node", roles: []string{roleCommand}, scripts: true,
			description: "A stream of YAML documents describes the desired state of a node.\nmachineadm runs a plugin for each document until the machine matches.",
			recommends:  []string{plugins},
		},
		{
			name: plugins, summary: "plugins of machineadm that prepare a Linux node", roles: []string{rolePlugin},
			description: "Kernel parameters, time synchronization, containerd, Active Directory\nand kubeadm.",
			depends:     []string{command},
		},
		{
			name: remotePlugins, summary: "plugins of machineadm for streams that are elsewhere", roles: []string{rolePlugin},
			description: "Streams from files, web servers and the Kubernetes API, and passphrases\nof encrypted streams from files and Vault.",
			depends:     []string{command},
		},
		{
			name: awsPlugins, summary: "plugins of machineadm for Amazon Web Services", roles: []string{rolePlugin},
			description: "Streams from S3, Systems Manager and Secrets Manager, and passphrases\nof encrypted streams from KMS.",
			depends:     []string{command},
		},
		{
			name: googlePlugins, summary: "plugins of machineadm for Google Cloud", roles: []string{rolePlugin},
			description: "Streams from Cloud Storage, and passphrases of encrypted streams from\nCloud KMS.",
			depends:     []string{command},
		},
		{
			name: azurePlugins, summary: "plugins of machineadm for Microsoft Azure", roles: []string{rolePlugin},
			description: "Streams from Blob Storage, and passphrases of encrypted streams from\nKey Vault.",
			depends:     []string{command},
		},
		{
			name: kit, summary: "conformance kit for plugins of machineadm", roles: []string{roleConformance},
			description: "Checks a plugin in any language against the contract of machineadm.",
		},
	}
}

// object is a part of a JSON document.
type object = map[string]any

// linuxPackages returns the maker of the packages of one format.
func linuxPackages(kind string) func(*Release, context.Context, Platform) ([]artifact, error) {
	return func(r *Release, ctx context.Context, p Platform) (made []artifact, err error) {
		for _, k := range packs() {
			if len(r.packed(p, k)) == 0 {
				continue // of a release of some programs
			}
			a, err := r.pack(ctx, p, k, kind)
			if err != nil {
				return nil, wrap(k.name+" as "+kind, err)
			}
			made = append(made, a)
		}
		return made, nil
	}
}

// packed returns the programs of a package, as ROLE/NAME.
func (r *Release) packed(p Platform, k pack) []File {
	return slices.DeleteFunc(r.programs(p, k.roles...), func(f File) bool { return !k.holds(filepath.Base(f.Path)) })
}

func (r *Release) pack(ctx context.Context, p Platform, k pack, kind string) (_ artifact, err error) {
	dir, err := os.MkdirTemp("", "machineadm-release-")
	if err != nil {
		return artifact{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs := installed(r.packed(p, k))
	files, err := r.accessories(k, kind)
	if err != nil {
		return artifact{}, err
	}
	config := r.config(p, k)
	if config["contents"], err = r.contents(dir, sorted(programs, files)); err != nil {
		return artifact{}, err
	}
	if k.scripts {
		if err := r.scripts(dir, config); err != nil {
			return artifact{}, err
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return artifact{}, err
	}
	at, out := filepath.Join(dir, "nfpm.json"), filepath.Join(dir, "out")
	if err := errors.Join(os.WriteFile(at, text, 0o600), os.Mkdir(out, 0o700)); err != nil {
		return artifact{}, err
	}
	nfpm := exec.CommandContext(ctx, r.Nfpm, "package", "--config", at, "--packager", kind, "--target", out+"/") //nolint:gosec // the pinned tool
	nfpm.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+r.seconds(), "TZ=UTC")
	if complaint, err := nfpm.CombinedOutput(); err != nil {
		return artifact{}, fmt.Errorf("nfpm: %w: %s", err, complaint)
	}
	found, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil || len(found) != 1 {
		return artifact{}, fmt.Errorf("nfpm wrote %q and not one package: %w", found, err)
	}
	a := artifact{File: r.file(kind, p, ""), files: programs}
	a.Name = filepath.Base(found[0])
	return a, r.keep(ctx, kind, found[0], filepath.Join(r.Out, a.Name))
}

// config returns nfpm's configuration, which may be JSON. Source: https://nfpm.goreleaser.com/configuration/
func (r *Release) config(p Platform, k pack) object {
	return object{
		"name": k.name, "arch": p.Arch, "platform": "linux", "version": r.Version, "section": "admin", "priority": "optional",
		"maintainer": maintainer, "description": k.summary + "\n" + k.description, "homepage": homepage, "license": "Apache-2.0",
		"disable_globbing": true, "mtime": r.Time.UTC(), "depends": k.depends, "recommends": k.recommends,
		"rpm": object{"summary": k.summary, "compression": "zstd:19", "buildhost": "localhost", "packager": maintainer},
		"deb": object{"compression": "none"}, // keep compresses it
	}
}

// accessories returns the files of a package beside its programs.
func (r *Release) accessories(k pack, kind string) ([]File, error) {
	doc := "usr/share/doc/" + k.name + "/"
	files := []File{{Path: doc + "copyright", Mode: 0o644, Data: r.copyright()}}
	if kind == manifest.KindDeb {
		log, err := compressed(File{Path: doc + "changelog", Mode: 0o644, Data: r.changelog(k.name)})
		if err != nil {
			return nil, err
		}
		files = append(files, log, File{
			Path: "usr/share/lintian/overrides/" + k.name, Mode: 0o644,
			Data: []byte("# Go links without C libraries, so that one program runs on every distribution.\n" + k.name + ": statically-linked-binary\n"),
		})
	}
	if !k.scripts {
		return files, nil
	}
	share, err := r.shared()
	if err != nil {
		return nil, err
	}
	services, err := units()
	for _, f := range installed(share) {
		if kind == manifest.KindDeb { // where Debian's zsh looks
			f.Path = strings.Replace(f.Path, "zsh/site-functions", "zsh/vendor-completions", 1)
		}
		files = append(files, f)
	}
	return append(files, services...), err
}

func (r *Release) copyright() []byte {
	return []byte("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: machineadm\nSource: " + homepage +
		"\n\nFiles: *\nCopyright: " + r.Time.UTC().Format("2006") + " The machineadm authors\nLicense: Apache-2.0\n" +
		" On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0; elsewhere, see\n https://www.apache.org/licenses/LICENSE-2.0\n" +
		" .\n The licenses of the libraries within are in the SBOM of the release.\n")
}

func (r *Release) changelog(name string) []byte {
	version := strings.Replace(strings.TrimPrefix(r.Version, "v"), "-", "~", 1)
	return fmt.Appendf(nil, "%s (%s) unstable; urgency=medium\n\n  * See %s/blob/%s/CHANGELOG.md\n\n -- %s  %s\n",
		name, version, homepage, r.Version, maintainer, r.Time.UTC().Format(time.RFC1123Z))
}

// contents returns nfpm's list of files, and writes those in memory into dir.
func (r *Release) contents(dir string, files []File) ([]object, error) {
	var all []object
	for i, f := range files {
		c := object{"src": f.From, "dst": "/" + f.Path, "file_info": object{
			"owner": "root", "group": "root", "mode": f.Mode.Perm(), "mtime": r.Time.UTC(),
		}}
		switch {
		case f.Link != "":
			c["src"], c["type"] = f.Link, "symlink"
		case f.From == "":
			at := filepath.Join(dir, strconv.Itoa(i))
			c["src"] = at
			if err := os.WriteFile(at, f.Data, 0o600); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// scripts adds the maintainer scripts. apk and pacman have one of their own for upgrades.
func (r *Release) scripts(dir string, config object) error {
	all := object{}
	for _, name := range []string{"postinstall", "preremove", "postremove"} {
		text, err := linux.Files.ReadFile("scripts/" + name + ".sh")
		if err != nil {
			return err
		}
		if err := stage(dir, []File{{Path: name, Mode: 0o755, Data: text}}, r.Time); err != nil {
			return err
		}
		all[name] = filepath.Join(dir, name)
	}
	upgrade := object{"scripts": object{"postupgrade": all["postinstall"]}}
	config["scripts"], config["apk"], config["archlinux"] = all, upgrade, upgrade
	return nil
}

// keep moves a package into the release. nfpm's compressors have too small a window for a deb of many plugins: xz has 64 MiB.
func (r *Release) keep(ctx context.Context, kind, from, to string) (err error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if kind == manifest.KindDeb {
		level := "-9"
		if r.Quick {
			level = "-0"
		}
		if text, err = repack(text, exec.CommandContext(ctx, "xz", "--compress", "--stdout", "--threads=1", level)); err != nil { //nolint:gosec // two constants
			return err
		}
	}
	return os.WriteFile(to, text, 0o644) //nolint:gosec // for everyone
}

// arHeader is the length of a member's header in an ar archive. Source: ar(5), deb(5).
const arHeader = 60

// repack compresses the member data.tar of a deb. It is the last one.
func repack(deb []byte, xz *exec.Cmd) ([]byte, error) {
	at := bytes.LastIndex(deb, []byte("data.tar  "))
	if at < 0 || len(deb) < at+arHeader {
		return nil, errors.New("nfpm's deb has no member data.tar")
	}
	header := deb[at : at+arHeader]
	size, err := strconv.Atoi(strings.TrimSpace(string(header[48:58])))
	if err != nil || at+arHeader+size > len(deb) {
		return nil, fmt.Errorf("the header of data.tar is damaged: %q", header)
	}
	var data bytes.Buffer
	feed := func(w io.Writer) error { _, err := w.Write(deb[at+arHeader : at+arHeader+size]); return err }
	if err := pipe(feed, &data, xz); err != nil {
		return nil, err
	}
	out := append(deb[:at:at], fmt.Sprintf("%-16s%s%-10d%s", "data.tar.xz", header[16:48], data.Len(), header[58:])...)
	out = append(out, data.Bytes()...)
	if data.Len()%2 == 1 {
		out = append(out, '\n')
	}
	return out, nil
}

// Package ready finds out, before kubeadm runs, what of the machine would make it fail, all of it together.
package ready

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Check returns the version of the installed kubeadm and what may be wrong, or a Precondition with all that is missing, or Retry if the
// machine still boots and nothing else is missing. With fresh the machine has nothing of an earlier run, so that nothing may use the ports
// of Kubernetes.
func Check(ctx context.Context, m sdk.Machine, s settings.Settings, fresh bool) (release.Version, []sdk.Warning, error) {
	c := &checker{m: m, s: s}
	kubeadm, err := c.programs(ctx)
	checks := []func(context.Context) error{c.service, c.hostName}
	if !s.Windows {
		checks = append(checks, c.runtime, c.swap, c.forwarding, c.disk, c.overridden)
	}
	if fresh && !s.Windows {
		checks = append(checks, c.ports)
	}
	for _, check := range checks {
		if err == nil {
			err = check(ctx)
		}
	}
	switch {
	case err == nil && len(c.missing) > 0:
		err = sdk.Preconditions(c.missing...)
	case err == nil && c.comes != "":
		err = sdk.Retry(0, c.comes)
	}
	return kubeadm, c.warnings, err
}

// Cluster returns a Precondition with what is missing to join the cluster that has been asked: the settings have its answer.
func Cluster(ctx context.Context, m sdk.Machine, s settings.Settings) error {
	c := &checker{m: m, s: s}
	c.certificatesDir()
	err := errors.Join(c.forwarding(ctx), c.swap(ctx))
	if err == nil && len(c.missing) > 0 {
		err = sdk.Preconditions(c.missing...)
	}
	return err
}

// certificatesDir checks that kubeadm leaves the authority of the cluster where it makes the kubelet read it, unless the document gives the
// kubelet another file.
func (c *checker) certificatesDir() {
	want, have := c.s.Cluster.CertificatesDir, c.s.Spec.Cluster.CertificatesDir
	if want != have && (c.s.ControlPlane() || !c.s.ClientCA()) {
		c.miss("spec.cluster.certificatesDir", "is "+have+", and the cluster has its certificates in "+want+": the kubelet would not find the authority",
			"set it to "+want)
	}
}

// programs checks that the programs are there, and that their versions suit the control plane.
func (c *checker) programs(ctx context.Context) (release.Version, error) {
	kubeadm, found, err := c.version(ctx, "kubeadm", c.kubeadmVersion, "version", "--output", "json")
	if err != nil {
		return kubeadm, err
	}
	kubelet, ok, err := c.version(ctx, "kubelet", lastWord, "--version")
	if err == nil && found && ok {
		c.missing = append(c.missing, release.Check(c.s.Version, kubeadm, kubelet)...)
	}
	if !found {
		c.required(c.s.Version)
	} else {
		c.required(kubeadm)
	}
	return kubeadm, err
}

// required checks that the programs are there without which a kubeadm ends.
func (c *checker) required(kubeadm release.Version) {
	var creates release.Version
	if c.s.Spec.Role == settings.Init {
		creates = c.s.Version
	}
	if c.s.Windows || slices.Contains(c.s.Spec.SkipPhases, "preflight") {
		return
	}
	for _, name := range kubeadm.Programs(creates) {
		if _, err := c.m.Commands.Find(name); errors.Is(err, fs.ErrNotExist) && !c.s.Ignores("FileExisting-"+name) {
			c.miss("", "the program "+name+" is not installed, which kubeadm "+kubeadm.String()+" requires", "install the package that it comes with"+runAgain)
		}
	}
}

// version asks a program for its version, which read takes from its output; ok is false when the program is missing, which is
// recorded.
func (c *checker) version(ctx context.Context, name string, read func([]byte) string, args ...string) (v release.Version, ok bool, err error) {
	if _, err := c.m.Commands.Find(name); errors.Is(err, fs.ErrNotExist) {
		c.miss("", "the program "+name+" is not installed", "install "+name+" of the minor version of spec.kubernetesVersion"+runAgain)
		return v, false, nil
	}
	result, err := c.m.Commands.Run(ctx, machine.Command{Name: name, Args: args, Constant: true})
	if err != nil {
		return v, false, err
	}
	if v, err = release.Parse(read(result.Stdout)); err != nil {
		return v, false, sdk.WithDetail(sdk.Precondition(name+" does not report a version of Kubernetes",
			"install a release of "+name+runAgain), string(result.Stdout))
	}
	return v, true, nil
}

// kubeadmVersion reads the version of kubeadm. A clock that is behind the build of kubeadm is wrong: certificates of the
// cluster would not be valid yet.
func (c *checker) kubeadmVersion(output []byte) string {
	var v struct {
		Client struct {
			Version string `json:"gitVersion"`
			Built   string `json:"buildDate"`
		} `json:"clientVersion"`
	}
	if json.Unmarshal(output, &v) != nil {
		return ""
	}
	built, err := time.Parse(time.RFC3339, v.Client.Built) // the build of a vendor need not have a date
	if now := time.Now(); err == nil && now.Before(built) {
		c.need("clock:", "", fmt.Sprintf("the clock shows %s, and the installed kubeadm was built on %s",
			now.UTC().Format(time.DateOnly), built.UTC().Format(time.DateOnly)), "put a Timesync document before this one, or set the clock"+runAgain)
	}
	return v.Client.Version
}

// lastWord returns the version in "Kubernetes v1.37.1".
func lastWord(output []byte) string {
	words := bytes.Fields(output)
	if len(words) == 0 {
		return ""
	}
	return string(words[len(words)-1])
}

// service checks the unit of the kubelet. Without it kubeadm waits for the kubelet in vain.
func (c *checker) service(ctx context.Context) error {
	state, err := c.m.Services.State(ctx, "kubelet")
	switch {
	case err != nil:
		return err
	case !state.Exists:
		c.miss("", "the service kubelet is not installed",
			"install the package of the kubelet, or its unit and the drop-in 10-kubeadm.conf"+runAgain)
	case state.Masked:
		c.miss("", "the service kubelet is masked: it cannot be started", "find out why, then: systemctl unmask kubelet")
	}
	return nil
}

// hostName checks that the node has the name of the host, if a profile demands it: otherwise kubeadm overrides the host name.
func (c *checker) hostName(context.Context) error {
	if c.s.WithHostName() && !strings.EqualFold(c.m.Target.Hostname, c.s.NodeName) {
		domain := ""
		if c.s.Windows { // there DomainJoin renames the machine
			domain = "machine:domain"
		}
		c.need(domain, "spec.node.name", "a profile demands that the node has the host name of the machine, and it has another one",
			"set the host name before this document, or remove spec.node.name or the profile")
	}
	return nil
}

// disk checks that a node fits on the file systems that it writes to. etcd alone reserves 128 MiB for its log, and images are
// larger; the kubelet evicts pods long before a file system is full.
func (c *checker) disk(context.Context) error {
	const least = 512 << 20
	directories := append([]string{"/var/lib/kubelet"}, c.images...)
	if c.s.ControlPlane() {
		data := "/var/lib/etcd"
		if etcd := c.s.Spec.Etcd; etcd != nil && etcd.Local != nil {
			data = cmp.Or(etcd.Local.DataDir, data)
		}
		directories = append(directories, data)
	}
	for _, directory := range directories {
		free, err := c.m.FS.Free(directory)
		if err != nil {
			return err
		}
		if free < least {
			c.miss("", fmt.Sprintf("the file system of %s has %d MiB free, and a node needs %d MiB", directory, free>>20, least>>20),
				"free space, or use a larger disk"+runAgain)
		}
	}
	return nil
}

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// containerdConfig leaves all but the work-arounds at its default. A process of the node may not lower its badness for the
// kernel's memory killer below that of its parent.
const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'testenv.invalid/pause:3.10.2'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['/usr/lib/cni']
`

// bridge connects the pods of one node with each other and the node. Nothing routes between the pods of two nodes.
const bridge = `{
  "cniVersion": "1.0.0", "name": "testenv", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.%d.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
  ]
}
`

// kubelet and kubeadmDropIn are equivalent to what the packages of Kubernetes have, but for the delay of a restart, and
// for the accounting: the kubelet requires that it has one group in the hierarchies of both controllers.
const kubelet = `[Unit]
Description=kubelet
After=network.target containerd.service testenv-kernel.service
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/bin/kubelet
CPUAccounting=yes
MemoryAccounting=yes
Restart=always
RestartSec=500ms

[Install]
WantedBy=multi-user.target
`

const kubeadmDropIn = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
  --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`

// kernel stands in for what belongs to the machine's kernel: the files of /proc/sys that a kubelet writes, with
// the values that it wants, and the log in which it looks for the deeds of the memory killer, which is empty here.
const kernel = `[Unit]
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/testenv/kernel
`

const kernelScript = `#!/bin/sh
set -eu
while read -r name value; do
	file=/run/testenv-kernel/$name
	mkdir -p "$(dirname "$file")"
	echo "$value" >"$file"
	mount --bind "$file" "/proc/sys/$name"
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
[ -e /dev/kmsg ] || { touch /dev/kmsg && mount --bind /dev/null /dev/kmsg; } # a link would have null hidden with it
echo 1 >/proc/sys/net/ipv4/ip_forward
mount --make-rshared /
`

// images imports the images before the boot ends, and so before cloud-init runs its last commands.
const images = `[Unit]
After=containerd.service
Requires=containerd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ctr --namespace=k8s.io images import /` + imageArchive + `
`

const imageArchive = "usr/lib/testenv/images.tar"

// route is the default route that a machine has. Without one kubeadm and the kubelet do not find the address of the node.
const route = `[Unit]
After=network.target
Before=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip route replace default dev eth0
`

// kubernetesFiles are the files of a node; number makes the subnet of its pods.
func kubernetesFiles(number byte) map[string]string {
	return map[string]string{
		"etc/resolv.conf":                                          "# There is no name server. A kubelet needs the file.\n",
		"etc/containerd/config.toml":                               containerdConfig,
		"etc/cni/net.d/10-testenv.conflist":                        fmt.Sprintf(bridge, number),
		"usr/lib/systemd/system/kubelet.service":                   kubelet,
		"usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": kubeadmDropIn,
		"usr/lib/systemd/system/testenv-images.service":            images,
		"usr/lib/systemd/system/testenv-kernel.service":            kernel,
		"usr/lib/systemd/system/testenv-route.service":             route,
		"usr/lib/testenv/kernel":                                   kernelScript,
	}
}

// enable makes the node start what kubernetesFiles has, as the packages do.
func enable(root string) error {
	if err := os.Chmod(filepath.Join(root, "usr/lib/testenv/kernel"), 0o755); err != nil {
		return err
	}
	for unit, target := range map[string]string{
		"kubelet": "multi-user", "testenv-images": "multi-user", "testenv-kernel": "sysinit", "testenv-route": "multi-user",
	} {
		wants := filepath.Join(root, "etc/systemd/system", target+".target.wants")
		if err := os.Mkdir(wants, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		unit += ".service"
		if err := os.Symlink("/usr/lib/systemd/system/"+unit, filepath.Join(wants, unit)); err != nil {
			return err
		}
	}
	return nil
}

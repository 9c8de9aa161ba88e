package promise_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// newScene draws an image of a distribution, what other streams and people have done to it, and a stream.
func (l *lane) newScene(t *testing.T, r *rand.Rand) *scene {
	t.Helper()
	all := distributions()
	on, c := all[r.IntN(len(all))], &scene{}
	if chance(r, 4) {
		c.killed = time.Duration(1+r.IntN(120)) * time.Millisecond
	}
	c.install(r, on)
	c.stream = draw(r, on)
	paths := []string{"etc/sysctl.d/99-machineadm-a.conf"}
	for _, change := range l.image(t, c).host(t, c.stream.text(), "plan").changes {
		if name, ok := strings.CutPrefix(change.ID, "file:/"); ok {
			paths = append(paths, name)
		}
	}
	for range r.IntN(3) {
		c.steps = append(c.steps, part{applied: draw(r, on)})
		if chance(r, 2) {
			c.damage(r, paths)
		}
	}
	for range r.IntN(3) {
		c.damage(r, paths)
	}
	return c
}

// install makes the machine of a distribution.
func (c *scene) install(r *rand.Rand, d distribution) {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if name != "etc/os-release" && chance(r, 25) {
			continue
		}
		c.do(opFile, name, d.files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.links)) {
		c.do(opLink, name, d.links[name])
	}
	for _, name := range d.enabled {
		if unit := "usr/lib/systemd/system/" + path.Base(name); d.files[unit] != "" && !chance(r, 8) {
			c.do(opLink, "etc/systemd/system/"+name, "/"+unit)
		}
	}
}

// damage adds something that is not in order. Paths are those that a document writes on the machine without damage.
func (c *scene) damage(r *rand.Rand, paths []string) {
	at := func() string { return paths[r.IntN(len(paths))] }
	dir := func() string {
		d := path.Dir(at())
		for strings.Contains(d, "/") && chance(r, 3) {
			d = path.Dir(d)
		}
		return d
	}
	unit := func() string {
		return pick(r, "chrony", "chronyd", "ntpsec", "systemd-timesyncd", "containerd", "kubelet", "sssd", "zramswap") + ".service"
	}
	switch r.IntN(25) {
	case 0:
		d := dir()
		c.do(opDirectory, d, "")
		c.do(opMode, d, pick(r, "0777", "0775", "1777", "0700", "0555"))
	case 1:
		d := dir()
		c.do(opDirectory, d, "")
		c.do(opOwner, d, pick(r, "1000:1000", "0:1000", "103:103", "105:105"))
	case 2:
		c.do(opFile, at(), pick(r, "", "x\n", "\xff\xfe\n", "a\x00b\n", "\ufeffversion = 2\r\n"))
	case 3:
		c.do(opDirectory, at(), "")
	case 4:
		c.do(opLink, at(), pick(r, "/dev/null", "/nowhere", "nowhere", "/etc/hostname", "/etc/newdir/", ".", "/usr/share/x"))
	case 5:
		d := dir()
		c.do(opDirectory, "srv", "")
		c.do(opRemove, d, "")
		c.do(opLink, d, pick(r, "/nowhere", "/srv", "/dev/null", "/usr/lib/x", path.Base(d)))
	case 6:
		c.do(opFile, dir(), "a file\n")
	case 7:
		p := at()
		c.do(pick(r, opDirectory, opLink, opPipe), path.Dir(p)+"/."+path.Base(p)+".machineadm-tmp", "/nowhere")
	case 8:
		c.do(opAttribute, pick(r, at(), dir()), pick(r, "i", "a"))
	case 9:
		c.do(opMode, at(), pick(r, "0600", "0444", "4755", "1644", "0666", "0000"))
	case 10:
		c.do(opPipe, at(), "")
	case 11:
		c.do(opLink, pick(r, "etc", "etc", "run")+"/systemd/system/"+unit(), "/dev/null")
	case 12:
		c.do(opLink, "etc/systemd/system/"+unit(), "/usr/lib/systemd/system/other.service")
	case 13:
		c.do(opFile, "etc/systemd/system/"+unit(), pick(r, "[Service]\nExecStart=/bin/true\n", "", "[Install]\nAlso=missing.service\nWantedBy=multi-user.target\n[Service]\nExecStart=/usr/sbin/chronyd\n"))
	case 14:
		c.do(opFile, "usr/lib/systemd/system/"+unit(), "[Service]\nExecStart=/usr/sbin/chronyd\n")
	case 15:
		c.do(opFile, "etc/systemd/system/multi-user.target.wants", "")
	case 16:
		c.do(opFile, "etc/systemd/system/multi-user.target.wants/"+unit(), "")
	case 17:
		c.do(opRemove, pick(r, "etc/passwd", "etc/os-release", "etc/systemd", "etc/containerd", "usr/lib/systemd"), "")
	case 18:
		c.do(pick(r, opTwice, opCRLF, opCut, opBOM), at(), "")
	case 19:
		c.do(opOwner, at(), "1000:1000")
	default:
		name, text := strange(r)
		c.do(opFile, name, text)
	}
}

// draw is a random stream of one to four documents, most of which suit the distribution.
func draw(r *rand.Rand, on distribution) stream {
	kinds := []func(*rand.Rand, distribution) document{sysctlDocument, sysctlDocument, timesyncDocument, containerDocument, nodeDocument, domainDocument}
	var out stream
	for range 1 + r.IntN(4) {
		d := kinds[r.IntN(len(kinds))](r, on)
		if !slices.ContainsFunc(out, func(o document) bool { return o.kind == d.kind && o.name == d.name }) {
			out = append(out, d)
		}
	}
	return out
}

// fields are those that a chance of one in each number takes.
type fields struct {
	r    *rand.Rand
	spec []string
}

func (f *fields) add(oneIn int, texts ...string) {
	if chance(f.r, oneIn) {
		f.spec = append(f.spec, pick(f.r, texts...))
	}
}

func (f *fields) document(kind, name string) document {
	when := ""
	if chance(f.r, 25) {
		when = ", when: " + pick(f.r, "{os: [linux]}", windowsOnly, debianOnly, fedoraOnly)
	}
	return document{kind, name, when, f.spec}
}

func sysctlDocument(r *rand.Rand, _ distribution) document {
	f := &fields{r: r}
	var parameters []string
	for _, key := range []string{"kernel.panic", "vm.swappiness", "net.ipv4.ip_forward", "net/ipv4/conf/all/rp_filter", "net.ipv6.conf.all.forwarding"} {
		if chance(r, 3) {
			parameters = append(parameters, fmt.Sprintf("%s: %s", key, pick(r, "1", "1", "1", "2", `"1"`)))
		}
	}
	if chance(r, 40) {
		parameters = append(parameters, pick(r, "kernel..panic: 1", "vm: 1", "vm.x: true"))
	}
	if len(parameters) > 0 {
		f.add(1, "parameters: {"+strings.Join(parameters, ", ")+"}")
	}
	f.add(5, "profiles: [kubernetes]")
	f.add(4, "modules: [overlay]", "modules: [br_netfilter, overlay]")
	f.add(20, "ignoreMissing: [vm.swappiness]", "unknown: 1")
	if len(f.spec) == 0 {
		f.add(1, "modules: [overlay]")
	}
	return f.document("Sysctl", pick(r, "a", "b", "c"))
}

func timesyncDocument(r *rand.Rand, on distribution) document {
	f := &fields{r: r}
	daemons := []string{"chronyd", "ntpd", "systemd"}
	if !chance(r, 15) {
		daemons = slices.DeleteFunc(daemons, func(name string) bool { return !on.runs(name) })
	}
	if len(daemons) == 0 {
		return sysctlDocument(r, on)
	}
	f.add(1, "provider: "+pick(r, daemons...))
	f.add(1, "servers: [{address: ntp1.example.com}]", "servers: [{address: 192.0.2.1, prefer: true}, {address: ntp2.example.com}]", "servers: [{address: ntp1.example.com, iburst: false, minPoll: 6, maxPoll: 8}]", "pools: [{address: pool.example.com}]", "profile: aws",
		"servers: [{address: ntp1.example.com, key: {id: 1, type: SHA256, value: {value: canary0123456789}}}]")
	f.add(30, "profile: gcp", "profile: azure", "profile: unknown")
	f.add(10, "fallback: [ntp7.example.com]")
	f.add(6, "waitForSync: {timeout: 1m}")
	f.add(25, "refClocks: [{driver: pps, device: /dev/pps0}]", "refClocks: [{driver: phc, device: /dev/ptp0}]")
	f.add(8, "makeStep: {threshold: 1s, limit: 3}", "makeStep: {threshold: 400ms, limit: -1}", "makeStep: {threshold: 1s, limit: 0}", "makeStep: {threshold: x, limit: 3}")
	f.add(8, "rtcSync: true", "rtcSync: false")
	f.add(8, "disableOthers: false")
	f.add(6, "keepDistributionSources: true")
	f.add(8, "providerConfig: {directives: [\"makestep 2 2\"]}", "providerConfig: {directives: [\"maxdistance 1\", \"server ntp6 port 11123\"]}", "providerConfig: {directives: [\"driftfile /var/lib/drift\", \"tos maxdist 16\"]}", "providerConfig: {unknown: 1}", "providerConfig: {rootDistanceMaxSec: 30}")
	return f.document("Timesync", pick(r, "t", "t", "t", "u"))
}

func containerDocument(r *rand.Rand, on distribution) document {
	f := &fields{r: r}
	f.add(2, "cgroupDriver: systemd", "cgroupDriver: systemd", "cgroupDriver: cgroupfs")
	if on.files["var/lib/dpkg/status"] == "" { // where containerd is installed, validate would check another version than plan
		f.add(1, "providerConfig: {version: '1.7'}", "providerConfig: {version: '2.1'}", "providerConfig: {version: '2.3'}")
	} else {
		f.add(12, "providerConfig: {patches: [\"version = 3\\n[plugins.'io.containerd.cri.v1.runtime']\\nenable_selinux = true\\n\"]}")
	}
	f.add(4, "sandboxImage: registry.example.com/pause:3.10")
	f.add(4, "registries: {registry.example.com: {server: \"https://m.example.com\"}}", "registries: {_default: {mirrors: [{url: \"https://m.example.com\"}]}, \"b.example.com:5000\": {server: \"http://b.example.com:5000\"}}",
		"registries: {a.example.com: {auth: {username: u, password: {value: canary}}}}", "registries: {}")
	f.add(6, "proxy: {https: \"http://proxy.example.com:3128\", noProxy: [10.0.0.0/8]}", "proxy: {httpsSecret: {value: \"http://u:canary@proxy.example.com:3128\"}}")
	f.add(8, "imports: [/etc/eks/*.toml]", "imports: [/etc/site/a.toml]")
	f.add(8, "rootDir: /data/containerd")
	f.add(10, "oomScore: -999", "oomScore: 0")
	f.add(10, "logLevel: debug")
	f.add(8, "runtimes: {nvidia: {type: io.containerd.runc.v2, binary: /usr/bin/nvidia-container-runtime}}, defaultRuntime: nvidia", "runtimes: {crun: {binary: /usr/bin/crun}}")
	f.add(10, "cni: {binDirs: [/opt/cni/bin], confDir: /etc/cni/net.d}")
	f.add(10, "snapshotter: native", "snapshotter: overlayfs")
	f.add(10, "registryDirs: [/etc/docker/certs.d]")
	if len(f.spec) == 0 {
		f.add(1, "cgroupDriver: systemd")
	}
	return f.document("ContainerRuntime", "node")
}

func nodeDocument(r *rand.Rand, _ distribution) document {
	f := &fields{r: r}
	f.add(1, "role: controlPlaneInit, kubernetesVersion: v1.37.1")
	var files []string
	for range r.IntN(4) {
		name, text := strange(r)
		if chance(r, 3) {
			name = pick(r, "etc/kms/a", "etc/kms/a/b", "etc/sysctl.d/99-machineadm-a.conf/x", "etc/sysctl.d", "etc/systemd/system", "etc/containerd/certs.d/registry.example.com/hosts.toml", "etc/machineadm/defaults.yaml", "etc/chrony", "opt/link/x", "etc/os-release", "etc/systemd/system/containerd.service", "lib/x", "etc/kubernetes/cloud.conf")
		}
		more := pick(r, "", "", "", ", mode: '0600'", ", owner: 'ntp:ntp'", ", owner: '65532:65532'")
		files = append(files, fmt.Sprintf("{path: /%s, content: %q%s}", name, text, more))
	}
	if len(files) > 0 {
		f.add(1, "files: ["+strings.Join(files, ", ")+"]")
	}
	f.add(4, "node: {swap: \"off\"}")
	f.add(10, "staticPods: [{name: x, manifest: \"{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: kube-system}, spec: {containers: [{name: c, image: x/y:1}]}}\"}]")
	return f.document("KubernetesNode", "node")
}

func domainDocument(r *rand.Rand, _ distribution) document {
	f := &fields{r: r}
	f.add(1, "domain: ad.example.com")
	f.add(2, "sssd: {manage: true}")
	f.add(6, "krb5Conf: {manage: false}")
	f.add(6, "servers: [dc1.ad.example.com]")
	f.add(8, "keytab: {path: /etc/ad/krb5.keytab, owner: 'root:ntp', mode: '0640'}")
	f.add(12, "state: absent")
	return f.document("DomainJoin", "corp")
}

package main

import (
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

// doubts warns of values that the kernel takes and with which containers, or what comes later, do not work. Sources: kernel documentation,
// admin-guide/sysctl and networking/ip-sysctl; namespaces(7).
func (r *resolver) doubts() {
	// few are the least values with which a node works.
	few := map[sysctld.Key]struct {
		least   int64
		message string
	}{
		"fs/nr_open":         {524288, "is less than the limit of open files that systemd and containerd.service ask for, and services do not start: use at least 1048576"},
		"fs/file-max":        {65536, "is the number of open files of the whole machine, with which a node fails: use at least 1000000, or remove it"},
		"kernel/threads-max": {4096, "is the number of threads of the whole machine, with which a node fails: remove it"},
		"kernel/pid_max":     {4096, "is the number of processes and threads of the whole machine, with which a node fails: use 4194304"},
	}
	warn := func(key sysctld.Key, bad func(n int64) bool, message string) {
		if n, err := strconv.ParseInt(r.byKey[key].value, 0, 64); err == nil && r.byKey[key].explicit && bad(n) {
			r.warn(r.byKey[key].field, message)
		}
	}
	zero := func(n int64) bool { return n == 0 }
	for key, limit := range few {
		warn(key, func(n int64) bool { return n < limit.least }, limit.message)
	}
	for _, kind := range []string{"mnt", "net", "pid", "ipc", "uts"} {
		warn(sysctld.Key("user/max_"+kind+"_namespaces"), zero, "lets no container start, each of which has namespaces of this kind: remove it")
	}
	warn("user/max_user_namespaces", zero, "lets no pod with hostUsers: false start: remove it, or use such pods on other nodes alone")
	warn("kernel/modules_disabled", func(n int64) bool { return n != 0 }, "keeps modules from being loaded until the next boot, the ones of kube-proxy, of network plugins and of overlay too: load them all before, and write it with the last document")
	warn("vm/min_free_kbytes", func(n int64) bool { return n >= 64<<20 }, "is in KiB, and as much memory as this is free on few machines: divide bytes by 1024")
	const forward, all, later = sysctld.Key("net/ipv4/ip_forward"), sysctld.Key("net/ipv4/conf/all/forwarding"), sysctld.Key("net/ipv4/conf/default/forwarding")
	on := r.byKey[forward].value == "1"
	if p := r.byKey[all]; p.value != "" && r.byKey[forward].value != "" && p.value != r.byKey[forward].value {
		r.refuse(document.Path(p.field), "contradicts net.ipv4.ip_forward, which is the same switch of the kernel", "remove one of the two, or write the same value")
	}
	warn(later, func(n int64) bool { return n == 0 && on }, "keeps interfaces that are made later, the ones of pods, from forwarding: remove it")
	if p := r.byKey["net/ipv4/tcp_mem"]; p.explicit {
		words := strings.Fields(p.value)
		if n, err := strconv.ParseInt(append(words, "")[max(len(words)-1, 0)], 0, 64); err == nil && n >= 16<<20 {
			r.warn(p.field, "is in pages of the memory, usually 4096 bytes, and this is more than most machines have: divide bytes by 4096")
		}
	}
}

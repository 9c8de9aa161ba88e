package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

func sysctl(t *testing.T, spec string) v1alpha1.Sysctl {
	t.Helper()
	doc := v1alpha1.Sysctl{Header: v1alpha1.Header{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSysctl, Metadata: v1alpha1.Metadata{Name: "node"},
	}}
	if err := json.Unmarshal([]byte(spec), &doc.Spec); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec string
		want       []string // "FIELD: part of the message", all of them
	}{
		{"empty spec", `{}`, []string{"spec: has no parameters"}},
		{"bad keys", `{"parameters":{"a..b":1,"net.*.x":1,"-k.k":1}}`, []string{
			`spec.parameters["-k.k"]: does not begin`, `spec.parameters["a..b"]: empty segment`,
			`spec.parameters["net.*.x"]: wildcards`,
		}},
		{"two spellings", `{"parameters":{"kernel.panic":1,"kernel/panic":1}}`, []string{
			`spec.parameters["kernel/panic"]: names the same parameter as kernel.panic`,
		}},
		{"one switch", `{"parameters":{"net.ipv4.ip_forward":1,"net.ipv4.conf.all.forwarding":0}}`, []string{
			`spec.parameters["net.ipv4.conf.all.forwarding"]: contradicts net.ipv4.ip_forward`,
		}},
		{"a value of two lines", `{"parameters":{"kernel.panic":"1\nvm.x=2"}}`, []string{
			`spec.parameters["kernel.panic"]: control characters`,
		}},
		{"a template", `{"parameters":{"kernel.panic":"{{ panic }}","vm.swappiness":"${SWAPPINESS}"}}`, []string{
			`spec.parameters["kernel.panic"]: mark of a template`, `spec.parameters["vm.swappiness"]: mark of a template`,
		}},
		{"a value that is too long for one write", `{"parameters":{"kernel.core_pattern":"` + strings.Repeat("x", 4096) + `"}}`, []string{
			`spec.parameters["kernel.core_pattern"]: 4095 bytes`,
		}},
		{"module names", `{"modules":["overlay","../x","a b","-r",""]}`, []string{
			"spec.modules[1]: module name", "spec.modules[2]: module name", "spec.modules[3]: module name",
			"spec.modules[4]: module name",
		}},
		{"ignoreMissing", `{"parameters":{"kernel.panic":1},"ignoreMissing":["kernel/panic","kernel.painc","x"]}`, []string{
			"spec.ignoreMissing[1]: no parameter of this document", "spec.ignoreMissing[2]: two segments",
		}},
		{"providerConfig", `{"modules":["overlay"],"providerConfig":{"b":1,"a":2}}`, []string{
			"spec.providerConfig.a: unknown field", "spec.providerConfig.b: unknown field",
		}},
		{"providerConfig of another type", `{"modules":["overlay"],"providerConfig":[]}`, []string{
			"spec.providerConfig: must be a mapping",
		}},
		{"violations of several fields", `{"parameters":{"x":1},"modules":["."]}`, []string{
			`spec.parameters.x: two segments`, "spec.modules[0]: module name",
		}},
	} {
		_, violations := resolve(sysctl(t, c.spec), profiles())
		if len(violations) != len(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, violations, c.want)
			continue
		}
		for i, want := range c.want {
			field, message, _ := strings.Cut(want, ": ")
			if violations[i].Field != field || !strings.Contains(violations[i].Message, message) {
				t.Errorf("%s: got %+v, want %s", c.name, violations[i], want)
			}
		}
	}
}

// TestValuesThatTheKernelRefuses: values beyond the table are refused. TestValuesOfTheKernel compares the table with the kernel.
func TestValuesThatTheKernelRefuses(t *testing.T) {
	t.Parallel()
	for parameters, want := range map[string]string{
		`"kernel.numa_balancing":"on"`:                                             "is not a whole number",
		`"net.unix.max_dgram_qlen":"-"`:                                            "is not a whole number",
		`"net.ipv4.neigh.eth0.gc_stale_time":"1m"`:                                 "is not a whole number",
		`"kernel.modules_disabled":2`:                                              "is not a whole number from 1 to 1",
		`"vm.compaction_proactiveness":101`:                                        "is not a whole number from 0 to 100",
		`"vm.lowmem_reserve_ratio":"256 256 32"`:                                   "",
		`"vm.swappiness":201`:                                                      "is not a whole number from 0 to 200",
		`"vm.swappiness":"1 # low"`:                                                "is not a whole number from 0 to 200",
		`"vm.swappiness":"10 20"`:                                                  "has not 1 numbers",
		`"vm.swappiness":"0x14"`:                                                   "",
		`"vm.swappiness":-1`:                                                       "is not a whole number from 0 to 200",
		`"vm.swappiness":"08"`:                                                     "is not a whole number from 0 to 200",
		`"net.ipv4.ip_forward":"enabled"`:                                          "is not a whole number",
		`"net.core.rmem_max":"16M"`:                                                "is not a whole number of at least 2304",
		`"net.core.rmem_max":4294967296`:                                           "is not a whole number of at least 2304",
		`"fs.file-max":9223372036854775807`:                                        "",
		`"kernel.panic":-1`:                                                        "",
		`"net.ipv4.tcp_rmem":"4096 87380"`:                                         "has not 3 numbers",
		`"net/ipv4/tcp_rmem":"4096\t87380   6291456"`:                              "",
		`"net.ipv4.ip_local_port_range":"65535 1024"`:                              "is a range that ends before it begins",
		`"net.ipv4.ip_local_port_range":"40000-60999"`:                             "is not 2 whole numbers from 1 to 65535",
		`"net.ipv4.neigh.default.gc_thresh3":"many"`:                               "is not a whole number of at least 0",
		`"net/ipv4/conf/eth0.100/rp_filter":"strict"`:                              "is not a whole number",
		`"kernel.core_pattern":"|/usr/bin/save %p"`:                                "",
		`"net.ipv4.tcp_congestion_control":"bbr"`:                                  "",
		`"net.ipv4.ping_group_range":"0 4294967295"`:                               "is not 2 whole numbers",
		`"net.ipv6.conf.default.addr_gen_mode":"eui64"`:                            "is not a whole number from 0 to 3",
		`"net.ipv4.ip_unprivileged_port_start":"0"`:                                "",
		`"net.netfilter.nf_conntrack_max":"1_000_000"`:                             "is not a whole number of at least 0",
		`"kernel.core_pattern":"/` + strings.Repeat("x", 127) + `"`:                "has more than 127 bytes",
		`"kernel.core_pattern":"/` + strings.Repeat("x", 126) + `"`:                "",
		`"net.ipv4.tcp_congestion_control":"BBR"`:                                  "is not a name",
		`"net.core.default_qdisc":"fq_codel"`:                                      "",
		`"net.ipv4.ip_local_reserved_ports":"30000:32767"`:                         "is not a list of ports",
		`"net.ipv4.ip_local_reserved_ports":"8080,30000-32767"`:                    "",
		`"net.ipv4.ip_local_reserved_ports":""`:                                    "",
		`"net.ipv4.tcp_available_congestion_control":"bbr"`:                        "is what the kernel reports",
		`"ipv4.ip_forward":1`:                                                      "is no parameter of a kernel, which has ipv4 below net",
		`"vm.dirty_ratio":10,"vm.dirty_bytes":1048576`:                             "sets spec.parameters[\"vm.dirty_ratio\"] to 0",
		`"vm.dirty_ratio":10,"vm.dirty_bytes":0`:                                   "",
		`"net.ipv4.ipfrag_high_thresh":100000,"net.ipv4.ipfrag_low_thresh":200000`: "is more than net.ipv4.ipfrag_high_thresh",
		`"net.ipv4.ipfrag_high_thresh":200000,"net.ipv4.ipfrag_low_thresh":100000`: "",
		`"net.ipv4.ipfrag_low_thresh":100000`:                                      "",
		`"kernel.sched_rt_runtime_us":950000,"kernel.sched_rt_period_us":500000`:   "is more than kernel.sched_rt_period_us",
		`"kernel.sched_rt_runtime_us":-1,"kernel.sched_rt_period_us":500000`:       "",
		`"kernel.printk_devkmsg":"1"`:                                              "is not a value of this parameter",
		`"kernel.printk_devkmsg":"off"`:                                            "",
		`"kernel.seccomp.actions_logged":"kill_process allow"`:                     "has a name of no action",
		`"kernel.seccomp.actions_logged":"kill_process trap"`:                      "",
		`"dev.tty.ldisc_autoload":"no"`:                                            "is not a whole number",
		`"net.ipv4.conf.eth0.100.rp_filter":1`:                                     "has a dot in the name of its interface",
		`"net/ipv4/conf/eth0.100/rp_filter":1`:                                     "",
		`"user.max_mnt_namespaces":-5`:                                             "is not a whole number of at least 0",
		`"fs.nr_open":10`:                                                          "is not a whole number of at least 64",
		`"vm.overcommit_ratio":80,"vm.overcommit_kbytes":1000`:                     "sets spec.parameters[\"vm.overcommit_ratio\"] to 0",
	} {
		_, violations := resolve(sysctl(t, `{"parameters":{`+parameters+`}}`), profiles())
		got := ""
		for _, v := range violations {
			got += v.Message
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", parameters, got, want)
		}
	}
}

func TestResolveRefusesABadName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a.", 118)
	for name, violations := range map[string]int{
		"../../etc/passwd": 1, "": 1, long + "aa": 1, long + "a": 1, strings.Repeat("a.", 117) + "aa": 0, "site.node": 0,
	} {
		doc := sysctl(t, `{"modules":["overlay"]}`)
		doc.Metadata.Name = name
		if _, got := resolve(doc, profiles()); len(got) != violations || violations > 0 && got[0].Field != "metadata.name" {
			t.Errorf("%d characters: got %v", len(name), got)
		}
	}
}

func TestViolationsNeverQuoteValues(t *testing.T) {
	t.Parallel()
	_, violations := resolve(sysctl(t, `{"parameters":{"kernel.panic":"canary\n"},"profiles":["canary"],
		"modules":["canary canary"],"ignoreMissing":["canary"],"providerConfig":{"a":"canary"}}`), profiles())
	for _, v := range violations {
		if strings.Contains(v.Field+v.Message+v.Hint, "canary") {
			t.Errorf("quotes a value: %+v", v)
		}
	}
}

func TestParametersRefuseOtherTypes(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"true", "1.5", "null", "[1]", `{"a":1}`} {
		var doc v1alpha1.Sysctl
		violations := document.Unmarshal([]byte(`{"apiVersion":"a/v1","kind":"Sysctl","metadata":{"name":"n"},`+
			`"spec":{"parameters":{"kernel.panic":`+value+`}}}`), &doc)
		if len(violations) != 1 || violations[0].Field != `spec.parameters["kernel.panic"]` {
			t.Errorf("%s: got %v", value, violations)
		}
	}
}

func TestProfileValues(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"kubernetes": "net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-ip6tables=1 net.bridge.bridge-nf-call-iptables=1" +
			" modules overlay br_netfilter",
		"kubernetes-ipv6": "net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.forwarding=1 net.bridge.bridge-nf-call-ip6tables=1" +
			" modules overlay br_netfilter",
		"kubelet-protect-defaults": "kernel.keys.root_maxbytes=25000000 kernel.keys.root_maxkeys=1000000 kernel.panic=10" +
			" kernel.panic_on_oops=1 vm.overcommit_memory=1 vm.panic_on_oom=0 modules",
	} {
		got, violations := resolve(sysctl(t, `{"profiles":["`+name+`"]}`), profiles())
		if len(violations) > 0 {
			t.Fatal(violations)
		}
		var parts []string
		for _, p := range got.parameters {
			parts = append(parts, p.key.String()+"="+p.value)
		}
		parts = append(append(parts, "modules"), got.modules...)
		if text := strings.Join(parts, " "); text != want {
			t.Errorf("%s: got %s, want %s", name, text, want)
		}
	}
}

func TestAnExplicitValueOverridesAProfile(t *testing.T) {
	t.Parallel()
	got, violations := resolve(sysctl(t, `{"profiles":["kubernetes","kubelet-protect-defaults"],"parameters":{
		"net/ipv4/ip_forward":0,"kernel.panic":" 10 ","vm.overcommit_memory":2}}`), profiles())
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	for _, p := range got.parameters {
		if p.key == ipForward && p.value != "0" {
			t.Errorf("got %+v", p)
		}
	}
	if len(got.warnings) != 2 {
		t.Fatalf("got %v, want a warning for each value that differs", got.warnings)
	}
	forward, memory := got.warnings[0], got.warnings[1]
	if forward.Field != `spec.parameters["net/ipv4/ip_forward"]` || !strings.Contains(forward.Message, "kubeadm's preflight") {
		t.Errorf("got %+v", forward)
	}
	if memory.Field != `spec.parameters["vm.overcommit_memory"]` || !strings.Contains(memory.Message, "kubelet-protect-defaults") {
		t.Errorf("got %+v", memory)
	}
}

func TestProfilesThatContradict(t *testing.T) {
	t.Parallel()
	known := map[string]profile{
		"a": {parameters: map[sysctld.Key]string{"kernel/panic": "1", "kernel/sysrq": "1\t2"}, modules: []string{"m-x"}},
		"b": {parameters: map[sysctld.Key]string{"kernel/panic": "2", "kernel/sysrq": "1 2"}, modules: []string{"m_x"}},
	}
	_, violations := resolve(sysctl(t, `{"profiles":["a","b"]}`), known)
	if len(violations) != 1 || violations[0].Field != "spec.profiles[1]" ||
		!strings.Contains(violations[0].Message, "kernel.panic") || !strings.Contains(violations[0].Message, "spec.profiles[0]") {
		t.Errorf("got %v", violations)
	}
	got, violations := resolve(sysctl(t, `{"profiles":["a","b"],"parameters":{"kernel.panic":3}}`), known)
	if len(violations) > 0 {
		t.Errorf("the explicit value decides, but got %v", violations)
	}
	if !slices.Equal(got.modules, []string{"m-x"}) {
		t.Errorf("one module in two spellings: got %v", got.modules)
	}
}

func TestWritingOrder(t *testing.T) {
	t.Parallel()
	got, _ := resolve(sysctl(t, `{"parameters":{"abi.x":1,"net.ipv4.conf.a0.rp_filter":1,"net.ipv4.conf.default.rp_filter":1,
		"net.ipv4.conf.all.rp_filter":1,"net.ipv4.ip_forward":1,"net.ipv6.conf.all.forwarding":1,"vm.default.x":1}}`), nil)
	var order []string
	for _, p := range got.parameters {
		order = append(order, p.key.String())
	}
	want := []string{
		"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.conf.all.rp_filter",
		"net.ipv4.conf.default.rp_filter", "abi.x", "net.ipv4.conf.a0.rp_filter", "vm.default.x",
	}
	if !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

// TestTraps: a value that is in force and has another effect than its name says gets a warning, which a further parameter ends.
func TestTraps(t *testing.T) {
	t.Parallel()
	for parameters, want := range map[string]string{
		`"net.ipv4.conf.all.rp_filter":0`:                                                    `spec.parameters["net.ipv4.conf.all.rp_filter"]: each interface uses the larger`,
		`"net.ipv4.conf.all.rp_filter":1,"net.ipv4.conf.default.rp_filter":1`:                `spec.parameters["net.ipv4.conf.all.rp_filter"]: each interface uses the larger`,
		`"net.ipv4.conf.all.rp_filter":1,"net/ipv4/conf/eth0.100/rp_filter":1`:               "",
		`"net.ipv4.conf.all.rp_filter":2`:                                                    "",
		`"net.ipv6.conf.eth0.accept_ra":3`:                                                   `spec.parameters["net.ipv6.conf.eth0.accept_ra"]: the kernel takes this value, of which its documentation has no meaning: use one from 0 to 2`,
		`"net.ipv6.conf.eth0.accept_ra":2`:                                                   "",
		`"kernel.randomize_va_space":3`:                                                      `spec.parameters["kernel.randomize_va_space"]: the kernel takes this value`,
		`"kernel.sched_rt_runtime_us":-1`:                                                    "",
		`"vm.swapiness":1`:                                                                   `spec.parameters["vm.swapiness"]: is none of the parameters that Linux has there, as far as they are known: did you mean swappiness?`,
		`"vm.vendor_knob":1`:                                                                 "",
		`"net.ipv4.tcp_congestion_control":"qubic"`:                                          `spec.parameters["net.ipv4.tcp_congestion_control"]: is no name that Linux itself has, so that the kernel refuses it unless a module of others brings it: did you mean cubic?`,
		`"net.ipv4.tcp_congestion_control":"bbr"`:                                            "",
		`"net.core.default_qdisc":"fq-codel"`:                                                `spec.parameters["net.core.default_qdisc"]: is no name that Linux itself has, so that the kernel refuses it unless a module of others brings it: did you mean fq_codel?`,
		`"net.core.default_qdisc":"fq"`:                                                      "",
		`"net.ipv4.ip_forwarding":1`:                                                         `spec.parameters["net.ipv4.ip_forwarding"]: is none of the parameters that Linux has there, as far as they are known: did you mean ip_forward?`,
		`"kernel.sched_autogroup":0`:                                                         `spec.parameters["kernel.sched_autogroup"]: is none of the parameters that Linux has there, as far as they are known: did you mean sched_autogroup_enabled?`,
		`"kernel.core_pattern":"|systemd-coredump %P"`:                                       `spec.parameters["kernel.core_pattern"]: names a program without its directory`,
		`"kernel.core_pattern":"|/usr/bin/save %P"`:                                          "",
		`"kernel.core_pattern":"core"`:                                                       "",
		`"kernel.sched_rt_runtime_us":2000000`:                                               `spec.parameters["kernel.sched_rt_runtime_us"]: is more than the default`,
		`"kernel.sched_rt_runtime_us":2000000,"kernel.sched_rt_period_us":2000000`:           "",
		`"net.ipv4.neigh.default.gc_thresh1":80000,"net.ipv4.neigh.default.gc_thresh2":4096`: `spec.parameters["net.ipv4.neigh.default.gc_thresh1"]: is more than net.ipv4.neigh.default.gc_thresh2`,
		`"net.ipv4.neigh.default.gc_thresh1":1024,"net.ipv4.neigh.default.gc_thresh2":4096`:  "",
		`"kernel.modules_disabled":1`:                                                        `spec.parameters["kernel.modules_disabled"]: keeps modules`,
		`"user.max_net_namespaces":0`:                                                        `spec.parameters["user.max_net_namespaces"]: lets no container start`,
		`"user.max_user_namespaces":0`:                                                       `spec.parameters["user.max_user_namespaces"]: lets no pod`,
		`"user.max_user_namespaces":10000`:                                                   "",
		`"fs.nr_open":1024`:                                                                  `spec.parameters["fs.nr_open"]: is less than the limit`,
		`"fs.nr_open":1048576`:                                                               "",
		`"kernel.pid_max":400`:                                                               `spec.parameters["kernel.pid_max"]: is the number of processes`,
		`"vm.min_free_kbytes":1073741824`:                                                    `spec.parameters["vm.min_free_kbytes"]: is in KiB`,
		`"vm.min_free_kbytes":1048576`:                                                       "",
		`"net.ipv4.tcp_mem":"16777216 16777216 16777216"`:                                    `spec.parameters["net.ipv4.tcp_mem"]: is in pages`,
		`"net.ipv4.tcp_mem":"786432 1048576 1572864"`:                                        "",
		`"net.ipv4.ip_forward":1,"net.ipv4.conf.default.forwarding":0`:                       `spec.parameters["net.ipv4.conf.default.forwarding"]: keeps interfaces`,
		`"net.ipv4.ip_forward":1,"net.ipv4.conf.all.forwarding":1`:                           "",
		`"net.ipv4.neigh.default.gc_thresh1":8192,"net.ipv4.neigh.default.gc_thresh3":1024`:  `spec.parameters["net.ipv4.neigh.default.gc_thresh1"]: is more than`,
		`"net.ipv4.tcp_tw_recycle":1`:                                                        `spec.parameters["net.ipv4.tcp_tw_recycle"]: is a parameter that Linux does not have since 4.12`,
		`"kernel.sched_migration_cost_ns":5000000`:                                           `spec.parameters["kernel.sched_migration_cost_ns"]: is a parameter that Linux does not have since 5.13`,
		`"net.ipv4.tcp_rmem":"16777216 87380 4096"`:                                          `spec.parameters["net.ipv4.tcp_rmem"]: is a minimum, a value in between and a maximum, which do not ascend`,
		`"net.ipv4.tcp_rmem":"4096 87380 16777216"`:                                          "",
		`"net.ipv4.conf.default.rp_filter":0`:                                                "",
		`"net.ipv4.ip_local_port_range":"1024 65000"`:                                        `spec.parameters["net.ipv4.ip_local_port_range"]: connections of the machine take ports of services`,

		`"net.ipv4.ip_local_port_range":"1024\t65000","net.ipv4.ip_local_reserved_ports":"30000-32767"`: "",
		`"net.ipv4.ip_local_port_range":"32768 60999"`:                                                  "",
	} {
		got, violations := resolve(sysctl(t, `{"parameters":{`+parameters+`}}`), profiles())
		if len(violations) > 0 {
			t.Fatalf("%s: %v", parameters, violations)
		}
		text := ""
		for _, w := range got.warnings {
			text += w.Field + ": " + w.Message
		}
		if want == "" && text != "" || !strings.HasPrefix(text, want) {
			t.Errorf("%s: warned %q, want %q", parameters, text, want)
		}
	}
}

// TestRouterAdvertisements: a machine that forwards IPv6 can lose its default route. A document that names accept_ra gets no warning.
func TestRouterAdvertisements(t *testing.T) {
	t.Parallel()
	for spec, warned := range map[string]string{
		`{"parameters":{"net.ipv6.conf.all.forwarding":1}}`:                                        `spec.parameters["net.ipv6.conf.all.forwarding"]`,
		`{"parameters":{"net/ipv6/conf/all/forwarding":" 1"}}`:                                     `spec.parameters["net/ipv6/conf/all/forwarding"]`,
		`{"profiles":["kubernetes","kubernetes-ipv6"]}`:                                            "spec.profiles[1]",
		`{"profiles":["kubernetes-ipv6"],"parameters":{"net/ipv6/conf/eth0.100/accept_ra":2}}`:     "",
		`{"parameters":{"net.ipv6.conf.all.forwarding":1,"net.ipv6.conf.default.accept_ra":"0"}}`:  "",
		`{"parameters":{"net.ipv6.conf.all.forwarding":0}}`:                                        "",
		`{"parameters":{"net.ipv6.conf.default.forwarding":1,"net.ipv4.conf.all.forwarding":1}}`:   "",
		`{"profiles":["kubernetes"]}`:                                                              "",
		`{"parameters":{"net.ipv6.conf.all.forwarding":1,"net.ipv6.conf.all.accept_ra_defrtr":1}}`: `spec.parameters["net.ipv6.conf.all.forwarding"]`,
	} {
		got, violations := resolve(sysctl(t, spec), profiles())
		if len(violations) > 0 {
			t.Fatalf("%s: %v", spec, violations)
		}
		var fields []string
		for _, w := range got.warnings {
			if strings.Contains(w.Message, "router advertisements") {
				fields = append(fields, w.Field)
			}
		}
		if strings.Join(fields, " ") != warned {
			t.Errorf("%s: warned of %v, want %s", spec, fields, warned)
		}
	}
}

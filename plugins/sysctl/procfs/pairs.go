package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

// This file checks parameters that do not go together.

// exclusive refuses parameters of which the kernel sets one to 0 when the other one is written. Sources: mm/page-writeback.c, mm/util.c.
func (r *resolver) exclusive() {
	for first, second := range map[sysctld.Key]sysctld.Key{
		"vm/dirty_ratio": "vm/dirty_bytes", "vm/dirty_background_ratio": "vm/dirty_background_bytes", "vm/overcommit_ratio": "vm/overcommit_kbytes",
	} {
		a, b := r.byKey[first], r.byKey[second]
		if strings.Trim(a.value, "0") != "" && strings.Trim(b.value, "0") != "" {
			r.refuse(document.Path(b.field), "sets "+a.field+" to 0 in the kernel, which has one of the two", "remove one of the two")
		}
	}
}

// ascending refuses a lower bound above its upper bound, which the kernel refuses, and warns where the kernel takes both. Sources:
// net/ipv4/ip_fragment.c, net/ipv6, kernel/sched/rt.c, and Documentation/networking/ip-sysctl.
func (r *resolver) ascending() {
	number := func(key sysctld.Key, otherwise int64) int64 {
		if n, err := strconv.ParseInt(r.byKey[key].value, 0, 64); err == nil {
			return n
		}
		return otherwise
	}
	for _, pair := range [][2]sysctld.Key{
		{"net/ipv4/ipfrag_low_thresh", "net/ipv4/ipfrag_high_thresh"},
		{"net/ipv6/ip6frag_low_thresh", "net/ipv6/ip6frag_high_thresh"},
		{"net/netfilter/nf_conntrack_frag6_low_thresh", "net/netfilter/nf_conntrack_frag6_high_thresh"},
		{"kernel/sched_rt_runtime_us", "kernel/sched_rt_period_us"},
	} {
		low := r.byKey[pair[0]]
		if low.explicit && number(pair[0], 0) > number(pair[1], math.MaxInt64) {
			r.refuse(document.Path(low.field), "is more than "+pair[1].String()+", and the kernel does not take it", "make it smaller")
		}
	}
	const runtime, period = sysctld.Key("kernel/sched_rt_runtime_us"), sysctld.Key("kernel/sched_rt_period_us")
	if low := r.byKey[runtime]; low.explicit && r.byKey[period].value == "" && number(runtime, 0) > 1000000 {
		r.warn(low.field, "is more than the default of "+period.String()+", 1000000, with which the kernel does not take it: set that as well, or make it smaller")
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		at := func(n string) sysctld.Key { return sysctld.Key("net/" + family + "/neigh/default/gc_thresh" + n) }
		for _, pair := range [][2]string{{"1", "2"}, {"2", "3"}, {"1", "3"}} {
			if low := r.byKey[at(pair[0])]; low.explicit && number(at(pair[0]), 0) > number(at(pair[1]), math.MaxInt64) {
				r.warn(low.field, "is more than "+at(pair[1]).String()+", so that the table of neighbours is full before the kernel cleans it up: make it smaller, or the other one larger")
			}
		}
	}
}

package main

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

// nameTable is for a parameter whose value is the name of something that a module of the kernel brings.
type nameTable struct {
	// module begins the name of the module. The parameter list has the names that the kernel has now, if there is one.
	module, list string
	// always are the names that every kernel with the parameter has, and known are those of Linux, as far as modules bring them.
	always, known string
}

// nameTables are of Linux 4.18 to 6.18. Sources: net/ipv4/tcp_*.c and net/sched/sch_*.c.
func nameTables() map[sysctld.Key]nameTable {
	return map[sysctld.Key]nameTable{
		"net/ipv4/tcp_congestion_control": {
			module: "tcp_", list: "net/ipv4/tcp_available_congestion_control", always: "reno",
			known: "bbr bic cdg cubic dctcp dctcp-reno highspeed htcp hybla illinois lp nv scalable vegas veno westwood yeah",
		},
		"net/core/default_qdisc": {
			module: "sch_", always: "pfifo_fast pfifo bfifo noqueue mq",
			known: "cake cake_mq cbq cbs choke codel drr dualpi2 etf ets fq fq_codel fq_pie gred hfsc hhf htb mqprio multiq netem pie plug prio qfq red sfb sfq skbprio taprio tbf teql0",
		},
	}
}

// nameOddity says that Linux has no such name, "" if it has, or for a parameter of another kind.
func nameOddity(key sysctld.Key, value string) string {
	table, ok := nameTables()[key]
	known := strings.Fields(table.always + " " + table.known)
	if !ok || value == "" || slices.Contains(known, value) {
		return ""
	}
	message := "is no name that Linux itself has, so that the kernel refuses it unless a module of others brings it"
	if near := document.Nearest(value, known); near != "" {
		message += ": did you mean " + near + "?"
	}
	return message
}

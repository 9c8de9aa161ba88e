package main

import (
	_ "embed"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

//go:embed values.txt
var valueTable string

// numbers are what the kernel takes as the value of a parameter.
type numbers struct {
	count int
	least int64
	most  uint64
	// meaning is LEAST..MOST, for the values that the documentation of the kernel explains, where the kernel takes others as well.
	meaning string
}

// numbersOf returns what the kernel takes as the value of a parameter that the table has. Otherwise it returns the parameters of the table in its
// directory.
func numbersOf(key sysctld.Key) (n numbers, beside []string) {
	n = numbers{least: math.MinInt32, most: math.MaxInt32}
	in, name := path.Split(string(key))
	for line := range strings.Lines(valueTable) {
		f := strings.Fields(line)
		var directory string
		var names []string
		if f[0] == "numbers" {
			directory, names = f[1]+".", f[2:]
		} else {
			i := strings.LastIndex(f[0], ".")
			directory, names = f[0][:i+1], []string{f[0][i+1:]}
		}
		if ok, _ := path.Match(strings.ReplaceAll(directory, ".", "/"), in); !ok || f[0] == "#" { // each pattern is valid
			continue
		}
		if beside = append(beside, names...); !slices.Contains(names, name) {
			continue
		}
		if n.count = 1; f[0] == "numbers" {
			return n, nil
		}
		n.count, _ = strconv.Atoi(f[1]) // digits, as the others
		if f[2] != "-" {
			n.least, _ = strconv.ParseInt(f[2], 10, 64)
		}
		switch f[3] {
		case "-":
		case "ulong":
			n.most = math.MaxUint64
		default:
			n.most, _ = strconv.ParseUint(f[3], 10, 64)
		}
		n.meaning = strings.Join(f[4:], "")
		return n, nil
	}
	return n, beside
}

// wholeNumber is a number as the kernel reads it: decimal, octal behind 0, or hexadecimal behind 0x.
var wholeNumber = lazyregexp.New(`^-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$`)

// have reports whether a number is within the bounds.
func (n numbers) have(text string) bool {
	if strings.HasPrefix(text, "-") {
		value, err := strconv.ParseInt(text, 0, 64)
		return err == nil && value >= n.least
	}
	value, err := strconv.ParseUint(text, 0, 64)
	return err == nil && value <= n.most && (n.least < 0 || value >= uint64(n.least)) //nolint:gosec // it is not negative
}

// valueFault says why no kernel takes a value of a parameter, or takes a part of it; "" if it does, or if the table has not the parameter.
func valueFault(key sysctld.Key, value string) (message, hint string) {
	if slices.Contains(strings.Fields(readOnly), string(key)) {
		return "is what the kernel reports, and cannot be set", "remove it"
	}
	if first, _, _ := strings.Cut(string(key), "/"); slices.Contains([]string{"bridge", "core", "ipv4", "ipv6", "mptcp", "netfilter"}, first) {
		return "is no parameter of a kernel, which has " + first + " below net", "write net." + first + " at its beginning"
	}
	if parts := strings.Split(string(key), "/"); len(parts) > 5 && parts[0] == "net" && (parts[2] == "conf" || parts[2] == "neigh") {
		return "has a dot in the name of its interface, which is read as a separator", "write it with slashes: net/" + parts[1] + "/" + parts[2] + "/" +
			strings.Join(parts[3:len(parts)-1], ".") + "/" + parts[len(parts)-1]
	}
	if f, ok := textForms()[key]; ok && !f.form.MatchString(value) {
		return f.message, f.hint
	}
	n, _ := numbersOf(key)
	if n.count == 0 {
		return "", ""
	}
	given := strings.Fields(value)
	for _, text := range given {
		if !wholeNumber().MatchString(text) {
			return "is not " + n.form() + ", and the kernel does not take it", "write digits alone: no unit, no word, no comment"
		}
		if !n.have(text) {
			return "is not " + n.form() + ", and the kernel does not take it", ""
		}
	}
	if len(given) != n.count {
		return fmt.Sprintf("has not %d numbers, and the kernel takes a part of them or none", n.count), "write all of them with blanks between"
	}
	if strings.HasSuffix(string(key), "_range") {
		first, _ := strconv.ParseInt(given[0], 0, 64)
		if last, _ := strconv.ParseInt(given[1], 0, 64); first > last {
			return "is a range that ends before it begins, and the kernel does not take it", "write the smaller number first"
		}
	}
	return "", ""
}

// removed are parameters that Linux had, and the first release without them. Sources: the changes of net/ipv4, kernel/sched and mm.
func removed() map[sysctld.Key]string {
	all := map[sysctld.Key]string{
		"net/ipv4/tcp_tw_recycle": "4.12", "net/ipv4/netfilter/ip_conntrack_max": "4.9", "net/ipv4/ip_conntrack_max": "2.6.27",
		"vm/hugepages_treat_as_movable": "4.16", "vm/block_dump": "5.12",
	}
	for _, name := range []string{"latency_ns", "min_granularity_ns", "wakeup_granularity_ns", "migration_cost_ns", "nr_migrate", "tunable_scaling"} {
		all["kernel/sched_"+sysctld.Key(name)] = "5.13"
	}
	return all
}

// oddity says what is strange about a value that a kernel takes, or about a parameter that the table does not have, "" for nothing.
func oddity(key sysctld.Key, value string) string {
	if release := removed()[key]; release != "" {
		return "is a parameter that Linux does not have since " + release + ": remove it, or list it in spec.ignoreMissing for older kernels"
	}
	if given := strings.Fields(value); strings.HasSuffix(string(key), "mem") && len(given) == 3 {
		var numbers []uint64
		for _, text := range given {
			number, _ := strconv.ParseUint(text, 0, 64)
			numbers = append(numbers, number)
		}
		if !slices.IsSorted(numbers) {
			return "is a minimum, a value in between and a maximum, which do not ascend here"
		}
	}
	if odd := nameOddity(key, value); odd != "" {
		return odd
	}
	if program, piped := strings.CutPrefix(value, "|"); piped && key == "kernel/core_pattern" && !strings.HasPrefix(strings.TrimSpace(program), "/") {
		return "names a program without its directory, which the kernel looks for in / alone, so that no dump is kept: write it like |/usr/lib/systemd/systemd-coredump"
	}
	n, beside := numbersOf(key)
	if name := path.Base(string(key)); n.count == 0 {
		// People shorten and lengthen names: sched_autogroup is sched_autogroup_enabled, and ip_forwarding is ip_forward.
		if i := slices.IndexFunc(beside, func(other string) bool { return strings.HasPrefix(other, name+"_en") || other+"ing" == name }); i >= 0 {
			return "is none of the parameters that Linux has there, as far as they are known: did you mean " + beside[i] + "?"
		}
	}
	if near := document.Nearest(path.Base(string(key)), beside); n.count == 0 && near != "" {
		return "is none of the parameters that Linux has there, as far as they are known: did you mean " + near + "?"
	}
	least, most, limited := strings.Cut(n.meaning, "..")
	atLeast, _ := strconv.ParseInt(least, 10, 64)
	atMost, _ := strconv.ParseInt(most, 10, 64)
	if given, err := strconv.ParseInt(value, 0, 64); limited && err == nil && (given < atLeast || given > atMost) {
		return "the kernel takes this value, of which its documentation has no meaning: use one from " + least + " to " + most
	}
	return ""
}

// readOnly are parameters that no kernel lets anyone set.
const readOnly = "fs/dentry-state fs/file-nr fs/inode-nr fs/inode-state kernel/arch kernel/osrelease kernel/ostype kernel/random/boot_id kernel/random/entropy_avail " +
	"kernel/random/uuid kernel/version net/ipv4/tcp_available_congestion_control net/netfilter/nf_conntrack_count"

// textForm is the form of a parameter that is no number, and what is said of another.
type textForm struct {
	form          *regexp.Regexp
	message, hint string
}

// textForms are of texts that the kernel cuts off, looks up or parses. Sources: fs/coredump.c, proc_do_large_bitmap of kernel/sysctl.c, and the
// names that Linux 4.18 to 6.12 registers.
func textForms() map[sysctld.Key]textForm {
	name := textForm{regexp.MustCompile(`^[a-z0-9_-]*$`), "is not a name that a kernel has, and the kernel does not take it", "write it like bbr or fq_codel, in lower case"}
	return map[sysctld.Key]textForm{
		"kernel/core_pattern":   {regexp.MustCompile(`^(?s).{0,127}$`), "has more than 127 bytes, of which the kernel takes the first 127", "write a shorter path, or a program that decides where a dump goes"},
		"kernel/printk_devkmsg": {regexp.MustCompile(`^(?:on|off|ratelimit)$`), "is not a value of this parameter, and the kernel does not take it", "use on, off or ratelimit"},
		"kernel/seccomp/actions_logged": {
			regexp.MustCompile(`^(?:(?:kill_process|kill_thread|trap|errno|user_notif|trace|log)(?:\s+|$))*$`), "has a name of no action that the kernel logs, and it does not take it",
			"use kill_process, kill_thread, trap, errno, user_notif, trace and log, with blanks between",
		},
		"net/core/default_qdisc":          name,
		"net/ipv4/tcp_congestion_control": name,
		"net/ipv4/ip_local_reserved_ports": {
			regexp.MustCompile(`^(?:[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)?$`), "is not a list of ports, and the kernel does not take it", "write it like 8080,30000-32767",
		},
	}
}

// form names the numbers that the kernel takes.
func (n numbers) form() string {
	what := "a whole number"
	if n.count > 1 {
		what = fmt.Sprintf("%d whole numbers", n.count)
	}
	switch {
	case n.most < math.MaxInt32:
		return fmt.Sprintf("%s from %d to %d", what, n.least, n.most)
	case n.least > math.MinInt32:
		return fmt.Sprintf("%s of at least %d", what, n.least)
	}
	return what
}

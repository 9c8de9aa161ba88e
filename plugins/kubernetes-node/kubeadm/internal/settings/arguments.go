package settings

import (
	_ "embed"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

//go:embed arguments.txt
var argumentTable string

// argument is a command line argument of a program: the type of its value, and the minor versions of Kubernetes that have it.
type argument struct {
	what        string
	first, last int
}

func argumentsOf(program string) map[string]argument {
	all := map[string]argument{}
	for line := range strings.Lines(argumentTable) {
		if f := strings.Fields(line); f[0] == program {
			a := argument{what: f[2]}
			a.first, _ = strconv.Atoi(f[3]) // digits
			a.last, _ = strconv.Atoi(f[4])
			all[f[1]] = a
		}
	}
	return all
}

// knownArguments refuses command lines with which a program does not start. Every version of the program, from oldest to spec.kubernetesVersion,
// lacks the argument, or cannot read its value. An argument that some of these versions have is a warning. An argument that is not in the table
// is left alone: a vendor's build can have more.
func (r *resolver) knownArguments(at document.Path, program string, args []v1alpha1.Argument, oldest int) {
	newest := min(r.result.Version.Minor, release.Newest)
	if len(args) == 0 || newest < release.Oldest { // the table begins there
		return
	}
	table, gone := argumentsOf(program), strings.Fields(removedArguments()[program])
	for i, a := range args {
		known, ok := table[a.Name]
		switch {
		case slices.Contains(gone, a.Name):
			continue
		case !ok:
			known = argument{"text", newest, newest}
		}
		message, hint := "", "remove it"
		switch {
		case newest < known.first:
			message = fmt.Sprintf("is an argument of %s from Kubernetes 1.%d on, and an earlier one does not start with it", program, known.first)
		case newest > known.last:
			message = fmt.Sprintf("is an argument of %s until Kubernetes 1.%d, and a later one does not start with it", program, known.last)
		}
		if other, found := strings.CutPrefix(a.Name, "experimental-"); found && table[other].last >= newest {
			hint = "use " + other
		}
		if message != "" {
			r.fault(at.Index(i)+".name", message, hint, max(oldest, release.Oldest) > known.last || newest < known.first)
			continue
		}
		message, hint = argumentFault(known.what, a.Name, a.Value)
		r.refuse(message != "", at.Index(i)+".value", message, hint)
	}
}

// argumentFault says why a program does not start with a value of an argument of a type, "" if it does.
func argumentFault(what, name, value string) (message, hint string) {
	var err error
	bits, noNumber := strconv.Atoi(strings.TrimLeft(what, "abcdefghijklmnopqrstuvwxyz"))
	if noNumber != nil {
		bits = 64
	}
	switch {
	case what == "bool":
		_, err = strconv.ParseBool(value)
		hint = "write true or false"
	case what == "duration":
		_, err = time.ParseDuration(value)
		hint = "write it like 90s, 30m or 24h: there are no days"
	case strings.HasPrefix(what, "float"):
		_, err = strconv.ParseFloat(value, 64)
		hint = "write a number"
	case strings.HasPrefix(what, "int"):
		_, err = strconv.ParseInt(value, 0, bits)
		hint = "write a whole number, without a unit"
	case strings.HasPrefix(what, "uint"):
		_, err = strconv.ParseUint(value, 0, bits)
		hint = "write a whole number of at least 0, without a unit"
	case what == "ip" && net.ParseIP(strings.TrimSpace(value)) == nil:
		return "is not an IP address, and the component does not start", ""
	}
	if err != nil {
		return "is not a value of this argument, and the component does not start", hint
	}
	choices := argumentChoices()[name]
	if value != "" && choices != nil && !slices.Contains(choices, value) {
		return "is not a value of this argument, and the component does not start", "use one of " + strings.Join(choices, ", ")
	}
	return "", ""
}

// argumentChoices are the values of arguments that have few. Sources: component-base/cli/flag, component-base/logs, apiserver/pkg/server/options
// and the embed package of etcd.
func argumentChoices() map[string][]string {
	return map[string][]string{
		"tls-min-version":       {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
		"logging-format":        {"text", "json"},
		"audit-log-format":      {"json", "legacy"},
		"audit-log-mode":        {"batch", "blocking", "blocking-strict"},
		"audit-webhook-mode":    {"batch", "blocking", "blocking-strict"},
		"storage-backend":       {"etcd3"},
		"auto-compaction-mode":  {"periodic", "revision"},
		"logger":                {"zap"},
		"log-level":             {"debug", "info", "warn", "error", "dpanic", "panic", "fatal"},
		"initial-cluster-state": {"new", "existing"},
	}
}

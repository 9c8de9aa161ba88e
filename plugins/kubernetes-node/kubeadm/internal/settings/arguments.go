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
// lacks the argument, or cannot read its value. An argument that some of these versions have is a warning.
func (r *resolver) knownArguments(at document.Path, program string, args []v1alpha1.Argument, oldest int) {
	newest := min(r.result.Version.Minor, release.Newest)
	if len(args) == 0 || newest < release.Oldest { // the table begins there
		return
	}
	table, gone := argumentsOf(program), strings.Fields(removedArguments()[program])
	for i, a := range args {
		known, ok := table[a.Name]
		switch {
		case slices.Contains(gone, a.Name) || r.refused(at.Index(i)):
			continue
		case !ok:
			r.refuse(true, at.Index(i)+".name", "is no argument of "+program+", which does not start with it", otherArgument(a.Name, table, newest))
			continue
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
		if message, hint = argumentFault(program, known.what, a.Name, a.Value, newest); message == "" && a.Name == "controllers" {
			message, hint = controllersFault(a.Value, newest)
		} else if message == "" && program == "kubelet" {
			message, hint = flagFault(a.Name, a.Value)
		}
		r.refuse(message != "", at.Index(i)+".value", message, hint)
		r.refuse(i != lastArgument(args, a.Name) && (a.Name == "v" || known.what != "text" && known.what != "list"), at.Index(i)+".name", "is there twice, and "+program+" takes the last one", "remove one of the two")
	}
}

// otherArgument is the hint for a name that a program does not have.
func otherArgument(name string, table map[string]argument, minor int) string {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	var names []string
	for other, a := range table {
		if a.first <= minor && minor <= a.last {
			names = append(names, other)
		}
	}
	slices.Sort(names)
	if i := slices.IndexFunc(names, func(other string) bool { return other == name || other == name+"-file" }); i >= 0 {
		return "write " + names[i]
	}
	if near := document.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "remove it"
}

// argumentFault says why a program does not start with a value of an argument of a type, "" if it does.
func argumentFault(program, what, name, value string, minor int) (message, hint string) {
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
	case name == "v":
		_, err = strconv.ParseInt(value, 10, 32)
		hint = "write a number: 2 is usual, 4 is for a search of errors"
	case what == "list" && value != "" && slices.ContainsFunc(strings.Split(value, ","), func(item string) bool { return item == "" || strings.TrimSpace(item) != item }):
		return blankItem, "write the items with a comma between them, without blanks"
	}
	if err != nil {
		return "is not a value of this argument, and the component does not start", hint
	}
	form, known := formOf(program, name)
	if !known {
		return "", ""
	}
	return form.fault(value, minor)
}

// controllersFault says why the controller manager of a minor version does not start with a list of controllers.
func controllersFault(value string, minor int) (message, hint string) {
	table := argumentsOf("controllers")
	for i, item := range strings.Split(value, ",") {
		name := strings.TrimPrefix(item, "-")
		if a := table[name]; item == "*" || value == "" || a.first != 0 && a.first <= minor && minor <= a.last {
			continue
		}
		if hint = otherArgument(name, table, minor); table[name].first != 0 {
			hint = "remove it"
		}
		return fmt.Sprintf("item %d is no controller of Kubernetes 1.%d, and the component does not start", i+1, minor), hint
	}
	return "", ""
}

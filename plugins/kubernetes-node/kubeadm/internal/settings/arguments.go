package settings

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"regexp"
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
		if message, hint = argumentFault(known.what, a.Name, a.Value); message == "" && a.Name == "controllers" {
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
	case name == "v":
		_, err = strconv.ParseInt(value, 10, 32)
		hint = "write a number: 2 is usual, 4 is for a search of errors"
	case what == "list" || name == "cipher-suites":
		return listFault(name, value)
	case name == "service-account-issuer" && strings.Contains(value, ":") && !isURL(value):
		return "has a colon and is not a URL, and the component does not start", "write it like https://kubernetes.default.svc.cluster.local"
	case slices.Contains(strings.Fields(etcdURLs), name):
		return urlsFault(value)
	}
	if f, ok := argumentForms()[name]; ok && !f.form.MatchString(value) {
		return "is not a value of this argument, and the component does not start", f.hint
	}
	if err != nil {
		return "is not a value of this argument, and the component does not start", hint
	}
	var number any = json.Number(value)
	if what == "duration" {
		number = value
	}
	if b, ok := argumentBounds()[name]; ok && strings.Trim(value, "0s") != "" && !b.have(number) {
		return fmt.Sprintf("must be from %v to %s: the component does not start with another value", b.least, strconv.FormatFloat(b.most, 'f', -1, 64)), "for a duration these are seconds"
	}
	choices := argumentChoices()[name]
	if value != "" && choices != nil && !slices.Contains(choices, value) {
		return "is not a value of this argument, and the component does not start", "use one of " + strings.Join(choices, ", ")
	}
	return "", ""
}

// listFault says why a component does not start with a list of texts.
func listFault(name, value string) (message, hint string) {
	known := map[string][]string{
		"tls-cipher-suites": cipherSuites(), "cipher-suites": cipherSuites(),
		"oidc-signing-algs":        strings.Fields("RS256 RS384 RS512 ES256 ES384 ES512 PS256 PS384 PS512 EdDSA"),
		"enable-admission-plugins": strings.Fields(admissionPlugins), "disable-admission-plugins": strings.Fields(admissionPlugins),
	}[name]
	for i, item := range strings.Split(value, ",") {
		switch {
		case value == "" || slices.Contains(strings.Fields(removedAdmission), item):
		case item == "" || strings.TrimSpace(item) != item:
			return "has an empty item, or a blank beside a comma, which becomes a part of the item", "write the items with a comma between them, without blanks"
		case name == "cors-allowed-origins" && (!isRegexp(item) || !pins.MatchString(item)):
			return fmt.Sprintf("item %d is not a regular expression with the beginning and the end of a host, and the component does not start", i+1), "write it like ^https://www\\.example\\.com$"
		case name == "watch-cache-sizes" && !cacheSize.MatchString(item):
			return fmt.Sprintf("item %d is not a size of a resource, and the component does not start", i+1), "write it like pods#100 or deployments.apps#100"
		case name == "kubelet-preferred-address-types" && !slices.Contains(strings.Fields(addressTypes), item):
			return fmt.Sprintf("item %d is no type of address, so that the API server does not reach a kubelet by it", i+1), "use some of " + addressTypes
		case name == "strict-transport-security-directives" && !stsDirective.MatchString(item):
			return fmt.Sprintf("item %d is not one that the component has, and it does not start", i+1), "use some of max-age=SECONDS, includeSubDomains, preload"
		case known != nil && !slices.Contains(known, item):
			hint = "use some of " + strings.Join(known, ", ")
			if near := document.Nearest(item, known); near != "" {
				hint = "did you mean " + near + "?"
			} else if strings.Contains(name, "cipher") {
				hint = "write the name that Go and IANA give it, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
			}
			return fmt.Sprintf("item %d is not one that the component has, and it does not start", i+1), hint
		}
	}
	return "", ""
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

func isRegexp(text string) bool {
	_, err := regexp.Compile(text)
	return err == nil
}

func isURL(text string) bool {
	_, err := url.Parse(text)
	return err == nil
}

// urlsFault says why etcd does not start with URLs. Source: NewURLs in client/pkg/types.
func urlsFault(value string) (message, hint string) {
	for i, item := range strings.Split(value, ",") {
		u, err := url.Parse(strings.TrimSpace(item))
		scheme := ""
		if err == nil {
			scheme = u.Scheme
		}
		switch {
		case scheme == "unix" || scheme == "unixs":
		case scheme != "http" && scheme != "https" || u.Port() == "" || u.Path != "":
			return fmt.Sprintf("item %d is not a URL that etcd takes, and it does not start", i+1), "write it like https://10.0.0.5:2379, with a port and without a path"
		}
	}
	return "", ""
}

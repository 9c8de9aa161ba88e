package settings

import (
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/lazyregexp"
)

//go:embed argumentvalues.txt
var argumentValueTable string

const blankItem = "has an empty item, or a blank beside a comma, which becomes a part of the item"

// valueForm is what a program takes as the value of an argument, as argumentvalues.txt has it.
type valueForm struct {
	alternatives []string
	list         bool
	example      string
}

// formOf returns the form of the value of an argument, and whether the table has the argument.
func formOf(program, name string) (form valueForm, known bool) {
	for line := range strings.Lines(argumentValueTable) {
		f := strings.Fields(line)
		fits := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
		if f[0] != program && f[0] != "*" || !slices.ContainsFunc(strings.Split(f[1], "|"), fits) {
			continue
		}
		text, list := strings.CutSuffix(f[2], "...")
		form = valueForm{alternatives: []string{text}, list: list}
		switch {
		case text == "@CIPHER":
			form.alternatives = cipherSuites()
		case text == "@ADMISSION":
			form.alternatives = strings.Fields(admissionPlugins + " " + removedAdmission) // see removed
		case !strings.HasPrefix(text, "/"):
			form.alternatives = strings.Split(text, "|")
		}
		_, form.example, _ = strings.Cut(strings.TrimSpace(line), f[2]+" ")
		return form, true
	}
	return form, false
}

// fault says why the program of a minor version does not start with a value, "" if it does.
func (v valueForm) fault(value string, minor int) (message, hint string) {
	items := []string{value}
	if v.list {
		items = strings.Split(value, ",")
	}
	for i, text := range items {
		switch {
		case value == "" || slices.ContainsFunc(v.alternatives, func(form string) bool { return takes(form, text, minor) }):
		case v.list && strings.TrimSpace(text) != text:
			return blankItem, "write the items with a comma between them, without blanks"
		case v.list:
			return fmt.Sprintf("item %d is not one that the component takes, and it does not start", i+1), v.hint(text, minor)
		case strings.Contains(v.alternatives[len(v.alternatives)-1], ".."):
			least, most, _ := strings.Cut(v.alternatives[len(v.alternatives)-1], "..")
			if most != "" {
				most = " to " + most
			}
			return "must be from " + least + most + ": the component does not start with another value, or does nothing", "for a duration these are seconds"
		default:
			return "is not a value of this argument, and the component does not start", v.hint(text, minor)
		}
	}
	return "", ""
}

// hint says how to write a value.
func (v valueForm) hint(text string, minor int) string {
	values := slices.DeleteFunc(slices.Clone(v.alternatives), func(form string) bool { return strings.ContainsAny(form[:1], "/@-") || strings.Contains(form, "..") })
	near := document.Nearest(text, values)
	switch {
	case slices.Contains(v.alternatives, "@PREVIOUS"):
		return "remove it, or write 1." + strconv.Itoa(minor-1)
	case near != "":
		return "did you mean " + near + "?"
	case v.example != "":
		return "write it like " + v.example
	}
	return "use one of " + strings.Join(values, ", ")
}

// pins matches a regular expression with the beginning or the end of a host, as the API server looks for them.
var pins = lazyregexp.New(`(?:\^|//).*[$:]|[$:].*(?:\^|//)`)

// takes reports whether a text has one form of argumentvalues.txt.
func takes(form, text string, minor int) bool {
	const quantityForm = `[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?`
	if pattern, ok := strings.CutPrefix(form, "/"); ok {
		pattern = strings.ReplaceAll(strings.TrimSuffix(pattern, "/"), "QUANTITY", quantityForm)
		return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(text)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch form {
	case "@ANY", "@ELSEWHERE":
		return true
	case "@PATH":
		return path.IsAbs(text)
	case "@IP":
		return net.ParseIP(text) != nil
	case "@CIDR":
		_, err = netip.ParsePrefix(text)
		return err == nil
	case "@HOST":
		return net.ParseIP(text) != nil || regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`).MatchString(text)
	case "@QUANTITY":
		return takes("/QUANTITY/", text, minor)
	case "@API":
		return registersAPI(text, minor)
	case "@PREVIOUS":
		return text == "1."+strconv.Itoa(minor-1)
	case "@ISSUER":
		return !strings.Contains(text, ":") || err == nil
	case "@ORIGIN":
		_, err = regexp.Compile(text)
		return err == nil && pins().MatchString(text)
	case "@BINDURL", "@PORTURL": // NewURLs, checkBindURLs and checkHostURLs of etcd
		web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Port() != "" && u.Path == "" && u.Hostname() != ""
		return err == nil && (u.Scheme == "unix" || u.Scheme == "unixs") || web && (form == "@PORTURL" || u.Hostname() == "localhost" || net.ParseIP(u.Hostname()) != nil)
	}
	least, most, isRange := strings.Cut(form, "..")
	n, ok := numberOf(text)
	from, _ := numberOf(least)
	to, limited := numberOf(most)
	return form == text || isRange && ok && n >= from && (!limited || n <= to)
}

// numberOf reads a number, or a duration in seconds.
func numberOf(text string) (n float64, ok bool) {
	if whole, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(whole), true
	}
	n, err := strconv.ParseFloat(text, 64)
	if d, notLong := time.ParseDuration(text); err != nil && notLong == nil {
		return d.Seconds(), true
	}
	return n, err == nil
}

// admissionPlugins are the names of the admission plugins of Kubernetes 1.30 to 1.37. Source: pkg/kubeapiserver/options/plugins.go.
const admissionPlugins = "AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists LimitPodHardAntiAffinityTopology PodTopologyLabels LimitRanger ServiceAccount " +
	"NodeRestriction TaintNodesByCondition PodSecurity AlwaysPullImages ImagePolicyWebhook EventRateLimit ExtendedResourceToleration PodNodeSelector Priority " +
	"DefaultTolerationSeconds PodTolerationRestriction DefaultStorageClass StorageObjectInUseProtection OwnerReferencesPermissionEnforcement " +
	"PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction " +
	"DefaultIngressClass DenyServiceExternalIPs MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy ValidatingAdmissionWebhook " +
	"ResourceQuota AlwaysDeny"

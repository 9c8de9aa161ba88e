package settings

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/sdk"
)

//go:embed gates.txt
var gateTable string

// The owners of feature gates in the table. The components of Kubernetes share theirs.
const (
	gatesOfKubeadm    = "kubeadm"
	gatesOfComponents = "component"
)

// gate is a feature gate: the minor versions that have it, and the first one that locks it to a value, 0 for none.
type gate struct {
	first, last, locked int
	value               bool
}

func gatesOf(owner string) map[string]gate {
	all := map[string]gate{}
	for line := range strings.Lines(gateTable) {
		f := strings.Fields(line)
		if f[0] != owner {
			continue
		}
		var g gate
		g.first, _ = strconv.Atoi(f[2]) // digits
		g.last, _ = strconv.Atoi(f[3])
		if len(f) > 4 {
			g.locked, _ = strconv.Atoi(f[4])
			g.value = f[5] == "true"
		}
		all[f[1]] = g
	}
	return all
}

// gateFault says why a program of a minor version does not accept the value of a feature gate, "" if it does.
func gateFault(owner, name string, value bool, minor int) (message, hint string) {
	what := map[string]string{gatesOfKubeadm: "kubeadm", gatesOfComponents: "Kubernetes"}[owner]
	known := gatesOf(owner)
	g, ok := known[name]
	switch {
	case owner == gatesOfComponents && (name == "AllAlpha" || name == "AllBeta"):
	case !ok:
		near := document.Nearest(name, slices.Collect(maps.Keys(known)))
		if near != "" {
			return "is not a feature gate of " + what, "did you mean " + near + "?"
		}
		return "is not a feature gate of " + what, "remove it, or correct its spelling"
	case minor < g.first:
		return fmt.Sprintf("is a feature gate from %s 1.%d on, with which 1.%d does not start", what, g.first, minor), "remove it, or use a newer version"
	case minor > g.last:
		return fmt.Sprintf("is a feature gate until %s 1.%d, with which 1.%d does not start", what, g.last, minor), "remove it"
	case g.locked > 0 && minor >= g.locked && value != g.value:
		return fmt.Sprintf("is always %t from %s 1.%d on", g.value, what, g.locked), "remove it"
	}
	return "", ""
}

// gateFaults looks at a gate for programs of all minor versions from oldest to newest. It is certain if all refuse it.
func gateFaults(owner, name string, value bool, oldest, newest int) (message, hint string, certain bool) {
	message, hint = gateFault(owner, name, value, newest)
	certain = message != ""
	for minor := max(oldest, release.Oldest); minor < newest; minor++ {
		other, _ := gateFault(owner, name, value, minor)
		certain = certain && other != ""
	}
	return message, hint, certain
}

// componentGates inspects --feature-gates of a component, whose value is NAME=BOOL,NAME=BOOL.
func (r *resolver) componentGates(at document.Path, args []v1alpha1.Argument, oldest int) {
	for i, a := range args {
		if a.Name != "feature-gates" {
			continue
		}
		field := at.Index(i) + ".value"
		for pair := range strings.SplitSeq(a.Value, ",") {
			name, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
			name = strings.TrimSpace(strings.TrimPrefix(name, "kube:")) // the component that the gate is of
			value, err := strconv.ParseBool(strings.TrimSpace(text))
			switch {
			case pair == "" || strings.Contains(name, ":"):
			case err != nil:
				r.refuse(true, field, "is not a list of feature gates", "write it like NodeSwap=true,AllBeta=false")
			default:
				r.gate(field, name, value, oldest)
			}
		}
	}
}

// gate refuses a gate of a component with which none of the supported versions of it starts, and warns of one with which some start.
func (r *resolver) gate(at document.Path, name string, value bool, oldest int) {
	minor := r.result.Version.Minor
	message, hint, certain := gateFaults(gatesOfComponents, name, value, oldest, minor)
	if message != "" && minor >= release.Oldest { // the table begins there
		r.fault(at, name+" "+message, hint, certain)
	}
}

// KubeadmGates returns the feature gates of the document that a kubeadm of this minor version refuses, or ignores.
func (s Settings) KubeadmGates(minor int) []sdk.Violation {
	var all []sdk.Violation
	for _, name := range slices.Sorted(maps.Keys(s.FeatureGates)) {
		if message, hint := gateFault(gatesOfKubeadm, name, s.FeatureGates[name], minor); message != "" {
			all = append(all, sdk.Violation{Field: string(document.Path("spec.providerConfig.featureGates").Key(name)), Message: message, Hint: hint})
		}
	}
	return all
}

// kubeletsBack is how many minor versions a kubelet may be older than the control plane.
const kubeletsBack = 3

// gates inspects all feature gates that do not stand in a configuration of the kubelet or of kube-proxy.
func (r *resolver) gates() {
	minor := r.result.Version.Minor
	for _, c := range Components(r.spec) {
		if c.Want != nil {
			r.componentGates(document.Path("spec").Field(c.Field)+".args", c.Want.Args, minor)
		}
	}
	r.componentGates("spec.node.kubeletArgs", r.spec.Node.KubeletArgs, minor-kubeletsBack)
	for _, name := range slices.Sorted(maps.Keys(r.result.FeatureGates)) {
		message, hint, certain := gateFaults(gatesOfKubeadm, name, r.result.FeatureGates[name], minor, min(minor+1, release.Newest))
		r.refuse(certain, document.Path("spec.providerConfig.featureGates").Key(name), message, hint)
	}
}

package settings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// apiVersions are the versions of the groups that the API server registers, and of its core without a group. FIRST and LAST in VERSION:FIRST-LAST are
// the minor versions of Kubernetes that have it, where not all supported ones do. Sources: pkg/apis/*/install of Kubernetes 1.30 to 1.37,
// apiextensions-apiserver and kube-aggregator.
const apiVersions = `
 v1
abac.authorization.kubernetes.io v0 v1beta1
admission.k8s.io v1 v1beta1
admissionregistration.k8s.io v1 v1alpha1 v1beta1
apidiscovery.k8s.io v2 v2beta1
apiextensions.k8s.io v1 v1beta1
apiregistration.k8s.io v1 v1beta1
apps v1 v1beta1 v1beta2
authentication.k8s.io v1 v1alpha1 v1beta1
authorization.k8s.io v1 v1beta1
autoscaling v1 v2 v2beta1:30-35 v2beta2:30-35
batch v1 v1beta1
certificates.k8s.io v1 v1alpha1 v1beta1
coordination.k8s.io v1 v1alpha1:31-31 v1alpha2:32-99 v1beta1
discovery.k8s.io v1 v1beta1
events.k8s.io v1 v1beta1
extensions v1beta1
flowcontrol.apiserver.k8s.io v1 v1beta1 v1beta2 v1beta3
imagepolicy.k8s.io v1alpha1
internal.apiserver.k8s.io v1alpha1
lifecycle.k8s.io v1alpha1:37-99
networking.k8s.io v1 v1alpha1:30-33 v1beta1
node.k8s.io v1 v1alpha1 v1beta1
policy v1 v1beta1
rbac.authorization.k8s.io v1 v1alpha1 v1beta1
resource.k8s.io v1:34-99 v1alpha2:30-30 v1alpha3:31-99 v1beta1:32-99 v1beta2:33-99
scheduling.k8s.io v1 v1alpha1:30-35 v1alpha2:36-36 v1alpha3:37-99 v1beta1
storage.k8s.io v1 v1alpha1 v1beta1
storagemigration.k8s.io v1:37-99 v1alpha1:30-34 v1beta1:35-99`

// registersAPI reports whether the API server of a minor version starts with an item of its runtime-config. Source: pkg/server/resourceconfig of
// apiserver.
func registersAPI(item string, minor int) bool {
	key, value, _ := strings.Cut(item, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if group, ok := strings.CutPrefix(key, "api/"); ok {
		return slices.Contains([]string{"all", "ga", "beta", "alpha"}, group) && (value == "true" || value == "false")
	}
	if _, err := strconv.ParseBool(cmp.Or(value, "true")); err != nil {
		return false
	}
	group, rest, _ := strings.Cut(key, "/")
	wanted, resource, _ := strings.Cut(rest, "/")
	for line := range strings.Lines(apiVersions) {
		name, versions, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name != group {
			continue
		}
		for version := range strings.FieldsSeq(versions) {
			version, releases, limited := strings.Cut(version, ":")
			first, last, _ := strings.Cut(releases, "-")
			from, _ := strconv.Atoi(first) // digits, as the next
			to, _ := strconv.Atoi(last)
			if version == wanted && (!limited || from <= minor && minor <= to) {
				return resource == strings.ToLower(resource) && !strings.Contains(resource, "/")
			}
		}
	}
	return false
}

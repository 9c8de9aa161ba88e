package serve

import (
	"encoding/base64"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The routes, which are a step of the path and a label of the metrics.
const (
	routeData    = "data"
	routeReport  = "report"
	routeRelease = "release"
	routeNone    = "none"
)

// bearerBytes is the length of a bearer, before it is base64.
const bearerBytes = 32

// target is what a path names: a config or a file.
type target struct {
	route, method string
	of            types.NamespacedName
	file          string
}

// parsePath returns the target of a path, as it is in the request. A name has no letter that needs an escape.
func parsePath(path string) target {
	none := target{route: routeNone}
	rest, found := strings.CutPrefix(path, "/v1/")
	route, name, _ := strings.Cut(rest, "/")
	t := target{route: route, method: http.MethodGet}
	switch {
	case !found:
		return none
	case route == routeRelease:
		if t.file = name; !isFile(name) {
			return none
		}
		return t
	case route == routeReport:
		t.method = http.MethodPost
	case route != routeData:
		return none
	}
	t.of.Namespace, t.of.Name, _ = strings.Cut(name, "/")
	if len(validation.IsDNS1123Label(t.of.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(t.of.Name)) > 0 {
		return none
	}
	return t
}

// isFile reports whether a path may name a file of a release: steps of letters, digits and -._+~, none of which begins with a dot.
func isFile(name string) bool {
	for step := range strings.SplitSeq(name, "/") {
		if step == "" || step[0] == '.' || strings.ContainsFunc(step, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._+~", r)
		}) {
			return false
		}
	}
	return true
}

// parseBearer returns the token of the Authorization headers of a request.
func parseBearer(headers []string) (token string, valid bool) {
	if len(headers) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	bits, err := base64.RawURLEncoding.Strict().DecodeString(token)
	canonical := base64.RawURLEncoding.EncodeToString(bits) == token // the decoder skips line breaks
	return token, strings.EqualFold(scheme, "Bearer") && err == nil && canonical && len(bits) == bearerBytes
}

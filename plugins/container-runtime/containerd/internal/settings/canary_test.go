package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
)

// TestViolationsNeverQuote: every secret of the document in a form that is refused.
func TestViolationsNeverQuote(t *testing.T) {
	t.Parallel()
	text := containerdtest.Filled(t, strings.NewReplacer(
		"c4n4ry-", `c4n4ry\n-`, `"@KEY@"`, `"-----BEGIN PRIVATE KEY-----\nc4n4ry\n-----END PRIVATE KEY-----\n"`, `"u"`, `"c4n4ry\n"`,
	).Replace(containerdtest.Secretive))
	doc := containerdtest.ContainerRuntime(t, text)
	_, violations := Resolve(doc, "linux")
	if len(violations) < 8 {
		t.Errorf("%d violations: %+v", len(violations), violations)
	}
	for _, v := range violations {
		containerdtest.Leak(t, "a violation", v.Field+v.Message+v.Hint)
	}
	// The strict decoder, too.
	var other struct{}
	for _, v := range document.Unmarshal([]byte(text), &other) {
		containerdtest.Leak(t, "the decoder", fmt.Sprint(v))
	}
}

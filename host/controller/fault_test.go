package controller

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestFault: the message names the request, the object, the reason and the remedy, and nothing of the answer.
func TestFault(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupResource{Resource: "secrets"}
	invalid := field.ErrorList{field.Invalid(field.NewPath("data"), "c4n4ry", "too long")}
	for want, err := range map[string]error{
		"get Secret s failed (Forbidden), and is repeated: check the roles of the manager, and quotas and admission of the namespace": fmt.Errorf(
			"get Secret s: %w", apierrors.NewForbidden(secrets, "s", errors.New("c4n4ry"))),
		"create the Secret with the data worker-0 failed (Invalid), and is repeated: check that manager and custom resource definitions have the same version": fmt.Errorf(
			"create the Secret with the data: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "worker-0", invalid)),
		"write the status failed (InternalError), and is repeated: if it stays, check the health of the API server": fmt.Errorf(
			"write the status: %w", apierrors.NewInternalError(errors.New("c4n4ry"))),
		"get Secret s failed (no answer), and is repeated: if it stays, check the health of the API server": fmt.Errorf(
			"get Secret s: %w", &url.Error{Op: "Get", URL: "https://c4n4ry", Err: errors.New("refused")}),
		"a request to an API server failed, and is repeated": errors.New("c4n4ry"),
	} {
		assert.Equal(t, want, fault(err))
	}
	assert.NotContains(t, fault(apierrors.NewForbidden(secrets, "s", errors.New("c4n4ry"))), "c4n4ry", "an error without a request of ours")
}

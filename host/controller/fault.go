package controller

import (
	"errors"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fault is the message of an error that is no condition: the request, the reason, which is one of Kubernetes' own, and the remedy.
// The answer of the API server may quote what the request was about. It is in the log, as the client wrote it.
func fault(failed error) string {
	var status *apierrors.StatusError
	var network *url.Error
	answer, reason := "", "no answer"
	switch {
	case errors.As(failed, &status):
		answer, reason = status.Error(), string(apierrors.ReasonForError(status))
	case errors.As(failed, &network):
		answer = network.Error()
	}
	what, found := strings.CutSuffix(failed.Error(), ": "+answer)
	if answer == "" || !found {
		return "a request to an API server failed, and is repeated"
	}
	if status != nil && status.ErrStatus.Details != nil && !strings.Contains(what, status.ErrStatus.Details.Name) {
		what += " " + status.ErrStatus.Details.Name
	}
	if reason == "" {
		reason = "unknown reason"
	}
	return what + " failed (" + reason + "), and is repeated: " + remedy(metav1.StatusReason(reason))
}

func remedy(reason metav1.StatusReason) string {
	switch reason {
	case metav1.StatusReasonForbidden:
		return "check the roles of the manager, and quotas and admission of the namespace"
	case metav1.StatusReasonUnauthorized:
		return "check the credentials of the manager"
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return "check that manager and custom resource definitions have the same version"
	default:
		return "if it stays, check the health of the API server"
	}
}

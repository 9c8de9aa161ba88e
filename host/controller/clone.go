package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// cloned returns the object that was made for this config from a template of another group, and makes it first. It belongs to
// the config, so that it goes with it.
func (rd *reading) cloned(ctx context.Context, field string, template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	clone, err := external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: template,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName(),
		},
		Namespace: rd.config.Namespace, Name: cloneName(rd.config.Name, template), ClusterName: rd.cluster.Name,
		OwnerRef: metav1.NewControllerRef(rd.config, bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapConfig)),
	})
	if err != nil || clone.Object["spec"] == nil {
		return nil, invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference,
			"%s %s has no spec.template.spec", template.GetKind(), template.GetName())
	}
	gvk := clone.GroupVersionKind()
	if _, err := rd.kind(ctx, field, gvk.GroupKind()); err != nil {
		return nil, err
	}
	rd.watch(gvk.GroupKind(), clone.GetName())
	var found unstructured.Unstructured
	found.SetGroupVersionKind(gvk)
	err = rd.r.cached(ctx, client.ObjectKeyFromObject(clone), &found)
	switch {
	case err == nil:
		return &found, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, clone.GetName(), err)
	}
	if err := rd.r.Client.Create(ctx, clone); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("clone %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	return clone, nil
}

// cloneName is the same for the same config and template, so that a run that is repeated finds its clone.
func cloneName(config string, template *unstructured.Unstructured) string {
	sum := sha256.Sum256([]byte(config + "/" + template.GroupVersionKind().GroupKind().String() + "/" + template.GetName()))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return strings.TrimRight(config[:min(len(config), 253-len(suffix))], ".-") + suffix
}

package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
// the config, so that it goes with it. A template that changes before the data is made changes the clone.
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
	spec, err := json.Marshal(clone.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("encode the spec of %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	annotations := clone.GetAnnotations()
	annotations[annotationTemplate] = fmt.Sprintf("%x", sha256.Sum256(spec))
	clone.SetAnnotations(annotations)
	gvk := clone.GroupVersionKind()
	if _, err := rd.kind(ctx, field, gvk.GroupKind()); err != nil {
		return nil, err
	}
	rd.watch(gvk.GroupKind(), clone.GetName())
	var found unstructured.Unstructured
	found.SetGroupVersionKind(gvk)
	err = rd.r.cached(ctx, client.ObjectKeyFromObject(clone), &found)
	switch {
	case err == nil && (!rd.making || found.GetAnnotations()[annotationTemplate] == annotations[annotationTemplate]):
		return &found, nil
	case err == nil:
		return &found, rd.renew(ctx, &found, clone)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, clone.GetName(), err)
	}
	if err := rd.r.Client.Create(ctx, clone); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("clone %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	return clone, nil
}

// annotationTemplate is the digest of the spec that a clone was made from. The clone itself may have more: defaults, or what its
// controller has added.
const annotationTemplate = "machineadm.cluster.x-k8s.io/template"

// renew gives a clone the spec that its template has now.
func (rd *reading) renew(ctx context.Context, found, clone *unstructured.Unstructured) error {
	before := found.DeepCopy()
	found.Object["spec"] = clone.Object["spec"]
	annotations := found.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationTemplate] = clone.GetAnnotations()[annotationTemplate]
	found.SetAnnotations(annotations)
	if err := rd.r.Client.Patch(ctx, found, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("renew %s %s: %w", found.GetKind(), found.GetName(), err)
	}
	return nil
}

// cloneName is the same for the same config and template, so that a run that is repeated finds its clone.
func cloneName(config string, template *unstructured.Unstructured) string {
	sum := sha256.Sum256([]byte(config + "/" + template.GroupVersionKind().GroupKind().String() + "/" + template.GetName()))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return strings.TrimRight(config[:min(len(config), 253-len(suffix))], ".-") + suffix
}

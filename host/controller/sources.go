package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/render"
)

// source is where documents come from: a spec in the cluster, or a Secret with a stream.
type source struct {
	// where names it in messages.
	where            string
	apiVersion, kind string
	name             string
	spec             []byte
	// secret is the name of a Secret whose key value has documents. Then the fields above are not used.
	secret        string
	placement     *bootstrap.Placement
	before, after []string
}

// sources reads every object that the config refers to, and records what is in it. All of them are read, so that the status
// names all that is missing; the error belongs to the first.
func (rd *reading) sources(ctx context.Context) ([]source, []bootstrap.PluginStatus, error) {
	spec, err := json.Marshal(rd.config.Spec)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the spec: %w", err)
	}
	self := bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapConfig).GroupKind()
	rd.inputs.add(input{self, client.ObjectKeyFromObject(rd.config)}, spec)
	rd.held = 0
	var all []source
	var plugins []bootstrap.PluginStatus
	var first error
	read := func(field string, ref *bootstrap.PluginReference, template bool) error {
		s, err := rd.referred(ctx, field, ref, template)
		status := bootstrap.PluginStatus{Kind: ref.Kind, Name: ref.Name, Ready: err == nil, SecretName: s.secret}
		if stopped := asStop(err); stopped != nil {
			status.Reason, status.Message = stopped.reason, stopped.message
		} else if err != nil {
			return err
		}
		if first == nil {
			first = err
		}
		all, plugins = append(all, s), append(plugins, status)
		return nil
	}
	for i := range rd.config.Spec.PluginRefs {
		if err := read(fmt.Sprintf("spec.pluginRefs[%d]", i), &rd.config.Spec.PluginRefs[i], false); err != nil {
			return nil, nil, err
		}
	}
	for i := range rd.config.Spec.PluginTemplateRefs {
		if err := read(fmt.Sprintf("spec.pluginTemplateRefs[%d]", i), &rd.config.Spec.PluginTemplateRefs[i], true); err != nil {
			return nil, nil, err
		}
	}
	for i := range rd.config.Spec.Documents {
		d := &rd.config.Spec.Documents[i]
		s := source{
			where: fmt.Sprintf("spec.documents[%d]", i), apiVersion: d.APIVersion, kind: d.Kind, name: d.Name, spec: d.Spec.Raw,
			placement: &d.Placement,
		}
		if err := rd.hold(ctx, s.spec); err != nil {
			return nil, nil, err
		}
		if err := rd.record(ctx, &s); err != nil && asStop(err) == nil {
			return nil, nil, err
		} else if first == nil {
			first = err
		}
		all = append(all, s)
	}
	return all, plugins, first
}

// referred reads the object of a reference.
func (rd *reading) referred(ctx context.Context, field string, ref *bootstrap.PluginReference, template bool) (source, error) {
	switch suffixed := strings.HasSuffix(ref.Kind, clusterv1.TemplateSuffix); {
	case template && !suffixed:
		return source{}, invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference,
			"%s.kind: %s is no template: refer to it in pluginRefs", field, ref.Kind)
	case !template && suffixed:
		return source{}, invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference,
			"%s.kind: %s is a template: refer to it in pluginTemplateRefs", field, ref.Kind)
	}
	object, err := rd.object(ctx, field, ref)
	if err != nil {
		return source{}, err
	}
	s := source{where: ref.Kind + " " + ref.Name, placement: &ref.Placement}
	if template || ours(ref) {
		if s.spec, err = specOf(object, template); err != nil {
			return source{}, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidDocument, "%s: %s", s.where, err)
		}
		if err := rd.hold(ctx, s.spec); err != nil {
			return source{}, err
		}
		rd.inputs.add(input{object.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)}, s.spec)
	}
	if ours(ref) {
		s.apiVersion, s.kind, s.name = contract.APIVersion, strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix), ref.Name
		return s, rd.record(ctx, &s)
	}
	if template {
		if object, err = rd.cloned(ctx, field, object); err != nil {
			return source{}, err
		}
	}
	if err := foreign(&s, object); err != nil {
		return s, err
	}
	return s, rd.record(ctx, &s)
}

// record adds the values of Secrets that a source has to the inputs.
func (rd *reading) record(ctx context.Context, s *source) error {
	if s.secret != "" {
		return rd.digest(ctx, s.where, s.secret, "value")
	}
	references, err := render.References(s.spec)
	if err != nil {
		return invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference, "%s: %s", s.where, err)
	}
	for _, ref := range references {
		if err := rd.digest(ctx, s.where, ref.Name, ref.Key); err != nil {
			return err
		}
	}
	return nil
}

// status is what a controller of another group reports of its object.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
	SecretName         string             `json:"secretName"`
	BeforePlugins      []string           `json:"beforePlugins"`
	AfterPlugins       []string           `json:"afterPlugins"`
}

// foreign finds the Secret in which the controller of an object has left its documents.
func foreign(s *source, object *unstructured.Unstructured) error {
	s.where = object.GetKind() + " " + object.GetName()
	var reported status
	raw, err := json.Marshal(object.Object["status"])
	if err != nil || json.Unmarshal(raw, &reported) != nil {
		return invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference, "%s: its status has not the form of a plugin's status", s.where)
	}
	s.secret = reported.SecretName
	if message := reported.waits(object.GetGeneration()); message != "" {
		return waiting(bootstrap.ConditionPluginsReady, bootstrap.ReasonPluginNotReady, "%s %s", s.where, message)
	}
	if err := checkName(bootstrap.ConditionPluginsReady, s.where+": status.secretName", s.secret); err != nil {
		return err
	}
	s.before, s.after = slices.Concat(reported.BeforePlugins, s.placement.Before), slices.Concat(reported.AfterPlugins, s.placement.After)
	return nil
}

// waits says what the controller of the object has not done yet.
func (s *status) waits(generation int64) string {
	if s.ObservedGeneration != generation {
		return "has changed, and its controller has not seen it yet"
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		switch {
		case c.Type != bootstrap.ConditionReady:
		case c.Status != metav1.ConditionTrue:
			return "is not ready: " + strings.TrimSpace(c.Reason+" "+c.Message)
		case s.SecretName == "":
			return "is ready, but its status names no secretName"
		default:
			return ""
		}
	}
	return "has no condition Ready yet"
}

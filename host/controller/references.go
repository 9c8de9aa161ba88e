package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// reading is one reconciliation's view of the objects that a config refers to. Every object that it reads is watched, and
// counts as an input of the data.
type reading struct {
	r       *Reconciler
	config  *bootstrap.MachineBootstrapConfig
	cluster *clusterv1.Cluster
	inputs  *inputs
	bodies  map[input]body
	// making says that data is being made. Then a digest is made of the body that the data has, and not taken from before.
	making bool
	// spent is how many bytes of documents were read, bodyBytes how many of Secrets and ConfigMaps.
	spent, structure, bodyBytes int
	// held is how many bytes of specs are there.
	held int
	turn *turn
	// left are Secrets and ConfigMaps that clusterctl move would leave behind.
	left map[input]struct{}
}

// maxBodyBytes bounds the Secrets and ConfigMaps that the documents of a config are in.
const maxBodyBytes = 8 << 20

// release drops the bodies, and lets the next large reconciliation of the namespace begin.
func (rd *reading) release() {
	clear(rd.bodies)
	rd.bodyBytes = 0
	rd.turn.release()
}

func (rd *reading) watch(gk schema.GroupKind, name string) input {
	of := input{gk, client.ObjectKey{Namespace: rd.config.Namespace, Name: name}}
	rd.r.readers.add(client.ObjectKeyFromObject(rd.config), of)
	return of
}

// discovery is the time within which the API server certainly lists a kind whose definition has changed: its list of kinds and
// the event come from different parts of it.
const discovery = time.Minute

// kind finds the version of a kind, and watches its objects from now on.
func (rd *reading) kind(ctx context.Context, field string, gk schema.GroupKind) (schema.GroupVersionKind, error) {
	mapping, err := rd.r.Client.RESTMapper().RESTMapping(gk)
	if meta.IsNoMatchError(err) {
		rd.r.readers.add(client.ObjectKeyFromObject(rd.config), input{definitions(), client.ObjectKey{Name: gk.Group}})
		mapping, err = rd.r.Client.RESTMapper().RESTMapping(gk) // the kind may have come before the config was registered
	}
	switch {
	case meta.IsNoMatchError(err):
		err := waiting(bootstrap.ConditionPluginsReady, bootstrap.ReasonKindNotInstalled,
			"%s: no kind %s of group %s is installed: install it, or correct apiGroup and kind", field, gk.Kind, gk.Group)
		if rd.r.Now().Sub(time.Unix(0, rd.r.defined.Load())) < discovery {
			asStop(err).again = 2 * time.Second
		}
		return schema.GroupVersionKind{}, err
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("find the version of %s: %w", gk, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return schema.GroupVersionKind{}, invalid(bootstrap.ConditionPluginsReady, bootstrap.ReasonInvalidReference,
			"%s: %s is not namespaced: refer to an object of a namespaced kind", field, gk)
	}
	return mapping.GroupVersionKind, rd.r.track(ctx, mapping.GroupVersionKind)
}

// checkName refuses a name that no object can have. The client refuses to ask for some of them, and the request would be repeated.
func checkName(condition, field, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return invalid(condition, bootstrap.ReasonInvalidReference, "%s: is not the name of an object: use lower-case letters, digits, - and .", field)
}

// object reads an object that a reference of the config names, and makes it part of the cluster.
func (rd *reading) object(ctx context.Context, field string, ref *bootstrap.PluginReference) (*unstructured.Unstructured, error) {
	object, err := rd.read(ctx, field, ref)
	if err != nil {
		return nil, err
	}
	return object, rd.adopt(ctx, object)
}

// read reads an object that a reference of the config names, from the cache.
func (rd *reading) read(ctx context.Context, field string, ref *bootstrap.PluginReference) (*unstructured.Unstructured, error) {
	if err := checkName(bootstrap.ConditionPluginsReady, field+".name", ref.Name); err != nil {
		return nil, err
	}
	gk := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	gvk, err := rd.kind(ctx, field, gk)
	if err != nil {
		return nil, err
	}
	rd.watch(gk, ref.Name)
	var object unstructured.Unstructured
	object.SetGroupVersionKind(gvk)
	err = rd.r.cached(ctx, client.ObjectKey{Namespace: rd.config.Namespace, Name: ref.Name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, waiting(bootstrap.ConditionPluginsReady, bootstrap.ReasonObjectNotFound,
			"%s: %s %s does not exist in namespace %s: create it", field, ref.Kind, ref.Name, rd.config.Namespace)
	} else if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	return &object, nil
}

// adopt makes an object part of the cluster, so that it moves with it. It belongs to every cluster that uses it.
func (rd *reading) adopt(ctx context.Context, object *unstructured.Unstructured) error {
	ref := clusterOwner(rd.cluster)
	refs := object.GetOwnerReferences()
	if slices.ContainsFunc(refs, func(o metav1.OwnerReference) bool { return o.UID == ref.UID }) || metav1.GetControllerOf(object) != nil {
		return nil
	}
	before := object.DeepCopy()
	object.SetOwnerReferences(append(refs, ref))
	err := rd.r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	// A conflict is a change of the object, which starts the next reconciliation.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("make %s %s part of Cluster %s: %w", object.GetKind(), object.GetName(), rd.cluster.Name, err)
	}
	return nil
}

// value reads a key of a Secret or ConfigMap.
func (rd *reading) value(ctx context.Context, condition, kind, name, key string) ([]byte, error) {
	b, err := rd.body(ctx, kind, name)
	if apierrors.IsNotFound(err) {
		return nil, waiting(condition, bootstrap.ReasonObjectNotFound, "%s %s does not exist in namespace %s: create it",
			kind, name, rd.config.Namespace)
	} else if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind, name, err)
	}
	value, ok := b.values[key]
	if !ok {
		return nil, invalid(condition, bootstrap.ReasonKeyNotFound, "%s %s has no key %s: add it", kind, name, key)
	}
	return value, nil
}

// digest records a key of a Secret. Unless data is being made, it reads the Secret only if it is another one than the last time.
func (rd *reading) digest(ctx context.Context, where, name, key string) error {
	return prefix(where, rd.digestOf(ctx, bootstrap.ConditionPluginsReady, "Secret", name, key))
}

func (rd *reading) digestOf(ctx context.Context, condition, kind, name, key string) error {
	of := rd.watch(schema.GroupKind{Kind: kind}, name)
	known, err := rd.r.metadata(ctx, kind, of.ObjectKey)
	if err != nil {
		return err
	}
	version := ""
	if known != nil {
		version = known.ResourceVersion
		if !moves(known) {
			rd.left[of] = struct{}{}
		}
	}
	sum, ok := rd.r.digests.get(of, version, key)
	if !ok || rd.making {
		value, err := rd.value(ctx, condition, kind, name, key)
		if err != nil {
			return err
		}
		sum = sha256.Sum256(value)
		if version != "" {
			version = rd.bodies[of].version // which the cache may not have yet
		}
		rd.r.digests.put(of, version, key, sum)
	}
	rd.inputs.add(of, append([]byte(key+"\x00"), sum[:]...))
	return nil
}

// body is what one reconciliation has read of a Secret or ConfigMap.
type body struct {
	version string
	values  map[string][]byte
}

// body reads the object itself, once, and not a cache, so that the manager does not hold every secret of the cluster.
func (rd *reading) body(ctx context.Context, kind, name string) (body, error) {
	of := rd.watch(schema.GroupKind{Kind: kind}, name)
	if known, ok := rd.bodies[of]; ok {
		return known, nil
	}
	read, err := rd.fetch(ctx, kind, of)
	if err == nil && rd.bodyBytes+read.bytes() > lightBytes && rd.turn != nil && !rd.turn.large {
		read = body{} // it is not held while others of the namespace are large
		if err = rd.turn.wait(ctx); err == nil {
			read, err = rd.fetch(ctx, kind, of)
		}
	}
	if err != nil {
		return body{}, err
	}
	if rd.bodyBytes += read.bytes(); rd.bodyBytes > maxBodyBytes {
		return body{}, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonTooLarge,
			"the Secrets and ConfigMaps of the config have more than %d bytes: refer to fewer, or to smaller ones", maxBodyBytes)
	}
	rd.bodies[of] = read
	return read, nil
}

func (b body) bytes() int {
	sum := 0
	for _, value := range b.values {
		sum += len(value)
	}
	return sum
}

func (rd *reading) fetch(ctx context.Context, kind string, of input) (body, error) {
	var read body
	if kind == "ConfigMap" {
		var object corev1.ConfigMap
		if err := rd.r.Live.Get(ctx, of.ObjectKey, &object); err != nil {
			return body{}, err //nolint:wrapcheck // the caller says what it is for
		}
		read = body{object.ResourceVersion, map[string][]byte{}}
		for key, text := range object.Data {
			read.values[key] = []byte(text)
		}
	} else {
		var object corev1.Secret
		if err := rd.r.Live.Get(ctx, of.ObjectKey, &object); err != nil {
			return body{}, err //nolint:wrapcheck // the caller says what it is for
		}
		read = body{object.ResourceVersion, object.Data}
	}
	return read, nil
}

// ours says whether a kind is one of machineadm's own, whose objects are rendered in memory.
func ours(ref *bootstrap.PluginReference) bool {
	return ref.APIGroup == contract.Group && slices.Contains(contract.MachineKinds(), strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix))
}

// specOf is the spec of an object, or what a template has for it.
func specOf(object *unstructured.Unstructured, template bool) ([]byte, error) {
	path := []string{"spec"}
	if template {
		path = []string{"spec", "template", "spec"}
	}
	spec, _, err := unstructured.NestedMap(object.Object, path...)
	if err != nil {
		return nil, errors.New(strings.Join(path, ".") + " is not a mapping")
	}
	if spec == nil {
		spec = map[string]any{}
	}
	return json.Marshal(spec)
}

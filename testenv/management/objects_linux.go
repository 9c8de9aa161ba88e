package management

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	owner        = client.FieldOwner("testenv")
	installLimit = time.Minute
)

// Client returns a client of the administrator, for the types of Kubernetes and those that are added.
func (c *Cluster) Client(t testing.TB, add ...func(*runtime.Scheme) error) client.WithWatch {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range append(add, scheme.AddToScheme, apiextensions.AddToScheme) {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.NewWithWatch(c.Config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Install applies manifests, and waits until the resources that they define are served, and the roles in them that other
// roles make up are complete. It leaves out what would run in the cluster, which has no nodes, and the certificates of
// cert-manager.
func (c *Cluster) Install(t testing.TB, manifests []byte) {
	t.Helper()
	objects, err := Objects(manifests)
	if err != nil {
		t.Fatal(err)
	}
	k := c.Client(t)
	defined, aggregated := map[string]bool{}, map[string]bool{}
	for _, o := range objects {
		switch kind := o.GetKind(); {
		case kind == "CustomResourceDefinition":
			defined[o.GetName()] = true
			apply(t, k, o)
		case kind == "ClusterRole" && o.Object["aggregationRule"] != nil:
			aggregated[o.GetName()] = true
		}
	}
	awaitEstablished(t, k, defined)
	for _, o := range objects {
		switch o.GetKind() {
		case "CustomResourceDefinition", "Deployment", "Service", "Certificate", "Issuer":
		default:
			apply(t, k, o)
		}
	}
	awaitAggregated(t, k, aggregated)
}

func awaitEstablished(t testing.TB, k client.WithWatch, names map[string]bool) {
	t.Helper()
	var definitions apiextensions.CustomResourceDefinitionList
	Await(t, k, installLimit, &definitions, func() error {
		served := 0
		for _, d := range definitions.Items {
			if names[d.Name] && isEstablished(d) {
				served++
			}
		}
		return unless(served, len(names), "resources are served")
	})
}

func awaitAggregated(t testing.TB, k client.WithWatch, names map[string]bool) {
	t.Helper()
	var roles rbac.ClusterRoleList
	Await(t, k, installLimit, &roles, func() error {
		complete := 0
		for _, r := range roles.Items {
			if names[r.Name] && len(r.Rules) > 0 {
				complete++
			}
		}
		return unless(complete, len(names), "aggregated roles have rules")
	})
}

func unless(got, want int, what string) error {
	if got < want {
		return fmt.Errorf("%d of %d %s", got, want, what)
	}
	return nil
}

func apply(t testing.TB, k client.Client, o *unstructured.Unstructured) {
	t.Helper()
	if err := k.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), owner, client.ForceOwnership); err != nil {
		t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

func isEstablished(d apiextensions.CustomResourceDefinition) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensions.Established {
			return c.Status == apiextensions.ConditionTrue
		}
	}
	return false
}

// documents divides a stream of YAML documents.
func documents(stream []byte) ([][]byte, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	var all [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		all = append(all, document)
	}
}

// Objects reads manifests: objects in a stream of YAML documents.
func Objects(manifests []byte) ([]*unstructured.Unstructured, error) {
	all, err := documents(manifests)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, document := range all {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// Await waits until a list of objects meets a condition, and fails the test at the limit. It reads the list at first and
// after every change of an object that the options select. The condition's error says what is missing.
func Await(t testing.TB, k client.WithWatch, limit time.Duration, list client.ObjectList, met func() error, options ...client.ListOption) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	missing := errors.New("the list was not read")
	for ctx.Err() == nil {
		var done bool
		if done, missing = await(ctx, k, list, met, missing, options); done {
			return
		}
	}
	t.Fatalf("waited %s for %T: %v", limit, list, missing)
}

// await follows one watch until it ends, as it does with a server that restarts.
func await(
	ctx context.Context, k client.WithWatch, list client.ObjectList, met func() error, missing error, options []client.ListOption,
) (bool, error) {
	if err := k.List(ctx, list, options...); err != nil {
		hesitate(ctx)
		return false, errors.Join(missing, err)
	}
	w, err := k.Watch(ctx, list, append(options, since(list))...)
	if err != nil {
		hesitate(ctx)
		return false, errors.Join(missing, err)
	}
	defer w.Stop()
	for {
		if missing = met(); missing == nil {
			return true, nil
		}
		if !changed(ctx, w.ResultChan()) {
			return false, missing
		}
		if err := k.List(ctx, list, options...); err != nil {
			return false, errors.Join(missing, err)
		}
	}
}

// since makes a watch begin where a list ended.
func since(list client.ObjectList) client.ListOption {
	return &client.ListOptions{Raw: &meta.ListOptions{ResourceVersion: list.GetResourceVersion()}}
}

// changed waits for an event, and takes those that follow at once. It is false when none will come.
func changed(ctx context.Context, events <-chan watch.Event) bool {
	select {
	case _, ok := <-events:
		for ok && len(events) > 0 {
			_, ok = <-events
		}
		return ok
	case <-ctx.Done():
		return false
	}
}

// hesitate keeps requests to a server that is gone apart.
func hesitate(ctx context.Context) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

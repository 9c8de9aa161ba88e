package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// input names an object that a config's data is made from.
type input struct {
	schema.GroupKind
	client.ObjectKey
}

// String is KIND.GROUP/NAME. An input is in the namespace of the config.
func (i input) String() string { return i.GroupKind.String() + "/" + i.Name }

// inputs are the objects that one reconciliation has read, with a keyed digest of what it took from each: an annotation that
// says nothing of a Secret's content, even to those who guess it.
type inputs struct {
	key     []byte
	digests map[string]string
}

func newInputs(key []byte) *inputs { return &inputs{key: key, digests: map[string]string{}} }

// add records content of an input; several calls for one object add up.
func (in *inputs) add(of input, content []byte) {
	mac := hmac.New(sha256.New, in.key)
	// With its name: else an object with a guess of a secret has the digest of that secret.
	mac.Write([]byte(of.String() + "\x00" + in.digests[of.String()]))
	mac.Write(content)
	in.digests[of.String()] = hex.EncodeToString(mac.Sum(nil)[:8])
}

// annotation is the form that the Secret with the data keeps.
func (in *inputs) annotation() (string, error) {
	data, err := json.Marshal(in.digests)
	if err != nil {
		return "", fmt.Errorf("encode the digests of the inputs: %w", err)
	}
	return string(data), nil
}

// changed lists the objects whose content differs from the annotation.
func (in *inputs) changed(annotation string) []string {
	was := map[string]string{}
	// An annotation that is not ours makes every object a changed one, which is what the condition then says.
	_ = json.Unmarshal([]byte(annotation), &was)
	var names []string
	for name, digest := range in.digests {
		if was[name] != digest {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, ok := in.digests[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readers remembers which configs read an object, so that a change of it starts their reconciliation. It is filled by
// reconciliations, of which every config has one when the manager starts.
type readers struct {
	mu       sync.Mutex
	byInput  map[input]*readInput
	byConfig map[client.ObjectKey]*reader
}

// reader is a config, and readInput an object: each name is kept once.
type (
	reader struct {
		config client.ObjectKey
		inputs []*readInput // few
	}
	readInput struct {
		input
		by map[*reader]struct{}
	}
)

func newReaders() *readers {
	return &readers{byInput: map[input]*readInput{}, byConfig: map[client.ObjectKey]*reader{}}
}

// begin forgets what a config has read before, and returns it.
func (r *readers) begin(config client.ObjectKey) []input {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byConfig[config]
	if known == nil {
		return nil
	}
	var before []input
	for _, of := range known.inputs {
		before = append(before, of.input)
		delete(of.by, known)
		if len(of.by) == 0 {
			delete(r.byInput, of.input)
		}
	}
	delete(r.byConfig, config)
	return before
}

// read says whether a config reads the object.
func (r *readers) read(of input) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byInput[of] != nil
}

// add must come before the object is read, so that no change is lost in between.
func (r *readers) add(config client.ObjectKey, of input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, known := r.byInput[of], r.byConfig[config]
	if found == nil {
		found = &readInput{of, map[*reader]struct{}{}}
		r.byInput[of] = found
	}
	if known == nil {
		known = &reader{config: config}
		r.byConfig[config] = known
	}
	if _, ok := found.by[known]; !ok {
		found.by[known] = struct{}{}
		known.inputs = append(known.inputs, found)
	}
}

// waitingForGroup are the configs that refer to a kind of the group.
func (r *readers) waitingForGroup(group string) []reconcile.Request {
	return r.requests(input{definitions(), client.ObjectKey{Name: group}})
}

// ofKind are the requests for the configs that read an object of the kind.
func (r *readers) ofKind(kind schema.GroupKind) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []reconcile.Request
	for config, known := range r.byConfig {
		if slices.ContainsFunc(known.inputs, func(of *readInput) bool { return of.GroupKind == kind }) {
			requests = append(requests, reconcile.Request{NamespacedName: config})
		}
	}
	return requests
}

// definitions is the input of a config that waits until a kind of a group is installed. Its name is the group.
func definitions() schema.GroupKind {
	return schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// requests are the configs that read the object. Every config reads the Secret of its name.
func (r *readers) requests(of input) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []reconcile.Request
	if found := r.byInput[of]; found != nil {
		for by := range found.by {
			requests = append(requests, reconcile.Request{NamespacedName: by.config})
		}
	}
	if name, ok := configOfData(of.Name); ok && of.GroupKind == (schema.GroupKind{Kind: "Secret"}) {
		config := client.ObjectKey{Namespace: of.Namespace, Name: name}
		if _, known := r.byConfig[config]; known {
			requests = append(requests, reconcile.Request{NamespacedName: config})
		}
	}
	return requests
}

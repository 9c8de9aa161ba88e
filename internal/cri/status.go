package cri

import (
	"context"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Condition is what a runtime says of one side of itself. Reason and Message are the runtime's words.
type Condition struct {
	Met     bool
	Reason  string
	Message string
}

// Status is how a runtime is.
type Status struct {
	// RuntimeReady: containers can be run. NetworkReady: also those that want a network.
	RuntimeReady Condition
	NetworkReady Condition
	// Info is what was asked for with verbose, else empty.
	Info Info
}

// Status asks how the runtime is. A condition that it does not name is not met. With verbose the runtime adds its
// configuration and more, in a form that is its own.
func (c *Client) Status(ctx context.Context, verbose bool) (Status, error) {
	r, err := c.runtime.Status(ctx, &runtime.StatusRequest{Verbose: verbose})
	if err != nil {
		return Status{}, err
	}
	s := Status{Info: Info{hide(r.GetInfo())}}
	for _, condition := range r.GetStatus().GetConditions() {
		said := Condition{Met: condition.GetStatus(), Reason: condition.GetReason(), Message: condition.GetMessage()}
		switch condition.GetType() {
		case runtime.RuntimeReady:
			s.RuntimeReady = said
		case runtime.NetworkReady:
			s.NetworkReady = said
		}
	}
	return s, nil
}

// Info is what a runtime reports beyond the interface, by key. It can hold passwords of registries, and so
// shows nothing of itself to fmt, to a log or to a marshaller.
type Info struct{ hidden[map[string]string] }

// Keys are in no order.
func (i Info) Keys() []string {
	keys := make([]string, 0, len(i.reveal()))
	for key := range i.reveal() {
		keys = append(keys, key)
	}
	return keys
}

// Reveal returns what stands under the key, mostly JSON, for the point of use.
func (i Info) Reveal(key string) (text string, ok bool) {
	text, ok = i.reveal()[key]
	return text, ok
}

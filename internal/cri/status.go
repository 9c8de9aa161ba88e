package cri

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
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
	var request message
	if verbose {
		request = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	}
	r, err := c.call(ctx, "RuntimeService/Status", request)
	if err != nil {
		return Status{}, err
	}
	info := map[string]string{}
	for _, entry := range r.all(2) {
		info[entry.text(1)] = entry.text(2)
	}
	s := Status{Info: Info{hide(info)}}
	for _, condition := range r.inner(1).all(1) {
		said := Condition{Met: condition.number(2) == 1, Reason: condition.text(3), Message: condition.text(4)}
		switch condition.text(1) {
		case "RuntimeReady":
			s.RuntimeReady = said
		case "NetworkReady":
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

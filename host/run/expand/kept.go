package expand

import (
	"slices"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// prune removes the streams of references that are gone. While one is not resolved, the references in its stream are
// not known.
func (x *Expander) prune(s values.Stream) error {
	unresolved := func(d values.Doc) bool {
		return d.IsReference() && (d.Source == nil || d.Source.Pending != nil || d.Source.Result.Outcome == report.Failed)
	}
	if x.o.Resolved == nil || !x.o.Apply || len(s.Problems) > 0 || slices.ContainsFunc(s.Docs, unresolved) {
		return nil
	}
	return values.StateError("remove what documents stood for", x.o.Resolved.Only(x.keys))
}

// load returns what an earlier try of this machine got, nil for nothing.
func (x *Expander) load(key string) ([]byte, error) {
	if x.o.Resolved == nil {
		return nil, nil
	}
	x.keys = append(x.keys, key)
	data, err := x.o.Resolved.Load(key)
	return data, values.StateError("read what an earlier run resolved", err)
}

// keep saves the stream of a reference, until the run has succeeded.
func (x *Expander) keep(key string, data []byte) error {
	if x.o.Resolved == nil || !x.o.Apply {
		return nil
	}
	return values.StateError("keep the stream of a reference", x.o.Resolved.Keep(key, data))
}

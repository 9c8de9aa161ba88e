package main

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// baseSpec is the specification that the containers of a runtime start from: the daemon's own default, as
// `ctr oci spec` prints it, merged with the patch, with these limits of resources and no others. A limit that it has by default would otherwise
// hold for every container: without a base specification containerd takes it off.
func baseSpec(defaults []byte, limits map[string]v1alpha1.Rlimit, patch map[string]any) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(defaults))
	decoder.UseNumber()
	var spec map[string]any
	if err := decoder.Decode(&spec); err != nil { // never %w: it may quote
		return nil, errors.New("the default specification of containers is not JSON")
	}
	merge(spec, patch)
	process, ok := spec["process"].(map[string]any)
	if version, _ := spec["ociVersion"].(string); version == "" || !ok {
		return nil, errors.New("the default specification of containers is not of the OCI")
	}
	list := []map[string]any{}
	for _, name := range sortedKeys(limits) {
		list = append(list, map[string]any{"type": name, "soft": limits[name].Soft, "hard": limits[name].Hard})
	}
	process["rlimits"] = list
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, errors.New("the default specification of containers cannot be written")
	}
	return append(text, '\n'), nil
}

// merge applies a merge patch to a table. Source: RFC 7396.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		table, ok := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok:
			below, isTable := into[key].(map[string]any)
			if !isTable {
				below = map[string]any{}
			}
			merge(below, table)
			into[key] = below
		default:
			into[key] = value
		}
	}
}

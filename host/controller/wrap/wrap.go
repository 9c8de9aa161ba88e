// Package wrap makes bootstrap data of a document stream, in the format that the first boot of an operating system reads.
//
// It is pure and does not import Kubernetes. The same input gives the same bytes. No error quotes the stream or a template.
package wrap

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Wrap makes the data of a stream of emit.Stream. A template that calls machine_config is the whole data; the output of any
// other is added to the data, for the types that consist of parts.
func (w *Wrapper) Wrap(f Format, stream []byte) (Data, error) {
	f.Type = cmp.Or(f.Type, cloudConfig)
	if f.Version != "" && f.Type != ignition {
		return Data{}, fmt.Errorf("version is for the type ignition, not for %s", f.Type)
	}
	if f.Type == talos {
		if err := refuseOnTalos(stream); err != nil {
			return Data{}, err
		}
	}
	var extra []byte
	if f.Template != nil {
		out, whole, err := w.execute(f.Template, stream)
		if err != nil {
			return Data{}, err
		}
		if f.Type == cloudConfig && regexp.MustCompile(`(?i)^\s*##\s*template:`).Match(out) {
			return Data{}, &TemplateError{Line: 1, Message: "is also one of cloud-init (jinja), which would replace text inside the documents"}
		}
		if whole {
			if err := w.checkTemplate(f); err != nil {
				return Data{}, err
			}
			return limited(f, out)
		}
		if !slices.Contains([]string{cloudConfig, cloudbaseInit, talos}, f.Type) {
			return Data{}, &TemplateError{Message: "never calls machine_config, so that the documents are not part of its output"}
		}
		if bad := checkPart(out); bad != nil {
			return Data{}, &TemplateError{Line: bad.line, Output: true, Message: bad.message}
		}
		extra = out
	}
	value, err := w.render(f, stream, extra)
	if err != nil {
		return Data{}, err
	}
	return limited(f, value)
}

// plainBytes is the most that data may have whose stream is not compressed: as much as Amazon EC2 accepts.
const plainBytes = 16 << 10

// plainest compresses the stream only if the data would be larger than plainBytes or than the format allows. Some infrastructure
// providers read data themselves and know no compression: docs/cluster-api.md lists them.
func (w *Wrapper) plainest(f Format, stream []byte, render func(text []byte, packed bool) ([]byte, error)) ([]byte, error) {
	limit, _, err := f.limit()
	if err != nil {
		return nil, err
	}
	if limit = min(limit, plainBytes); len(stream) <= limit {
		if value, err := render(stream, false); err != nil || len(value) <= limit {
			return value, err
		}
	}
	return render(w.packed(stream), true)
}

func (w *Wrapper) render(f Format, stream, extra []byte) ([]byte, error) {
	switch f.Type {
	case cloudConfig:
		return w.plainest(f, stream, func(text []byte, packed bool) ([]byte, error) { return renderCloudConfig(text, packed, extra) })
	case ignition:
		return w.plainest(f, stream, func(text []byte, packed bool) ([]byte, error) { return renderIgnition(f.Version, text, packed) })
	case cloudbaseInit:
		return renderCloudbaseInit(w.packed(stream), extra)
	case unattend:
		return renderUnattend(w.packed(stream))
	case talos:
		return renderTalos(stream, extra)
	case combustion:
		return renderCombustion(w.packed(stream)), nil
	case plain:
		return stream, nil
	}
	return nil, fmt.Errorf("the type %q is none of cloudConfig, ignition, cloudbaseInit, unattend, talos, combustion and plain", f.Type)
}

// checkTemplate checks the outputs of a template that are the whole data for two texts in the place of the stream: what is refused, and at
// which line, must not depend on the secrets in the stream. One is a word. The other has every character that needs an encoding.
func (w *Wrapper) checkTemplate(f Format) error {
	const word, special = "machine_config", "a: \"'{[<&>\n\tb\\: |\n- c\n"
	for _, text := range []string{word, special} {
		out, _, err := w.execute(f.Template, []byte(text))
		if err != nil {
			return err
		}
		bad := checkWhole(f, out)
		if bad == nil {
			continue
		}
		if text == special { // its lines differ from the template
			return &TemplateError{Output: true, Message: bad.message + ": encode what machine_config returns, as in {{ machine_config | base64 }}"}
		}
		return &TemplateError{Line: bad.line, Output: true, Message: bad.message}
	}
	return nil
}

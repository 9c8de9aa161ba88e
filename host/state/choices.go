package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
)

const choicesFile = "choices.json"

// Choices are the providers that were chosen on this machine, by KIND/NAME of the document.
func (s *Store) Choices() (map[string]string, error) {
	path := filepath.Join(s.dir, choicesFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, stateError(err)
	}
	out, err := ParseChoices(data)
	if err != nil {
		return nil, stateError(fmt.Errorf("%s is damaged: %w; remove it, and the providers are chosen anew", path, err))
	}
	return out, nil
}

// Choose keeps the provider chosen for a document, so that a later run never switches.
func (s *Store) Choose(document, provider string) error {
	choices, err := s.Choices()
	if err != nil || choices[document] == provider {
		return err
	}
	choices[document] = provider
	data, err := renderChoices(choices)
	if err != nil {
		return stateError(err)
	}
	return s.write(choicesFile, data)
}

func renderChoices(choices map[string]string) ([]byte, error) {
	data, err := json.MarshalIndent(choices, "", "  ")
	return append(data, '\n'), err
}

// Image is the state of a run on an image: what is chosen is kept in the image, for its first boot and for later bakes.
type Image struct {
	*Store
	root    string
	choices map[string]string
}

// ForImage keeps choices in the image at root. choices are those that it holds.
func (s *Store) ForImage(root string, choices map[string]string) *Image {
	return &Image{Store: s, root: root, choices: maps.Clone(choices)}
}

// Choices are none: those of the image come before the run.
func (i *Image) Choices() (map[string]string, error) { return map[string]string{}, nil }

// Choose keeps the provider chosen for a document.
func (i *Image) Choose(document, provider string) error {
	if i.choices[document] == provider {
		return nil
	}
	if i.choices == nil {
		i.choices = map[string]string{}
	}
	i.choices[document] = provider
	data, err := renderChoices(i.choices)
	if err == nil {
		err = writeBelow(i.root, ImageChoices, data, 0o644)
	}
	return stateError(err)
}

// ParseChoices reads a file of choices.
func ParseChoices(data []byte) (map[string]string, error) {
	out := map[string]string{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, errors.New("it is not a JSON object of strings")
	}
	if out == nil {
		return nil, errors.New("it holds no choices")
	}
	for document, provider := range out {
		kind, name, _ := strings.Cut(document, "/")
		if err := errors.Join(naming.ValidKind(kind), naming.ValidName(name)); err != nil {
			return nil, fmt.Errorf("a document %w", err)
		}
		if err := naming.ValidProvider(provider); err != nil {
			return nil, fmt.Errorf("the provider of %s %w", document, err)
		}
	}
	return out, nil
}

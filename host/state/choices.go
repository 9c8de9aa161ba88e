package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

// Choices returns the providers chosen on this machine, by KIND/NAME of the document.
func (s *Store) Choices() (map[string]string, error) {
	choices, found, err := load(s, choicesFile, ParseChoices, "the providers are chosen anew")
	if !found && err == nil {
		choices = map[string]string{}
	}
	return choices, err
}

// Choose saves the provider chosen for a document, so that a later run never switches.
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

// Image is the state of a run on an image. It saves choices in the image, for the first boot and for later bakes.
type Image struct {
	*Store
	root    string
	choices map[string]string
}

// ForImage returns the state for the image at root, which contains choices.
func (s *Store) ForImage(root string, choices map[string]string) *Image {
	i := &Image{Store: s, root: root, choices: map[string]string{}}
	maps.Copy(i.choices, choices)
	return i
}

// Choices returns none: the run receives the image's as an option.
func (i *Image) Choices() (map[string]string, error) { return map[string]string{}, nil }

// Choose saves the provider chosen for a document.
func (i *Image) Choose(document, provider string) error {
	if i.choices[document] == provider {
		return nil
	}
	i.choices[document] = provider
	data, err := renderChoices(i.choices)
	if err == nil {
		err = writeBelow(i.root, ImageChoices, data, 0o644)
	}
	return stateError(err)
}

// Choosable returns why the image at root does not take choices: a link that leads to nothing, or what chattr(1) or a mount protects.
func Choosable(root string) error {
	return within(root, func(opened *rooted.Root) error {
		name, directory := ImageChoices, path.Dir(ImageChoices)
		for {
			dir, err := opened.OpenDir(directory)
			if errors.Is(err, fs.ErrNotExist) && directory != "/" {
				if _, link := os.Lstat(filepath.Join(root, directory)); link != nil { // it is created
					name, directory = directory, path.Dir(directory)
					continue
				}
			}
			if err != nil {
				return located(root, directory, "open", err)
			}
			err = atomicfile.CheckWrite(dir, path.Base(name))
			return located(root, name, "write", errors.Join(err, dir.Close()))
		}
	})
}

// ParseChoices parses a file of choices.
func ParseChoices(data []byte) (map[string]string, error) {
	out := map[string]string{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, errors.New("it is not a JSON object of strings")
	}
	if out == nil {
		return nil, errors.New("it contains no choices")
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

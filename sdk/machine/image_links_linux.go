package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// enable makes the links that the unit asks for. Aliases come last: with one of them missing the unit does not count
// as enabled, whatever was interrupted.
func (s *image) enable(unit imageUnit) error {
	if unit.masked {
		return fmt.Errorf("it is masked by %s; remove that first", unit.fragment)
	}
	links := unit.install.links(unit.name)
	if len(links) == 0 && len(unit.install.also) > 0 {
		return fmt.Errorf("%s says only Also=%s; name that unit", unit.fragment, strings.Join(unit.install.also, " "))
	}
	if len(links) == 0 {
		return fmt.Errorf("%s has nothing in [Install] that says when to start it", unit.fragment)
	}
	slices.Reverse(links)
	for _, link := range links {
		name := path.Join(unitConfiguration, link)
		info, err := s.files.Lstat(name)
		if err == nil && info.Mode.Type() != fs.ModeSymlink {
			return fmt.Errorf("%s is in the way and is not a link", name)
		}
		if err == nil {
			current, err := s.files.Readlink(name)
			if err != nil {
				return err
			}
			if path.Base(current) == path.Base(unit.fragment) {
				continue
			}
			if !strings.Contains(link, "/") {
				return fmt.Errorf("the alias %s already leads to another unit, %s", name, current)
			}
		} else if !errors.Is(err, fs.ErrNotExist) && !isNotDirectory(err) {
			return err
		}
		if err := s.files.Symlink(unit.fragment, name); err != nil {
			return err
		}
	}
	return nil
}

// disable removes every link to the unit from the configuration, also those that its section does not ask for, as
// systemctl(1) does. A link of the distribution cannot be removed that way and is an error.
func (s *image) disable(unit imageUnit) error {
	names, err := s.files.ReadDir(unitConfiguration)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		full := path.Join(unitConfiguration, name)
		switch info, err := s.files.Lstat(full); {
		case err != nil:
			return err
		case info.Mode.IsDir() && dependencyDirectory(name):
			if err := s.unlinkIn(full, unit.name); err != nil {
				return err
			}
		case info.Mode.Type() == fs.ModeSymlink && name != unit.name:
			if err := s.unlinkIf(full, unit.name); err != nil {
				return err
			}
		}
	}
	for _, link := range unit.install.links(unit.name) {
		if !strings.Contains(link, "/") {
			continue // An alias starts nothing.
		}
		there, err := s.linked(link)
		if err != nil {
			return err
		}
		if there {
			return fmt.Errorf("the distribution's own %s enables it; mask it instead", link)
		}
	}
	return nil
}

func dependencyDirectory(name string) bool {
	return strings.HasSuffix(name, ".wants") || strings.HasSuffix(name, ".requires") || strings.HasSuffix(name, ".upholds")
}

func (s *image) unlinkIn(directory, unit string) error {
	names, err := s.files.ReadDir(directory)
	if err != nil {
		return err
	}
	left := len(names)
	for _, name := range names {
		link := path.Join(directory, name)
		info, err := s.files.Lstat(link)
		if err != nil {
			return err
		}
		if info.Mode.Type() != fs.ModeSymlink {
			continue
		}
		if name == unit {
			err = s.files.Remove(link)
		} else {
			err = s.unlinkIf(link, unit)
		}
		if err != nil {
			return err
		}
		if _, err := s.files.Lstat(link); errors.Is(err, fs.ErrNotExist) {
			left--
		}
	}
	if left == 0 && len(names) > 0 {
		return s.files.Remove(directory)
	}
	return nil
}

// unlinkIf removes a link that leads to the unit under another name.
func (s *image) unlinkIf(link, unit string) error {
	target, err := s.files.Readlink(link)
	if err != nil {
		return err
	}
	if path.Base(target) != unit {
		return nil
	}
	return s.files.Remove(link)
}

func isNotDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

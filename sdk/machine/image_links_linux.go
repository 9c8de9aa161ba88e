package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// enable creates the links of the unit's [Install] section. Aliases come last: a unit without one of them does not count
// as enabled, so an interrupted run is finished by the next.
func (s *image) enable(unit imageUnit) error {
	links := unit.links()
	switch also := unit.install["Also"]; {
	case unit.masked:
		return fmt.Errorf("it is masked by %s; remove that first", unit.fragment)
	case len(links) == 0 && len(also) > 0:
		return fmt.Errorf("[Install] of %s has only Also=%s; name that unit", unit.fragment, strings.Join(also, " "))
	case len(links) == 0:
		return fmt.Errorf("%s has nothing in [Install] that says when to start it", unit.fragment)
	}
	for _, link := range slices.Backward(links) {
		if err := s.link(unit, link); err != nil {
			return err
		}
	}
	return nil
}

func (s *image) link(unit imageUnit, link string) error {
	name := path.Join(unitConfiguration, link)
	info, err := s.files.Lstat(name)
	if isAbsent(err) {
		return s.files.Symlink(unit.fragment, name)
	}
	if err != nil {
		return err
	}
	if info.Mode.Type() != fs.ModeSymlink {
		return fmt.Errorf("%s exists and is not a link", name)
	}
	current, err := s.files.Readlink(name)
	switch {
	case err != nil || leadsTo(current, unit):
		return err
	case isAlias(link):
		return fmt.Errorf("the alias %s already leads to another unit, %s", name, current)
	default:
		return s.files.Symlink(unit.fragment, name)
	}
}

// disable removes every link to the unit from the configuration, also those that its section does not name, as
// systemctl(1) does. Links of the distribution cannot be removed so; one that starts the unit is an error.
func (s *image) disable(unit imageUnit) error {
	names, err := s.files.ReadDir(unitConfiguration)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		entry := path.Join(unitConfiguration, name)
		var err error
		if slices.Contains([]string{".wants", ".requires", ".upholds"}, path.Ext(name)) {
			err = s.unlinkIn(entry, unit.name)
		} else if name != unit.name { // the unit itself may be a link
			err = s.unlink(entry, unit.name)
		}
		if err != nil {
			return err
		}
	}
	for _, link := range unit.links() {
		if isAlias(link) {
			continue // an alias starts nothing
		}
		exists, err := s.linked(unit, link)
		if err != nil {
			return err
		}
		if exists {
			return fmt.Errorf("the distribution's own %s enables it; mask it instead", link)
		}
	}
	return nil
}

// unlinkIn removes the links to a unit from a directory, and the directory when that empties it.
func (s *image) unlinkIn(directory, unit string) error {
	if info, err := s.files.Lstat(directory); err != nil || !info.Mode.IsDir() {
		return err
	}
	names, err := s.files.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.unlink(path.Join(directory, name), unit); err != nil {
			return err
		}
	}
	left, err := s.files.ReadDir(directory)
	if err != nil || len(left) > 0 || len(names) == 0 {
		return err
	}
	return s.files.Remove(directory)
}

// unlink removes a link that has the name of the unit or leads to it.
func (s *image) unlink(link, unit string) error {
	info, err := s.files.Lstat(link)
	if err != nil || info.Mode.Type() != fs.ModeSymlink {
		return err
	}
	target, err := s.files.Readlink(link)
	if err != nil || path.Base(link) != unit && path.Base(target) != unit {
		return err
	}
	return s.files.Remove(link)
}

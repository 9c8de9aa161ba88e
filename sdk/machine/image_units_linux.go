package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	// unitConfiguration is the directory of the administrator's units and links.
	unitConfiguration = "/etc/systemd/system"
	// maxAliases bounds a chain of aliases.
	maxAliases = 8
)

// unitDirectories returns the unit directories of an image in order of precedence, see systemd.unit(5). Units in /run and
// generated ones exist only in a running system.
func unitDirectories() []string {
	return []string{unitConfiguration, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// image is the service manager of an image root, which like `systemctl --root` only manages links.
type image struct {
	unavailable
	files *FS
}

// imageUnit is a unit of an image.
type imageUnit struct {
	name, fragment string
	masked         bool
	install        installSection
}

func (u imageUnit) links() []string { return u.install.links(u.name) }

// find returns the unit of a name, which may be an alias.
func (s *image) find(unit string) (imageUnit, error) {
	if strings.Contains(unit, "@") {
		return imageUnit{}, fmt.Errorf("instances of templates in an image: %w", ErrUnsupported)
	}
	for range maxAliases {
		found, alias, err := s.findOne(unit)
		if err != nil || alias == "" {
			return found, err
		}
		unit = alias
	}
	return imageUnit{}, errors.New("its aliases form a circle")
}

func (s *image) findOne(unit string) (found imageUnit, alias string, err error) {
	for _, directory := range unitDirectories() {
		found := imageUnit{name: unit, fragment: path.Join(directory, unit)}
		info, err := s.files.Lstat(found.fragment)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return found, "", err
		}
		if info.Mode.Type() == fs.ModeSymlink {
			target, err := s.files.Readlink(found.fragment)
			found.masked = target == "/dev/null"
			if err != nil || found.masked {
				return found, "", err
			}
			if path.Base(target) != unit {
				return found, path.Base(target), nil
			}
		}
		data, err := s.files.ReadFile(found.fragment)
		if err != nil {
			return found, "", err
		}
		found.masked = len(data) == 0 // for systemd the same as a link to /dev/null
		if found.install, err = parseInstall(data); err != nil {
			return found, "", fmt.Errorf("%s: %w", found.fragment, err)
		}
		return found, "", nil
	}
	return imageUnit{}, "", fmt.Errorf("no unit file in %s: %w", strings.Join(unitDirectories(), ", "), fs.ErrNotExist)
}

// enabled requires every link, so that an interrupted run counts as unfinished.
func (s *image) enabled(unit imageUnit) (bool, error) {
	links := unit.links()
	for _, link := range links {
		exists, err := s.linked(unit, link)
		if err != nil || !exists {
			return false, err
		}
	}
	return len(links) > 0, nil
}

// linked searches every unit directory for a link to the unit, because a distribution can enable units in its own.
func (s *image) linked(unit imageUnit, link string) (bool, error) {
	for _, directory := range unitDirectories() {
		name := path.Join(directory, link)
		info, err := s.files.Lstat(name)
		switch {
		case isAbsent(err), err == nil && info.Mode.Type() != fs.ModeSymlink:
			continue
		case err != nil:
			return false, err
		}
		target, err := s.files.Readlink(name)
		if err != nil || leadsTo(target, unit) {
			return err == nil, err
		}
		if isAlias(link) { // the first directory decides which unit a name means
			return false, nil
		}
	}
	return false, nil
}

// leadsTo reports whether a link with this target means the unit.
func leadsTo(target string, unit imageUnit) bool {
	return path.Base(target) == path.Base(unit.fragment)
}

// isAlias reports whether a link of an [Install] section is another name of the unit.
func isAlias(link string) bool { return !strings.Contains(link, "/") }

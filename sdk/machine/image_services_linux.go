package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
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

func imageServices(files *FS) Services { return &image{unavailable{ErrOffline}, files} }

// imageUnit is a unit of an image.
type imageUnit struct {
	name, fragment string
	masked         bool
	install        installSection
}

func (u imageUnit) links() []string { return u.install.links(u.name) }

// State implements Services. An alias has the state of its unit.
func (s *image) State(_ context.Context, unit string) (ServiceState, error) {
	unit, err := unitName(unit)
	if err != nil {
		return ServiceState{}, err
	}
	found, err := s.find(unit)
	if errors.Is(err, fs.ErrNotExist) {
		return ServiceState{}, nil
	}
	enabled := false
	if err == nil && !found.masked {
		enabled, err = s.enabled(found)
	}
	if err != nil {
		return ServiceState{}, &ServiceError{Unit: unit, Action: "query", Err: err}
	}
	state := ServiceState{
		ID: found.name, Names: []string{found.name}, Exists: true, Masked: found.masked, Fragment: found.fragment,
		Enabled: enabled, StartsAtBoot: enabled, FileState: "disabled",
	}
	switch {
	case found.masked:
		state.FileState = "masked"
	case enabled:
		state.FileState = "enabled"
	case len(found.links()) == 0:
		state.FileState = "static"
	}
	return state, nil
}

// States implements Services.
func (s *image) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	return statesOf(ctx, s, units)
}

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
		exists, err := s.linked(link)
		if err != nil || !exists {
			return false, err
		}
	}
	return len(links) > 0, nil
}

// linked searches every unit directory, because a distribution can enable units in its own.
func (s *image) linked(link string) (bool, error) {
	for _, directory := range unitDirectories() {
		info, err := s.files.Lstat(path.Join(directory, link))
		if err == nil && info.Mode.Type() == fs.ModeSymlink {
			return true, nil
		}
		if err != nil && !isAbsent(err) {
			return false, err
		}
	}
	return false, nil
}

// SetEnabled implements Services.
func (s *image) SetEnabled(_ context.Context, unit string, enabled bool) error {
	unit, err := unitName(unit)
	if err != nil {
		return err
	}
	change := s.disable
	if enabled {
		change = s.enable
	}
	if err := s.each(unit, change); err != nil {
		return &ServiceError{Unit: unit, Action: enabling(enabled), Err: err}
	}
	return nil
}

// each applies change to a unit and to those that its [Install] section names with Also=.
func (s *image) each(unit string, change func(imageUnit) error) error {
	units := []string{unit}
	for i := 0; i < len(units); i++ {
		found, err := s.find(units[i])
		if err != nil {
			return err
		}
		if i == 0 && found.name != unit {
			return fmt.Errorf("it is an alias; name the unit itself, %s", found.name)
		}
		if i > 0 && len(found.links()) == 0 {
			continue
		}
		if err := change(found); err != nil {
			return err
		}
		for _, also := range found.install["Also"] {
			if !slices.Contains(units, also) {
				units = append(units, also)
			}
		}
	}
	return nil
}

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

// unitConfiguration is where an administrator's units and links are.
const unitConfiguration = "/etc/systemd/system"

// unitDirectories returns where units are looked for in an image, the first hit wins; see systemd.unit(5). What a
// running system generates or holds in /run is not there yet.
func unitDirectories() []string {
	return []string{unitConfiguration, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// image is the service manager of an image root: links are all there is, as for `systemctl --root`.
type image struct{ files *FS }

func imageServices(files *FS) Services { return &image{files: files} }

// imageUnit is a unit file as it was found.
type imageUnit struct {
	name, fragment string
	masked         bool
	install        installSection
}

// State implements Services. An alias is described as the unit that it stands for.
func (s *image) State(_ context.Context, unit string) (ServiceState, error) {
	unit, err := unitName(unit)
	if err != nil {
		return ServiceState{}, err
	}
	found, err := s.find(unit)
	if errors.Is(err, fs.ErrNotExist) {
		return ServiceState{}, nil
	}
	if err != nil {
		return ServiceState{}, &ServiceError{Unit: unit, Action: "query", Err: err}
	}
	state := ServiceState{
		ID: found.name, Names: []string{found.name}, Exists: true, Masked: found.masked, Fragment: found.fragment,
	}
	if !found.masked {
		state.Enabled, err = s.enabled(found)
	}
	if err != nil {
		return ServiceState{}, &ServiceError{Unit: unit, Action: "query", Err: err}
	}
	state.StartsAtBoot = state.Enabled
	switch {
	case found.masked:
		state.FileState = "masked"
	case state.Enabled:
		state.FileState = "enabled"
	case len(found.install.links(found.name)) == 0:
		state.FileState = "static"
	default:
		state.FileState = "disabled"
	}
	return state, nil
}

// States implements Services.
func (s *image) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	return statesOf(ctx, s, units)
}

// find looks a unit up and follows an alias to the unit that it names.
func (s *image) find(unit string) (imageUnit, error) {
	if strings.Contains(unit, "@") {
		return imageUnit{}, fmt.Errorf("instances of templates in an image: %w", ErrUnsupported)
	}
	for range linksPerAlias {
		found, alias, err := s.findOne(unit)
		if err != nil || alias == "" {
			return found, err
		}
		unit = alias
	}
	return imageUnit{}, errors.New("its aliases go round in a circle")
}

const linksPerAlias = 8

func (s *image) findOne(unit string) (found imageUnit, alias string, err error) {
	for _, directory := range unitDirectories() {
		fragment := path.Join(directory, unit)
		info, err := s.files.Lstat(fragment)
		if errors.Is(err, fs.ErrNotExist) || isNotDirectory(err) {
			continue
		}
		if err != nil {
			return imageUnit{}, "", err
		}
		if info.Mode.Type() == fs.ModeSymlink {
			target, err := s.files.Readlink(fragment)
			if err != nil {
				return imageUnit{}, "", err
			}
			if target == "/dev/null" {
				return imageUnit{name: unit, fragment: fragment, masked: true}, "", nil
			}
			if path.Base(target) != unit {
				return imageUnit{}, path.Base(target), nil
			}
		}
		data, err := s.files.ReadFile(fragment)
		if err != nil {
			return imageUnit{}, "", err
		}
		// For systemd an empty unit file means the same as a link to /dev/null.
		found := imageUnit{name: unit, fragment: fragment, masked: len(data) == 0}
		if found.install, err = parseInstall(data); err != nil {
			return imageUnit{}, "", fmt.Errorf("%s: %w", fragment, err)
		}
		return found, "", nil
	}
	return imageUnit{}, "", fmt.Errorf("no unit file in %s: %w", strings.Join(unitDirectories(), ", "), fs.ErrNotExist)
}

// enabled wants every link, not just one: a run that ended between two is then seen as not finished.
func (s *image) enabled(unit imageUnit) (bool, error) {
	links := unit.install.links(unit.name)
	for _, link := range links {
		there, err := s.linked(link)
		if err != nil || !there {
			return false, err
		}
	}
	return len(links) > 0, nil
}

// linked looks in every unit directory: a distribution may have enabled a unit in its own.
func (s *image) linked(link string) (bool, error) {
	for _, directory := range unitDirectories() {
		info, err := s.files.Lstat(path.Join(directory, link))
		if err == nil && info.Mode.Type() == fs.ModeSymlink {
			return true, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotDirectory(err) {
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
	action, change := "disable", s.disable
	if enabled {
		action, change = "enable", s.enable
	}
	if err := s.each(unit, change); err != nil {
		return &ServiceError{Unit: unit, Action: action, Err: err}
	}
	return nil
}

// each applies change to the unit and to those that its section names with Also=.
func (s *image) each(unit string, change func(imageUnit) error) error {
	waiting, seen := []string{unit}, []string{}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		found, err := s.find(name)
		if err != nil {
			return err
		}
		if found.name != name && name == unit {
			return fmt.Errorf("it is an alias; name the unit itself, %s", found.name)
		}
		if name != unit && len(found.install.links(found.name)) == 0 {
			continue
		}
		if err := change(found); err != nil {
			return err
		}
		waiting = append(waiting, found.install.also...)
	}
	return nil
}

// Do implements Services.
func (s *image) Do(_ context.Context, unit string, a Action) error {
	return &ServiceError{Unit: printable(unit), Action: a.String(), Err: ErrOffline}
}

// DaemonReload implements Services.
func (s *image) DaemonReload(context.Context) error {
	return &ServiceError{Unit: "systemd", Action: "reload", Err: ErrOffline}
}

package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/machineadm/machineadm/contract/target"
)

// imageServices reads the units of an image that boots systemd, or that does not show yet what it will boot.
func imageServices(files *FS, init string) Services {
	if !slices.Contains([]string{"", target.InitNone, target.InitSystemd}, init) {
		return unavailable{fmt.Errorf("%w: %s starts the services of the image, not systemd", ErrUnsupported, init)}
	}
	return &image{unavailable{ErrOffline}, files}
}

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
		Enabled: enabled, FileState: "disabled",
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
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue // systemctl only warns: packages name units of others that may be missing
		}
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

package skeleton

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// ours is the module of machineadm.
const ours = "github.com/machineadm/machineadm"

// Check returns everything that is wrong with the options, as sentences for people who typed them.
func (o Options) Check() error {
	var wrong []error
	if err := naming.ValidKind(o.Kind); err != nil {
		wrong = append(wrong, fmt.Errorf("KIND %w", err))
	} else if err := o.checkKind(); err != nil {
		wrong = append(wrong, err)
	}
	if o.Provider == "" {
		wrong = append(wrong, errors.New("--provider is missing: it names who takes care of the kind, such as file"))
	} else if err := naming.ValidProvider(o.Provider); err != nil {
		wrong = append(wrong, fmt.Errorf("--provider %w", err))
	}
	if o.Module != "" && !isModule(o.Module) {
		wrong = append(wrong, errors.New("--module takes the path of a Go module of your own, such as example.com/motd"))
	}
	return errors.Join(wrong...)
}

func (o Options) checkKind() error {
	known := slices.Contains(structs(), o.Kind)
	own := slices.Contains(v1alpha1.Kinds(), o.Kind)
	group, version, both := strings.Cut(o.APIVersion, "/")
	switch {
	case own && !known:
		return fmt.Errorf("%s is a kind of machineadm's own that is not there yet: no provider of it can be written before it is", o.Kind)
	case own && o.APIVersion != "":
		return fmt.Errorf("%s is a kind of %s, which --group cannot change: leave it out", o.Kind, v1alpha1.APIVersion)
	case o.APIVersion == "":
		return nil
	case !both || naming.ValidName(group) != nil || !strings.Contains(group, ".") ||
		!regexp.MustCompile(`^v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?$`).MatchString(version):
		return errors.New("--group takes a domain of yours and a version, such as example.com/v1")
	case group == v1alpha1.Group:
		return fmt.Errorf("--group: only machineadm adds kinds to %s: take a domain of yours", v1alpha1.Group)
	}
	return nil
}

// isModule is stricter than the go command, so that a path needs no quotes anywhere.
func isModule(text string) bool {
	element := `[a-z0-9_]([a-z0-9._~-]*[a-z0-9_])?`
	return len(text) <= 200 && regexp.MustCompile(`^`+element+`(/`+element+`)*$`).MatchString(text) &&
		text != ours && !strings.HasPrefix(text, ours+"/")
}

// isRelease says whether a version can be had of a module proxy.
func isRelease(version string) bool {
	return version != unpublished && regexp.MustCompile(`^v(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-(alpha|beta|rc)\.\d+)?$`).MatchString(version)
}

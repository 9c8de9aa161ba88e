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

// ours is the module path of machineadm.
const ours = "github.com/machineadm/machineadm"

// Check returns all errors of the options, in the terms of the command line.
func (o Options) Check() error {
	var wrong []error
	if err := naming.ValidKind(o.Kind); err != nil {
		wrong = append(wrong, fmt.Errorf("KIND %w", err))
	} else if err := o.checkKind(); err != nil {
		wrong = append(wrong, err)
	}
	if o.Provider == "" {
		wrong = append(wrong, errors.New("--provider is missing: it names the implementation of the kind, such as file"))
	} else if err := naming.ValidProvider(o.Provider); err != nil {
		wrong = append(wrong, fmt.Errorf("--provider %w", err))
	}
	if o.Module != "" && !isModule(o.Module) {
		wrong = append(wrong, errors.New("--module takes the path of a new Go module, such as example.com/motd"))
	}
	return errors.Join(wrong...)
}

func (o Options) checkKind() error {
	own := slices.Contains(v1alpha1.Kinds(), o.Kind)
	group, version, both := strings.Cut(o.APIVersion, "/")
	switch {
	case o.Kind == v1alpha1.KindReportTarget:
		return fmt.Errorf("%s is served by the plugins of %s: write one of that kind", o.Kind, v1alpha1.KindRemoteConfig)
	case own && o.APIVersion != "":
		return fmt.Errorf("%s is a kind of %s: leave out --group", o.Kind, v1alpha1.APIVersion)
	case o.APIVersion == "":
		return nil
	case !both || naming.ValidName(group) != nil || !strings.Contains(group, ".") ||
		!regexp.MustCompile(`^v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?$`).MatchString(version):
		return errors.New("--group takes your domain and a version, such as example.com/v1")
	case group == v1alpha1.Group:
		return fmt.Errorf("--group: %s is reserved for machineadm: use your domain", v1alpha1.Group)
	}
	return nil
}

// isModule is stricter than the go command, so that a path never needs quotes.
func isModule(text string) bool {
	element := `[a-z0-9_]([a-z0-9._~-]*[a-z0-9_])?`
	return len(text) <= 200 && regexp.MustCompile(`^`+element+`(/`+element+`)*$`).MatchString(text) &&
		text != ours && !strings.HasPrefix(text, ours+"/")
}

package ready

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// variablesOfKubelet are the files whose KUBELET_EXTRA_ARGS is the end of the kubelet's command line. Source: the drop-in 10-kubeadm.conf of
// the packages of Kubernetes.
func variablesOfKubelet() []string { return []string{"/etc/default/kubelet", "/etc/sysconfig/kubelet"} }

// overridden checks that no file of the machine gives the kubelet other settings than the document: its flags precede what kubeadm writes.
func (c *checker) overridden(ctx context.Context) error {
	state, err := c.m.Services.State(ctx, "kubelet")
	if err != nil {
		return err
	}
	command := slices.Clone(state.Command)
	for _, file := range variablesOfKubelet() {
		text, err := c.m.FS.ReadFile(file)
		if own := slices.IndexFunc(c.s.Files, func(f settings.File) bool { return f.Path == file }); own >= 0 {
			text, err = c.s.Files[own].Content, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		words := extraArguments(strings.Split(string(text), "\n"))
		c.missing = append(c.missing, c.s.Overridden(words, file)...)
		command = append(command, words...)
	}
	words := extraArguments(state.Environment)
	c.missing = append(c.missing, c.s.Overridden(words, "Environment= of the service kubelet")...)
	if directory := settings.ConfigDirectory(append(command, words...)); directory != "" {
		return c.configDirectory(directory)
	}
	return nil
}

// extraArguments are the words of KUBELET_EXTRA_ARGS among assignments.
func extraArguments(assignments []string) []string {
	var all []string
	for _, line := range assignments {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "KUBELET_EXTRA_ARGS="); ok {
			all = strings.Fields(strings.Trim(value, `"'`))
		}
	}
	return all
}

// configDirectory checks the files that the kubelet merges into its configuration: each precedes those before it.
func (c *checker) configDirectory(directory string) error {
	names, err := c.m.FS.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if path.Ext(name) != ".conf" {
			continue
		}
		file := path.Join(directory, name)
		text, err := c.m.FS.ReadFile(file)
		if err != nil {
			return err
		}
		fields := map[string]any{}
		if data, err := document.JSON("", text); err == nil { // otherwise the kubelet says so
			decoder := json.NewDecoder(strings.NewReader(string(data)))
			decoder.UseNumber()
			_ = decoder.Decode(&fields) // what is no mapping has no fields
		}
		c.missing = append(c.missing, c.s.OverriddenBy(fields, file)...)
	}
	return nil
}

// InForce compares the settings of the document with the flags of the kubelet that runs. It is nil if none runs.
func InForce(ctx context.Context, m sdk.Machine, s settings.Settings) ([]sdk.Violation, error) {
	state, err := m.Services.State(ctx, "kubelet")
	if err != nil || state.MainPID == 0 {
		return nil, err
	}
	text, err := m.FS.ReadFile(fmt.Sprintf("/proc/%d/cmdline", state.MainPID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return s.Overridden(strings.Split(string(text), "\x00"), "the command line of the running service (systemctl cat kubelet)"), err
}

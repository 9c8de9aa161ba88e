package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/machineadm/machineadm/internal/cri"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// explained makes the absence of CRI final. The daemon listens only after it has loaded its plugins, so that a later call
// gets the same answer.
func explained(err error) error {
	if errors.Is(err, cri.ErrNotServed) {
		return sdk.Final(fmt.Errorf("it runs without the Container Runtime Interface; see \"failed to load plugin\" in journalctl -u %s: %w", settings.Unit, err))
	}
	return err
}

// inPlace reports whether the files have the new content: a configuration that is rolled back has the old one.
func inPlace(m sdk.Machine, files []sdk.FileSpec) bool {
	for _, spec := range files {
		text, err := m.FS.ReadFile(spec.Path)
		if err != nil || !bytes.Equal(text, spec.Content) {
			return false
		}
	}
	return true
}

// socketOf is the socket of the daemon by the files that are there now. The drop-in wins over the main file.
func socketOf(m sdk.Machine, c layout.Configuration) string {
	for _, spec := range c.Files() {
		text, err := m.FS.ReadFile(spec.Path)
		if err != nil {
			continue // then the daemon has the default, or does not run
		}
		d, err := tomledit.Parse(text)
		if err != nil {
			continue
		}
		for _, at := range [][]string{{"plugins", "io.containerd.server.v1.grpc", "address"}, {"grpc", "address"}} {
			if value, _ := d.Get(at...); value != nil && value != "" {
				socket, _ := value.(string)
				return socket
			}
		}
	}
	return defaultSocket
}

// inStatus is the path of a setting in the verbose status of CRI, nil for a setting that it does not have.
func inStatus(path []string) []string {
	if len(path) < 3 || path[0] != "plugins" || path[1] != settings.CRIPlugin && path[1] != settings.RuntimePlugin {
		return nil
	}
	rest := path[2:]
	if len(rest) > 3 && rest[0] == "containerd" && rest[1] == "runtimes" {
		switch {
		case len(rest) == 5 && rest[3] == "options":
			return rest
		case len(rest) == 4 && rest[3] == "runtime_type":
			return []string{"containerd", "runtimes", rest[2], "runtimeType"}
		}
		return nil
	}
	name := map[string]string{
		"sandbox_image": "sandboxImage", "max_concurrent_downloads": "maxConcurrentDownloads", "registry.config_path": "registry.configPath",
		"containerd.snapshotter": "containerd.snapshotter", "containerd.default_runtime_name": "containerd.defaultRuntimeName",
		"cni.conf_dir": "cni.confDir", "cni.bin_dir": "cni.binDir", "enable_cdi": "enableCDI",
	}[strings.Join(rest, ".")]
	if name == "" || name == "cni.binDir" && path[1] == settings.RuntimePlugin { // 2.x reports a list
		return nil
	}
	return strings.Split(name, ".")
}

// shown compares the settings with the configuration in the status. The daemon decides what that has, and in which form:
// what is not there is not compared.
func (k Checker) shown(text string) error {
	var config map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		config = nil
	}
	for _, s := range k.Configuration.Settings {
		at := inStatus(s.Path)
		if at == nil {
			continue
		}
		if now := lookup(config, at...); now != nil && fmt.Sprint(now) != fmt.Sprint(settings.General(s.Value)) {
			return fmt.Errorf("it does not have the value of %s", s.Origin())
		}
	}
	return nil
}

// Healthy makes the calls that the kubelet will make. With the new files in place it also compares the configuration.
func (k Checker) Healthy(ctx context.Context, m sdk.Machine, _ sdk.Progress) error {
	socket := socketOf(m, k.Configuration)
	client, err := cri.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return m.FS.Dial(ctx, socket) })
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // a connection that was only read
	version, err := client.Version(ctx)
	if err != nil {
		return explained(err)
	}
	running, err := settings.ParseRelease(version.Version)
	if err != nil || version.Runtime != "containerd" {
		return fmt.Errorf("%s answers on the socket of containerd", version.Runtime)
	}
	status, err := client.Status(ctx, true)
	if err != nil {
		return explained(err)
	}
	if !status.RuntimeReady.Met {
		return fmt.Errorf("it says that it is not ready to run containers: %s", status.RuntimeReady.Reason)
	}
	if !inPlace(m, k.Configuration.Files()) {
		return nil
	}
	if running.Minor != k.Installation.Release.Minor {
		return sdk.Final(fmt.Errorf("containerd %s runs, not %s", running, k.Installation.Release))
	}
	if inPlace(m, k.Service) {
		if err := inForce(ctx, m, k.Environment); err != nil {
			return sdk.Final(err)
		}
	}
	text, ok := status.Info.Reveal("config")
	if !ok {
		return nil
	}
	return k.shown(text)
}

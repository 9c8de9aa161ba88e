package wrap

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	nodePath = "/etc/machineadm/node.yaml"
	unitName = "machineadm-firstboot.service"
)

// unitText is the unit that applies the stream, once: it removes the stream after a successful run, and then its condition does
// not hold. A run that was cut off begins again at the next boot. One that waits for its own reboot is resumed by the
// unit that machineadm writes; that one starts later, and does nothing when this one has finished the run.
// A run that fails is repeated as by the unit of the packages (docs/decisions/0046).
//
// Distributions with a read-only /usr, such as Flatcar, have machineadm in /opt/bin.
func unitText() string {
	return `[Unit]
Description=Prepare this machine to be a Kubernetes node
Documentation=man:machineadm(8)
ConditionPathExists=` + nodePath + `
Wants=network-online.target
After=network-online.target multi-user.target
Before=machineadm-resume.service

[Service]
Type=oneshot
TimeoutStartSec=infinity
TimeoutStopSec=90
KillMode=mixed
SuccessExitStatus=3
Restart=on-failure
RestartPreventExitStatus=2 6 8
RestartSec=30
RestartSteps=5
RestartMaxDelaySec=600
StandardOutput=journal+console
StandardError=journal+console
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin
ExecStart=/usr/bin/env machineadm --bootstrap --path ` + nodePath + `
ExecStartPost=/usr/bin/env rm -f ` + nodePath + `

[Install]
WantedBy=multi-user.target
`
}

// ignitionConfig is what we use of an Ignition configuration; it is the same in 3.0 to 3.5. Source: the Ignition specification.
type ignitionConfig struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"systemd"`
}

type ignitionFile struct {
	Path      string           `json:"path"`
	Overwrite bool             `json:"overwrite"`
	Mode      int              `json:"mode"`
	Contents  ignitionContents `json:"contents"`
}

type ignitionContents struct {
	Compression string `json:"compression,omitempty"`
	Source      string `json:"source"`
}

type ignitionUnit struct {
	Name     string `json:"name"`
	Enabled  bool   `json:"enabled"`
	Contents string `json:"contents"`
}

// ignitionVersions are the versions of the Ignition specification that we write and accept.
func ignitionVersions() []string { return []string{"3.0", "3.1", "3.2", "3.3", "3.4", "3.5"} }

// renderIgnition writes the stream to /etc, because /run of the initial RAM disk, in which Ignition runs, is not that of the
// system.
func renderIgnition(version string, text []byte, packed bool) ([]byte, error) {
	if version == "" {
		version = "3.3"
	}
	if supported := ignitionVersions(); !slices.Contains(supported, version) {
		return nil, fmt.Errorf("the version of Ignition %q is none of %s", version, strings.Join(supported, ", "))
	}
	var c ignitionConfig
	c.Ignition.Version = version + ".0"
	contents := ignitionContents{Source: dataURL(text)}
	if packed {
		contents.Compression = "gzip"
	}
	c.Storage.Files = []ignitionFile{{Path: nodePath, Overwrite: true, Mode: 0o600, Contents: contents}}
	c.Systemd.Units = []ignitionUnit{{Name: unitName, Enabled: true, Contents: unitText()}}
	return json.Marshal(c)
}

// renderCombustion is a script that leaves the same as Ignition does. It runs before the system itself, in the snapshot that
// will be booted, where machineadm cannot prepare anything yet.
func renderCombustion(packed []byte) []byte {
	const here = "END_OF_MACHINEADM_DATA"
	return []byte(`#!/bin/sh
set -eu
mkdir -p /etc/machineadm
(umask 077 && base64 -d <<'` + here + `' | gzip -dc >` + nodePath + `)
` + encoded(packed) + `
` + here + `
cat >/etc/systemd/system/` + unitName + ` <<'` + here + `'
` + unitText() + here + `
systemctl enable ` + unitName + `
`)
}

#!/bin/sh
set -eu
mkdir -p /etc/machineadm
(umask 077 && base64 -d <<'END_OF_MACHINEADM_DATA' | gzip -dc >/etc/machineadm/node.yaml)
H4sIAAAAAAAA/2zOvWoDMRAE4F5PsS+wcgwugh4iTSD9RjfGQr9o9w7f24cjJFzhbmAGvpGRvjA19RaoSnykBlmqj2VVw/RPzu/qU79sVynjIVeXU1sCfe4arbgKk0VMgiNqUhEor9+YDQZ1OhCPYsx+TwV6ZCI+T5jZnR/gKXUU+NjrZfuzPnofLySD2r9hPaP9ApuUFYHird3mzm93FlabkOp+AgAA//9ESxIL7AAAAA==
END_OF_MACHINEADM_DATA
cat >/etc/systemd/system/machineadm-firstboot.service <<'END_OF_MACHINEADM_DATA'
[Unit]
Description=Prepare this machine to be a Kubernetes node
Documentation=man:machineadm(8)
ConditionPathExists=/etc/machineadm/node.yaml
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
ExecStart=/usr/bin/env machineadm --bootstrap --path /etc/machineadm/node.yaml
ExecStartPost=/usr/bin/env rm -f /etc/machineadm/node.yaml

[Install]
WantedBy=multi-user.target
END_OF_MACHINEADM_DATA
systemctl enable machineadm-firstboot.service

#!/bin/sh
# Runs after a removal or upgrade, with the arguments of preremove.sh; purge, of deb alone, removes the state as well.
set -e
if [ "${1:-}" = purge ]; then
	if [ -e /run/machineadm/lock ] && ! flock --nonblock /run/machineadm/lock true; then
		echo "machineadm: a run is active and writes its state; wait until it has ended, then purge again" >&2
		exit 1
	fi
	unit=/etc/systemd/system/machineadm-resume.service
	if [ "$(head -n 1 $unit 2>/dev/null)" = "# Written by machineadm, which removes it when the run has ended." ]; then
		rm -f /etc/systemd/system/multi-user.target.wants/machineadm-resume.service $unit
	fi
	rm -rf /var/lib/machineadm /run/machineadm
	rm -f /etc/machineadm/choices.json /etc/machineadm/.pending
	rmdir /etc/machineadm 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload || true
fi

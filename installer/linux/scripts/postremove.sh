#!/bin/sh
# Runs after a removal or upgrade, with the arguments of preremove.sh; purge, of deb alone, removes the state as well.
set -e
if [ "${1:-}" = purge ]; then
	if [ -e /run/machineadm/lock ]; then
		exec 9</run/machineadm/lock # held until this script ends: no run can start
		if ! flock -n 9; then
			echo "machineadm: a run is active and writes its state; wait until it has ended, then purge again" >&2
			exit 1
		fi
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system stop machineadm-report.timer 2>/dev/null || true
	fi
	units=/etc/systemd/system
	for unit in machineadm-resume.service machineadm-report.service machineadm-report.timer; do
		case $(head -n 1 $units/$unit 2>/dev/null) in
		"# Written by machineadm, which removes it when "*) rm -f $units/*.target.wants/$unit $units/$unit ;;
		esac
	done
	rm -rf /var/lib/machineadm /run/machineadm
	rm -f /etc/machineadm/choices.json /etc/machineadm/.pending
	rmdir /etc/machineadm 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload || true
fi

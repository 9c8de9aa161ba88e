#!/bin/sh
# Runs before a removal or upgrade. The argument is the action (deb), the number of versions that stay (rpm), or the version
# that is removed (apk, pacman). A run that is active is not stopped.
set -e
case ${1:-} in
upgrade | failed-upgrade | deconfigure | [1-9]) exit 0 ;;
esac
if command -v systemctl >/dev/null; then
	systemctl --no-reload disable machineadm-firstboot.service >/dev/null 2>&1 || true
fi

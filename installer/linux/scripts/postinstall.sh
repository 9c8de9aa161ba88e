#!/bin/sh
# Runs after an installation or upgrade, for every package format. It starts nothing: a run begins at the next boot or by hand.
set -e
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload || true
fi

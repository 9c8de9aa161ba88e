#!/usr/bin/env bash
# make demo-node: examples/node.yaml against a freshly booted Debian node with a real systemd. Root on Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. testenv/demo/show.sh
if [[ $(id -u) != 0 ]]; then
  echo "demo-node boots a machine (systemd-nspawn) and needs root; make demo does not" >&2
  exit 1
fi
show env CI=true MACHINEADM_TIERS=system go test -count=1 -v -run '^TestNode$' ./testenv/demo

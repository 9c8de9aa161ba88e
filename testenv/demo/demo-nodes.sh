#!/usr/bin/env bash
# make demo-nodes: examples/control-plane.yaml and examples/worker.yaml make a cluster of two freshly booted machines. Root on
# Debian. Ctrl-C removes the machines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. testenv/demo/show.sh
missing=()
[[ $(id -u) == 0 ]] || missing+=("root")
grep -qs '^ID=debian$' /etc/os-release || missing+=("Debian")
if ((${#missing[@]})); then
  echo "demo-nodes boots machines with systemd-nspawn and needs root on Debian; missing here: ${missing[*]}. make demo needs neither" >&2
  exit 1
fi
echo "What is not in the cache is built first: all programs of Kubernetes take a quarter of an hour, once."
show env CI=true MACHINEADM_TIERS=system,cluster go test -count=1 -v -timeout 60m -run '^TestNodes$' ./testenv/demo

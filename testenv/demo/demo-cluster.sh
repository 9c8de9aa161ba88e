#!/usr/bin/env bash
# make demo-cluster: the objects of examples/cluster-api become a control plane and a worker on freshly booted machines, by Cluster API
# and this project's controller. Root on Debian. Ctrl-C removes everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. testenv/demo/show.sh
missing=()
[[ $(id -u) == 0 ]] || missing+=("root")
grep -qs '^ID=debian$' /etc/os-release || missing+=("Debian")
if ((${#missing[@]})); then
  echo "demo-cluster boots machines with systemd-nspawn and needs root on Debian; missing here: ${missing[*]}. make demo needs neither" >&2
  exit 1
fi
echo "What is not in the cache is built first: all programs of Kubernetes and Cluster API take a quarter of an hour, once."
show env CI=true MACHINEADM_TIERS=system,cluster,campaign go test -count=1 -v -timeout 60m -run '^TestDemo$' ./testenv/infrastructure

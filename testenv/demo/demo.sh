#!/usr/bin/env bash
# make demo: the whole story on a scratch root, without privileges and without a network.
# Usage: demo.sh, after make build
set -euo pipefail
# The host runs no plugin that other users can write. A checkout made under umask 002 would fail that rule, so
# the demo copies them to a directory of its own; the rule itself stays on.
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$PWD/bin
stream=$PWD/examples/node.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -m 700 "$scratch/bin"
install -m 755 "$bin"/machineadm* "$scratch/bin/"
install -m 600 "$stream" "$scratch/node.yaml"
mkdir -p "$scratch/image/etc" "$scratch/image/usr/lib" "$scratch/run" "$scratch/state"
printf 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n' > "$scratch/image/usr/lib/os-release"
ln -s ../usr/lib/os-release "$scratch/image/etc/os-release"
cd "$scratch"

# step EXPECTED-EXIT-CODE COMMAND...: shows the command, runs it, and fails when it ends in any other way.
step() {
  local want=$1 got=0
  shift
  printf '\n$ machineadm %s\n' "$*"
  "$scratch/bin/machineadm" --plugin-dir "$scratch/bin" "$@" || got=$?
  if [ "$got" -ne "$want" ]; then
    printf 'demo: machineadm ended with %s, expected %s\n' "$got" "$want" >&2
    exit 1
  fi
}

echo "== 1. Is the configuration right?"
step 0 validate --path node.yaml
echo
echo "== 2. What would change in the image? (exit code 10: something would)"
step 10 plan --path node.yaml --root image
echo
echo "== 3. Make it so"
step 0 apply --path node.yaml --root image --run-dir "$scratch/run" --state-dir "$scratch/state"
echo
echo "== 4. Once more: converged (exit code 0); what is left needs the live machine and waits for first boot"
step 0 plan --path node.yaml --root image
echo
echo "== 5. How did the last run end?"
step 0 status --run-dir "$scratch/run" --state-dir "$scratch/state"
echo
echo "== The report, and the image"
cat "$scratch/run/report.json"
(cd image && find . -type f -newer etc/os-release ! -name os-release | sort | while read -r file; do printf '\n%s:\n' "$file"; sed 's/^/    /' "$file"; done)

#!/usr/bin/env bash
# Fuzzes every target of the checkout for a short while each (FUZZTIME, default 10s), on top of its seed corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

found=0 failed=()
while IFS=: read -r file line; do
	target=${line#func }
	target=${target%%(*}
	package=./$(dirname "$file")
	found=$((found + 1))
	echo "== $package $target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" "$package" || failed+=("$package $target")
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+\(' contract host installer internal plugins sdk testenv 2>/dev/null | sort)

echo "fuzzed $found targets for ${FUZZTIME:-10s} each, ${#failed[@]} failed"
if ((${#failed[@]})); then
	printf '  %s\n' "${failed[@]}"
	exit 1
fi

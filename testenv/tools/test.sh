#!/usr/bin/env bash
# Runs every test of the checkout and of its nested modules, and ends with gotestsum's summary: what failed, and every
# skipped test with its reason. Arguments go to go test: test.sh -run TestX -count=1
#
# Packages of the product that start goroutines or share memory between them run with the race detector where the machine can
# link it; for the others, and for the controller with the libraries of Kubernetes, make campaign does so, because it
# compiles everything once more. testenv boots real nodes and starts real servers: nothing is gained there by a slower binary, and
# a remembered result proves nothing about this machine. Its packages wait for nodes and servers half of the time, so more of
# them run at once than there are processors. go vet is a part of make lint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# events ARGS: what gotestsum reads, go test's JSON events of all runs, one after the other.
events() {
	local status=0 module race=()
	[[ ${MACHINEADM_RACE:-0} == 0 ]] || race=(-race)
	CGO_ENABLED=${MACHINEADM_RACE:-0} go test -json -vet=off -timeout 20m "${race[@]}" "$@" $(packages concurrent) || status=1
	CGO_ENABLED=0 go test -json -vet=off -timeout 20m "$@" $(packages sequential) || status=1
	CGO_ENABLED=0 go test -json -vet=off -timeout 30m -p 3 -count=1 "$@" $(packages testenv) || status=1
	for module in $(modules); do
		CGO_ENABLED=0 GOWORK=off go -C "$module" test -json -vet=off -timeout 20m "$@" ./... || status=1
	done
	return $status
}

# packages KIND: the concurrent or the sequential packages of the product, or those of testenv but for the virtual machines,
# which make test-vm runs.
packages() {
	local package dir kind
	go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
		case $package in
		*/testenv/vm) continue ;;
		*/testenv | */testenv/*) kind=testenv ;;
		*/host/controller | */host/controller/*) kind=sequential ;;
		*) grep -Eqs --include='*.go' --exclude='*_test.go' --directories=skip \
			'^[[:space:]]*go [[:alpha:]]|[.]Go\(|sync[.]|atomic[.]' "$dir"/*.go && kind=concurrent || kind=sequential ;;
		esac
		[[ $kind != "$1" ]] || echo "$package"
	done
}

# modules: the nested modules that hold tests.
modules() {
	local mod
	find . -mindepth 2 -name go.mod -not -path './bin/*' -not -path './dist/*' | sort | while read -r mod; do
		mod=${mod%/go.mod}
		[[ -z $(find "$mod" -name '*_test.go' -print -quit) ]] || echo "$mod"
	done
}

# race: whether this machine can link the race detector.
race() {
	CGO_ENABLED=1 go build -race -o /dev/null ./internal/version 2>/dev/null
}

if [[ ${1:-} == events ]]; then
	shift
	events "$@"
	exit
fi

if race; then
	export MACHINEADM_RACE=1
	# The race detector has each process sleep for a second at its end; tests that start hundreds would wait for it.
	export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
else
	echo "NOTE: no C compiler is found, so the tests run WITHOUT the race detector" >&2
	if [[ ${CI:-} == true ]]; then
		echo "missing prerequisite under CI: a C compiler for go test -race" >&2
		exit 1
	fi
fi
export MACHINEADM_TEST_RUN=$$.$EPOCHREALTIME # see testenv/tools/product.go
go mod download # here, because gotestsum takes what a download says for an error
gotestsum=$(go run ./testenv/tools/cmd/tool gotestsum)
exec "$gotestsum" --format pkgname --format-hide-empty-pkg --raw-command -- "${BASH_SOURCE[0]}" events "$@"

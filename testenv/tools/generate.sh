#!/usr/bin/env bash
# Generates code from its one source.
#
#   generate.sh write     into the checkout
#   generate.sh check     into a scratch directory, and compares: fails with the diff, changes nothing
#   generate.sh lint      judges the sources
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly protos=contract/pluginv1/pb config=testenv/tools/buf

tools=$(go run ./testenv/tools/cmd/tool buf protoc-gen-go protoc-gen-go-grpc)
while read -r tool; do PATH=${tool%/*}:$PATH; done <<<"$tools"
export PATH

generate() { buf generate . --path "$protos" --config $config/buf.yaml --template $config/buf.gen.yaml --output "$1"; }

check() {
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	generate "$scratch"
	# What is in one place alone counts as different: a generated file may be missing, or left over.
	mkdir -p "$scratch/$protos"
	if ! diff --recursive --unified --new-file --exclude='*.proto' "$protos" "$scratch/$protos"; then
		echo "generated code differs from its source: run 'make generate' and commit the result" >&2
		return 1
	fi
}

case ${1:-} in
write) generate . ;;
check) check ;;
lint) buf lint . --path "$protos" --config $config/buf.yaml ;;
*) sed -n '2,/^set/{/^#/p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

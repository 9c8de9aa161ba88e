#!/usr/bin/env bash
# Generates code, the JSON schemas and the pages of docs/reference, each from its one source.
#
#   generate.sh write     into the checkout
#   generate.sh check     into a scratch directory, and compares: fails with the diff, changes nothing
#   generate.sh lint      lints the sources, and compares the protocol with the release before
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly protos=contract/pluginv1/pb config=testenv/tools/buf
readonly pinned=testenv/legacy/v1alpha1/pb # the protocol of the release before, which today's must not break
readonly reference=docs/reference pages="cli.md controller-api.md documents.md review.md" schemas=contract/v1alpha1/schema
readonly api=host/controller/api/bootstrap/v1alpha1 crds=host/controller/config/crd
readonly role=host/controller/config/rbac/role.yaml # the name of the role begins with the name of the namespace

# use TOOL...: puts them on PATH.
use() {
	local tool tools
	tools=$(go run ./testenv/tools/cmd/tool "$@") || return 1
	while read -r tool; do PATH=${tool%/*}:$PATH; done <<<"$tools"
}

# generate DIR: into a directory that is laid out as the checkout is. What the documentation says does not depend on the
# machine on which it is made.
generate() {
	use buf protoc-gen-go protoc-gen-go-grpc controller-gen
	buf generate . --path "$protos" --config $config/buf.yaml --template $config/buf.gen.yaml --output "$1"
	mkdir -p "$1/$reference"
	go run ./host/cmd/machineadm/mangen --reference "$1/$reference/cli.md"
	resources "$1"
	go run ./testenv/reference/cmd/reference . "$1"
}

# resources DIR: the custom resources of the controller itself. testenv/reference has the ones of the document kinds.
resources() {
	mkdir -p "$1/$api"
	controller-gen object paths="./$api" output:object:dir="$1/$api"
	controller-gen crd paths="./$api" output:crd:dir="$1/$crds"
	controller-gen rbac:roleName=system-manager-rules paths=./host/controller output:rbac:dir="$1/${role%/*}"
}

check() {
	local page directory failed=0
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	generate "$scratch"
	for page in $pages; do
		if ! diff --unified --new-file "$reference/$page" "$scratch/$reference/$page"; then
			echo "$reference/$page differs from its source: read what is new, run 'make generate' and commit the result" >&2
			failed=1
		fi
	done
	mkdir -p "$scratch/$schemas"
	if ! diff --recursive --unified --new-file --exclude='*.go' "$schemas" "$scratch/$schemas"; then
		echo "the JSON schemas differ from their source: run 'make generate' and commit the result" >&2
		failed=1
	fi
	for directory in $api $crds; do
		if ! diff --recursive --unified --new-file --exclude='[!z]*.go' --exclude=kustomization.yaml \
			"$directory" "$scratch/$directory"; then
			echo "$directory differs from its source: run 'make generate' and commit the result" >&2
			failed=1
		fi
	done
	if ! diff --unified "$role" "$scratch/$role"; then
		echo "$role differs from its markers in host/controller: run 'make generate' and commit the result" >&2
		failed=1
	fi
	# What is in one place alone counts as different: a generated file may be missing, or left over.
	mkdir -p "$scratch/$protos"
	if ! diff --recursive --unified --new-file --exclude='*.proto' "$protos" "$scratch/$protos"; then
		echo "generated code differs from its source: run 'make generate' and commit the result" >&2
		failed=1
	fi
	return $failed
}

case ${1:-} in
write) generate . ;;
check) check ;;
lint)
	use buf
	buf lint . --path "$protos" --config $config/buf.yaml
	buf breaking "$protos/plugin.proto" --config $config/buf.yaml --against "$pinned/plugin.proto"
	;;
*) sed -n '2,/^set/{/^#/p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

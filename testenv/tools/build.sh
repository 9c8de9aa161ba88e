#!/usr/bin/env bash
# Builds the binaries of this checkout, flat into one directory.
#
#   build.sh names           prints `NAME PACKAGE` for every binary of a node: what is built, and what it is called
#   build.sh served          prints the same of those that serve GOOS, which all builds
#   build.sh version         prints the version that is stamped
#   build.sh all DIR         builds for GOOS/GOARCH (default: this machine)
#   build.sh program FILE DIR  builds the main package in DIR, of any module, without a version
#   build.sh man DIR         writes the manual pages, dated by the commit or, outside git, by SOURCE_DATE_EPOCH or the changelog
#   build.sh install BIN MAN copies what was built into those two directories to DESTDIR, below PREFIX (default: /usr)
#   build.sh uninstall       removes what install copied
#   build.sh cross DIR       builds for every platform into DIR/<os>-<arch> and checks the sizes
#   build.sh manager DIR     builds the controller and the plugins of its image into DIR/linux-<arch> and checks the sizes
set -euo pipefail
cd "${MACHINEADM_ROOT:-$(dirname "${BASH_SOURCE[0]}")/../..}"

readonly platforms="linux/amd64 linux/arm64 windows/amd64"
readonly mib=$((1024 * 1024)) cli_limit=20 plugin_limit=14 manager_limit=64

# has_main DIR: the folder holds a main package.
has_main() {
	local file
	for file in "$1"/*.go; do
		[[ $file == *_test.go ]] || ! grep -qs '^package main$' "$file" || return 0
	done
	return 1
}

# plugin_name TYPE PROVIDER: the name of the binary (contract/SPEC.md, section 4); the last two types are irregular by the proposal.
plugin_name() {
	case $1 in
	remote-config) echo "machineadm-remote-configuration-provider-$2" ;;
	encrypted-config) echo "machineadm-plugin-encryption-provider-$2" ;;
	*) echo "machineadm-$1-plugin-$2" ;;
	esac
}

names() {
	local dir name
	for dir in host/cmd/* contract/conformance/cmd/*; do
		name=${dir##*/}
		[[ $dir != host/cmd/manager ]] || continue # not for nodes, and the libraries of Kubernetes take minutes to compile
		[[ $name == machineadm* ]] || name=machineadm-$name
		if has_main "$dir"; then echo "$name ./$dir"; fi
	done
	for dir in plugins/*/*; do
		name=${dir#plugins/}
		if has_main "$dir"; then echo "$(plugin_name "${name%/*}" "${name#*/}") ./$dir"; fi
	done
}

# version: of the nearest tag; before the first tag, of the commit; outside git, "devel".
version() {
	if [[ -n ${VERSION:-} ]]; then
		echo "$VERSION"
	elif ! git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null; then
		local commit
		commit=$(git describe --always --match '' --dirty=.dirty 2>/dev/null) || { echo devel; return; }
		echo "v0.0.0-devel+$commit"
	fi
}

readonly stamped=github.com/machineadm/machineadm/internal/version.version
readonly located=github.com/machineadm/machineadm/installer/install.location

man() {
	local date
	date=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
	go run -ldflags "-X $stamped=$(version)" ./host/cmd/machineadm/mangen "$1" "$date"
}

# install_files BIN MAN: machineadm, its plugins, manual pages, schemas and completions. The kit is for authors and stays where it is.
install_files() {
	local prefix=${DESTDIR:-}${PREFIX:-/usr} file files=""
	for file in "$1/machineadm" "$2/machineadm.8"; do
		[[ -e $file ]] || { echo "$file is missing: run make build man, as yourself, before make install" >&2; return 1; }
	done
	put() { # MODE FILE TO
		install -D -m "$1" "$2" "$prefix/$3"
		files+=$3$'\n'
	}
	put 755 "$1/machineadm" bin/machineadm
	for file in "$1"/machineadm-*-p*-*; do # -plugin- and -provider-
		[[ $file != *-w32time ]] || continue # for Windows alone
		put 755 "$file" "libexec/machineadm/${file##*/}"
	done
	for file in "$2"/*.8; do
		put 644 "$file" "share/man/man8/${file##*/}"
	done
	for file in contract/v1alpha1/schema/*.json; do
		put 644 "$file" "share/machineadm/schema/${file##*/}"
	done
	completion() { put 644 <("$1/machineadm" completion "$2") "share/$3"; }
	completion "$1" bash bash-completion/completions/machineadm
	completion "$1" fish fish/vendor_completions.d/machineadm.fish
	completion "$1" zsh zsh/site-functions/_machineadm
	put 644 <(echo -n "$files") $installed
	echo "installed $("$1/machineadm" version) below $prefix"
}

# installed lists what install wrote, for uninstall.
readonly installed=share/machineadm/installed

uninstall() {
	local prefix=${DESTDIR:-}${PREFIX:-/usr} file
	[[ -e $prefix/$installed ]] || { echo "$prefix/$installed is missing: give the DESTDIR and PREFIX of make install" >&2; return 1; }
	while read -r file; do
		rm -f "$prefix/$file"
	done <"$prefix/$installed"
	rm "$prefix/$installed"
	rmdir --ignore-fail-on-non-empty "$prefix"/libexec/machineadm "$prefix"/share/machineadm/schema "$prefix"/share/machineadm
	echo "removed machineadm below $prefix; the state in /var/lib/machineadm and what was applied stay"
}

# compile FILE DIR: a static binary of the main package in DIR for GOOS/GOARCH, with the version $stamp, if there is one, and where
# `machineadm install` finds releases.
compile() {
	local file=$1
	[[ $file == /* ]] || file=$PWD/$file
	go_build "$2" -o "$file" . || return 1
	echo "$1"
}

# go_build DIR ARGUMENTS: go build in DIR. The tests (GOFLAGS in the Makefile) and the tools have the same flags of the compiler
# (tools.go), so that each package is compiled once: without what a debugger reads, which the linker drops. grpcnotrace leaves
# out the traces of requests that grpc keeps for a debug page, which nothing here serves: 0.35 MiB.
go_build() {
	local ldflags="-s -w -funcalign=16"
	[[ -z ${stamp:-} ]] || ldflags+=" -X $stamped=$stamp -X $located=${LOCATION:-}"
	CGO_ENABLED=0 go build -C "$1" -tags grpcnotrace -trimpath -gcflags=all=-dwarf=false -buildvcs=false -overlay <(overlay) \
		-ldflags "$ldflags" "${@:2}"
}

# overlay replaces net/rpc: see netrpc/rpc.go.
overlay() {
	local rpc
	rpc=$(go env GOROOT)/src/net/rpc
	printf '{"Replace": {"%s/server.go": "%s/testenv/tools/netrpc/rpc.go", "%s/client.go": "", "%s/debug.go": ""}}' "$rpc" "$PWD" "$rpc" "$rpc"
}

# all DIR: in a subshell, which removes the scratch directory at its end.
all() (
	stamp=$(version)
	mkdir -p "$1" || return 1
	scratch=$(mktemp -d "$1/.build-XXXXXX") || return 1 # in DIR, so that a program is moved within one file system
	trap 'rm -rf "$scratch"' EXIT
	together "$1" "$scratch" < <(served)
)

# served leaves out what serves no machine of GOOS: the program would be asked in vain, or seem to serve a document.
served() {
	names | if [[ $(go env GOOS) == windows ]]; then cat; else grep -v '/w32time$'; fi
}

# together DIR SCRATCH: builds the programs whose `NAME PACKAGE` it reads. go build loads all packages at each call, so it is called
# for as many programs as possible. It names a program by the last element of the package's path: of programs with equal elements,
# the first is built by this call, and the others by the next.
together() {
	local out=$1 scratch=$2 suffix="" name package base bases=" " later="" made i names=() packages=()
	[[ $(go env GOOS) != windows ]] || suffix=.exe
	while read -r name package; do
		base=${package##*/}
		if [[ $bases == *" $base "* ]]; then
			later+="$name $package"$'\n'
			continue
		fi
		bases+="$base "
		names+=("$name$suffix")
		packages+=("$package")
		# go build does not link a program that is up to date.
		ln "$out/$name$suffix" "$scratch/$base$suffix" 2>/dev/null || true
	done
	go_build . -o "$scratch/" "${packages[@]}" || return 1
	for i in "${!names[@]}"; do
		made=$scratch/${packages[i]##*/}$suffix
		[[ $made -ef $out/${names[i]} ]] || mv -f "$made" "$out/${names[i]}" || return 1
		echo "$out/${names[i]}"
	done
	[[ -z $later ]] || together "$out" "$scratch" < <(printf %s "$later")
}

manager() {
	local stamp arch file name package
	stamp=$(version)
	for arch in amd64 arm64; do
		while read -r name package; do
			file=$(GOOS=linux GOARCH=$arch compile "$1/linux-$arch/$name" "$package") || return 1
			size "$file" || return 1
		done < <(echo manager ./host/cmd/manager; names | grep -- -provider-)
	done
}

# size FILE: fails when a plugin, the node's command line or the controller has outgrown its limit.
size() {
	local size limit=$plugin_limit name=${1##*/}
	size=$(stat -c %s "$1") || return 1
	case $name in
	machineadm | machineadm.exe) limit=$cli_limit ;;
	manager) limit=$manager_limit ;;
	machineadm-*-plugin-* | machineadm-remote-configuration-provider-* | machineadm-plugin-encryption-provider-*) ;;
	*) limit=0 ;; # not for nodes: no limit
	esac
	awk -v s="$size" -v l=$limit -v m=$mib -v f="$1" 'BEGIN {
		printf "%6.1f MiB  %s\n", s / m, f
		if (l && s > l * m) { printf "%s is larger than the %d MiB that it may have\n", f, l > "/dev/stderr"; exit 1 }
	}'
}

cross() {
	local platform built file failed=0
	for platform in $platforms; do
		built=$(GOOS=${platform%/*} GOARCH=${platform#*/} all "$1/${platform/\//-}")
		for file in $built; do size "$file" || failed=1; done
	done
	# Nothing is shipped for macOS, but validate works there.
	GOOS=darwin GOARCH=arm64 go_build . -o "$1/darwin-arm64/machineadm" ./host/cmd/machineadm || failed=1
	return $failed
}

case ${1:-} in
names | served | version) "$1" ;;
all | cross | manager) "$1" "${2:?say where to: build.sh $1 DIR}" ;;
program) compile "${2:?}" "${3:?}" ;;
man) man "${2:?say where to: build.sh man DIR}" ;;
install) install_files "${2:?}" "${3:?}" ;;
uninstall) uninstall ;;
size) size "${2:?}" ;;
*) sed -n '2,/^set/{/^#/p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

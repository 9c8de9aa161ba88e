#!/bin/sh
# Installs the plugins as the builds of Debian packages would: install.sh PLUGIN.PROTO [DESTDIR].
# The messages are what Debian's own protoc makes of the published plugin.proto, so that they fit Debian's protobuf.
# Needs protobuf-compiler and libprotobuf-dev; what is installed needs python3-grpcio and python3-protobuf.
set -eu
umask 022
proto=$(realpath "$1")
libexec=${2:-}/usr/libexec/machineadm
cd "$(dirname "$0")"
mkdir -p "$libexec"
# install_plugin NAME PACKAGE: each has its own copy of what they share.
install_plugin() {
	share=$share_root/$1
	for package in "$2" machineadmplugin; do
		mkdir -p "$share/$package"
		install -m 0644 "$package"/*.py "$share/$package/"
	done
	protoc --proto_path="$(dirname "$proto")" --python_out="$share/machineadmplugin" "$proto"
	protoc --proto_path=proto --python_out="$share/machineadmplugin" proto/*.proto
	python3 -m compileall -q "$share"
	install -m 0755 "$1" "$libexec/$1"
}
share_root=${2:-}/usr/share
install_plugin machineadm-apt-repository-plugin-deb822 aptrepository
install_plugin machineadm-timesync-plugin-openntpd openntpd

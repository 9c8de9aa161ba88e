#!/bin/sh
# Installs the plugin as the build of a Debian package would: install.sh PLUGIN.PROTO [DESTDIR].
# The messages are what Debian's own protoc makes of the published plugin.proto, so that they fit Debian's protobuf.
# Needs protobuf-compiler and libprotobuf-dev; what is installed needs python3-grpcio and python3-protobuf.
set -eu
umask 022
proto=$(realpath "$1")
name=machineadm-apt-repository-plugin-deb822
libexec=${2:-}/usr/libexec/machineadm
share=${2:-}/usr/share/$name
cd "$(dirname "$0")"
mkdir -p "$libexec" "$share/aptrepository"
install -m 0644 aptrepository/*.py "$share/aptrepository/"
protoc --proto_path="$(dirname "$proto")" --python_out="$share/aptrepository" "$proto"
protoc --proto_path=proto --python_out="$share/aptrepository" proto/*.proto
python3 -m compileall -q "$share"
install -m 0755 "$name" "$libexec/$name"

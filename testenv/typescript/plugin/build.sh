#!/bin/sh
# Builds the plugin as one executable file, dist/machineadm-monitoring-agent-plugin-acme: build.sh CONTRACT
# CONTRACT is the directory contract of machineadm. Needs Node.js and npm; the file needs only Node.js 18 or later.
# Where node_modules is a link, it has the packages of the lock file, and npm does not install them.
set -eu
contract=$(realpath "$1")
cd "$(dirname "$0")"
name=machineadm-monitoring-agent-plugin-acme
[ -L node_modules ] || npm ci --prefer-offline
rm -rf build dist
mkdir -p build/proto
cp proto/*.proto "$contract/pluginv1/pb/plugin.proto" "$contract/pluginv1/testdata/claims.jsonl" \
	"$contract/document/testdata/paths.jsonl" build/proto/
# The types of the messages; wire.ts reads the same files with the same options.
npx --no-install proto-loader-gen-types --grpcLib=@grpc/grpc-js --outDir=build/types --includeDirs=build/proto \
	--longs=String --enums=String --defaults --oneofs plugin.proto controller.proto health.proto status.proto
npx --no-install tsc
# A script is started as /proc/self/fd/N (SPEC H-5). With --preserve-symlinks-main Node.js runs that very file, not the
# one that has its name by then, and looks for no package.json beside it.
npx --no-install esbuild src/main.ts src/vectors.test.ts --bundle --platform=node --target=node18 --outdir=build/js \
	--loader:.proto=text --loader:.jsonl=text --log-level=warning --banner:js='#!/usr/bin/node --preserve-symlinks-main'
node --test build/js/vectors.test.js
mkdir dist
install -m 0755 build/js/main.js "dist/$name"

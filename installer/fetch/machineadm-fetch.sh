#!/bin/sh
# Downloads machineadm and runs `machineadm install` with its arguments, as root.
# The digest is trusted, not TLS: a URL can be http.
version=
urls=  # directories, tried in turn
amd64= # SHA-256 of machineadm-VERSION-linux-amd64
arm64=
to=/opt/bin
limit=120 # seconds a download
waits='.1 .2 .4 .8 1.6 3.2 5 5 5 5 5 5' # between rounds

set -eu
umask 022
say() { echo "machineadm-fetch: $*" >&2; }
die() {
	say "$@"
	exit 1
}
pick() {
	for t; do
		tool=$t
		command -v "${tool%% *}" >/dev/null && return
	done
	die "install one of: $*"
}
case $(uname -m) in
x86_64) arch=amd64 want=$amd64 ;;
aarch64) arch=arm64 want=$arm64 ;;
*) die "no machineadm for $(uname -m)" ;;
esac
file=machineadm-$version-linux-$arch
[ ${#want} = 64 ] || die "set $arch= to the SHA-256 of $file"
pick 'curl -qfsSLy10 -o' 'wget -qt1 -O'
get=$tool
! command -v timeout >/dev/null || get="timeout $limit $tool"
pick sha256sum 'shasum -a256' 'openssl dgst -sha256 -r'
sum=$tool

mkdir -p "$to"
to=$(cd "$to" && pwd -P)
at=$to
while
	ls -ldn "$at/" | {
		read -r mode _ uid _
		case $uid:$mode in 0:d????-??-*) ;; *) false ;; esac
	} || die "others can change $at/: chown root, chmod go-w, or set to="
	[ "$at" ]
do at=${at%/*}; done

for tmp in "$to"/.machineadm-fetch.*; do # of killed runs
	kill -0 "${tmp##*.}" 2>/dev/null || rm -f "$tmp"
done
tmp=$to/.machineadm-fetch.$$
trap 'rm -f "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
flush() { sync "$1" 2>/dev/null || sync; }
fetch() {
	for wait in 0 $waits; do
		sleep "$wait"
		left=
		for url in $urls; do
			rm -f "$tmp"
			if (umask 077 && ulimit -f 262144 && $get "$tmp" "$url/$file"); then
				flush "$tmp"
				[ "$($sum <"$tmp" | cut -c-64)" = "$want" ] && return
				say "$url/$file has another SHA-256"
			else
				say "cannot download $url/$file (exit $?)"
				left="$left $url"
			fi
		done
		urls=$left
		[ "$urls" ] || break
	done
	die "nothing installed: check urls=, $arch=, network, space in $to"
}
fetch
chmod 755 "$tmp"
mv -f "$tmp" "$to/machineadm"
flush "$to"
exec "$to/machineadm" install "$@"

#!/usr/bin/env bash
# Builds sip2gate for every board into dist/ and makes sure that each binary is
# static and small enough for an image that is copied over slow lines.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=$((12 * 1024 * 1024))
mkdir -p dist

# static FILE: no interpreter and no library is named in it. readelf knows
# every machine, which ldd does not.
static() {
	! readelf --program-headers --dynamic --wide "$1" | grep -qE 'INTERP|NEEDED'
}

if ! command -v readelf >/dev/null; then
	echo "readelf is missing: install binutils" >&2
	exit 1
fi

build() { # name GOARCH [GOARM]
	local out=dist/sip2gate-$1
	CGO_ENABLED=0 GOOS=linux GOARCH=$2 GOARM=${3:-} go build -trimpath -ldflags "-s -w" -o "$out" ./cmd/sip2gate
	local size
	size=$(stat -c %s "$out")
	printf '%-28s %5.2f MB\n' "$out" "$(awk "BEGIN { print $size / 1048576 }")"
	if [ "$size" -gt "$limit" ]; then
		echo "$out is larger than 12 MB" >&2
		exit 1
	fi
	if ! static "$out"; then
		echo "$out is not static" >&2
		exit 1
	fi
}

build linux-armv6 arm 6   # Raspberry Pi Zero, 1
build linux-armv7 arm 7   # Raspberry Pi 2 and later, 32 bits
build linux-arm64 arm64   # Raspberry Pi 3 and later
build linux-amd64 amd64

#!/usr/bin/env bash
# Runs the benchmarks that match BENCH (all), and no tests, one package after
# the other: side by side they would measure each other.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${BENCH:=.}"

exec go test -p 1 -run '^$' -bench "$BENCH" -benchmem ./...

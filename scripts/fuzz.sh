#!/usr/bin/env bash
# Runs each fuzz target of the module for FUZZTIME (10s). Go runs one target at
# a time, so they are looked up first.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${FUZZTIME:=10s}"

count=0
for package in $(go list ./...); do
	dir=$(go list -f '{{.Dir}}' "$package")
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | cut -c6- | sort); do
		echo "$package $target for $FUZZTIME"
		# Making an interesting input smaller may take a minute, all of a short run.
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 100x "$package"
		count=$((count + 1))
	done
done
if [ "$count" -eq 0 ]; then
	echo "there is no fuzz target" >&2
	exit 1
fi

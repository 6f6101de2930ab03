#!/usr/bin/env bash
# Runs the benchmarks that match BENCH (all), and no tests, one package after
# the other: side by side they would measure each other. What the gate is held
# against ran beside it, so the figures that count are the ratios at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${BENCH:=.}" "${COUNT:=5}" "${ONLY_GATE:=}"

gate=sip2gate/cmd/sip2gate/internal/bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ -z "$ONLY_GATE" ]; then
	go test -p 1 -run '^$' -bench "$BENCH" -benchmem $(go list ./... | grep -v "^$gate\$")
fi
# In turns, so that what else the machine does meets all alike.
for _ in $(seq "$COUNT"); do
	go test -run '^$' -bench "$BENCH" -benchtime 1s "$gate" | tee -a "$log"
done

# The median of the counts, so that one disturbed run does not decide.
awk '
	/^Benchmark/ { sub(/-[0-9]+$/, "", $1); v[$1] = v[$1] " " $3 }
	function median(name,   a, n, i, j, t) {
		n = split(v[name], a, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && a[j] + 0 < a[j-1] + 0; j--) { t = a[j]; a[j] = a[j-1]; a[j-1] = t }
		return n ? a[int((n + 1) / 2)] / 1000 : 0
	}
	function ratio(what, a, b, limit,   x, y) {
		x = median(a); y = median(b)
		if (x && y) printf "%-58s %9.0f us / %9.0f us = %5.2f   %s\n", what, x, y, x / y, limit
	}
	END {
		print ""
		ratio("a passing frame: gate / socat", "BenchmarkPass/gate", "BenchmarkPass/socat", "(at most 1.5)")
		ratio("a first checkout: gate / one durable bbolt insert", "BenchmarkCheckout/first", "BenchmarkCheckout/bbolt-insert", "(at most 1.3)")
		ratio("a repeat: gate / one durable bbolt insert", "BenchmarkCheckout/repeat", "BenchmarkCheckout/bbolt-insert", "")
		ratio("a checkout of 64 stations at once: gate / one bbolt insert", "BenchmarkCheckout/64-stations", "BenchmarkCheckout/bbolt-insert", "")
	}' "$log"

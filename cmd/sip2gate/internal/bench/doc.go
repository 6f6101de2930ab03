// Package bench measures the built gate beside what it is compared with, in
// one run on one machine: a plain relay (socat) and a durable insert into
// bbolt. It has benchmarks only; scripts/bench.sh prints them as ratios.
package bench

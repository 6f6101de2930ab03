# What a developer and CI call. Only Go is needed, and gcc for race.
# GOFLAGS, GOCACHE and the like are taken from the environment as they are.

GO       ?= go
FUZZTIME ?= 10s
BENCH    ?= .

# No C compiler and no C library: the binary is static and runs on any board.
export CGO_ENABLED = 0

.PHONY: all build test race lint fuzz bench demo cross check clean

all: build

build:
	$(GO) build -trimpath -o sip2gate ./cmd/sip2gate

test:
	$(GO) test ./...

race:
	CGO_ENABLED=1 $(GO) test -race ./...

lint:
	scripts/lint.sh

# Each fuzz target for FUZZTIME.
fuzz:
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

# BENCH chooses benchmarks by a regular expression.
bench:
	BENCH='$(BENCH)' scripts/bench.sh

demo:
	$(GO) run ./cmd/sip2gate demo

# Static binaries for the boards, in dist/.
cross:
	scripts/cross.sh

# What to run before a commit.
check: lint test race

clean:
	rm -rf sip2gate dist
	find . -name '*.test' -o -name '*.prof' | xargs rm -f

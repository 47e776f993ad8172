# The plugin is pure Go. One set of flags for building, testing and vetting lets
# all of them share the build cache.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

GO ?= go
BIN := bin/kubectl-noderes
FUZZTIME ?= 10s
# Random scenarios of `make conformance`, and their seed; 0 takes one from the clock.
SCENARIOS ?= 20000
SEED ?= 0
# Runs of each command that `make bench` compares.
RUNS ?= 30
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.1

VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-dev)
COMMIT ?= $(shell git rev-parse --verify --quiet HEAD 2>/dev/null)
DATE ?= $(shell TZ=UTC git log -1 --date=iso-strict-local --format=%cd 2>/dev/null | sed 's/+00:00/Z/')

CLI := github.com/noderes/kubectl-noderes/pkg/cli
LDFLAGS := -s -w -X $(CLI).version=$(VERSION) -X $(CLI).commit=$(COMMIT) -X $(CLI).date=$(DATE)

.DEFAULT_GOAL := build
.PHONY: demo build test conformance conformance-build conformance-all conformance-karpenter conformance-karpenter-build bench-karpenter integration integration-build integration-karpenter integration-karpenter-build lint fmt vet staticcheck bench fuzz update-golden generate dist krew krew-test clean

## demo: build, then explain three pods of a recorded node
demo: build
	@for pod in oom throttled excl-a; do \
		echo; echo "\$$ kubectl noderes explain pod $$pod -n shop --from demo"; echo; \
		$(BIN) explain pod $$pod -n shop --from demo || exit 1; \
	done

## build: bin/kubectl-noderes
build:
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/kubectl-noderes

## test: everything, without a cluster or a network
test:
	$(GO) test ./...

## conformance: replay and kubelet 1.37 on SCENARIOS random scenarios; the first build of the kubelet's code takes long
conformance: conformance-build
	bin/conformance -n $(SCENARIOS) -seed $(SEED)

## conformance-build: bin/conformance
conformance-build:
	cd test/kubelet && $(GO) build -o ../../bin/conformance .

## conformance-all: the same for kubelet 1.36, 1.35 and 1.34
conformance-all:
	@for version in 1.36 1.35 1.34; do \
		(cd test/kubelet-$$version && $(GO) run . -n $(SCENARIOS) -seed $(SEED)) || exit 1; \
	done

## conformance-karpenter: the replay of its disruption rules and Karpenter 1.14 on SCENARIOS random scenarios, and where pods could go
conformance-karpenter: conformance-karpenter-build
	bin/conformance-karpenter -n $(SCENARIOS) -seed $(SEED)
	bin/conformance-karpenter -placement -n $(SCENARIOS) -seed $(SEED)

conformance-karpenter-build:
	cd test/karpenter && $(GO) build -o ../../bin/conformance-karpenter .

## bench-karpenter: a week of budgets and one evaluation, side by side with Karpenter's own evaluation
bench-karpenter: conformance-karpenter-build
	bin/conformance-karpenter -bench

## integration: the tests against a real control plane of Kubernetes 1.37, whose nodes and pods kwok keeps alive
integration: integration-build
	cd test/integration && $(GO) test -count=1 -timeout 8m

## integration-build: that control plane, into a folder of the user's cache; the first build takes long
integration-build:
	cd test/integration && $(GO) run .

## integration-karpenter: the same with Karpenter 1.14 and its kwok provider: what the plugin says of nodes, and what Karpenter then does
integration-karpenter: integration-karpenter-build
	cd test/integration && $(GO) test -count=1 -timeout 10m -v ./karpenter

integration-karpenter-build:
	cd test/integration && $(GO) run . -karpenter

## lint: gofmt, go vet, staticcheck
lint: fmt vet staticcheck

fmt:
	@out=$$(gofmt -l cmd hack pkg test); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

staticcheck:
	@if $(GO) run $(STATICCHECK) -version; then \
		echo staticcheck ./...; $(GO) run $(STATICCHECK) ./...; \
	else \
		echo "SKIPPED: $(STATICCHECK) cannot be installed"; \
	fi

## bench: start-up time against kubectl's, and admissions against the kubelet's
bench: build conformance-build
	cd test/kubectl && $(GO) build -ldflags '-s -w' -o ../../bin/kubectl .
	$(GO) run ./hack/bench -runs $(RUNS) -max 2 -a '$(BIN) explain pod --from demo' -b 'bin/kubectl version --client'
	bin/conformance -bench

## fuzz: each fuzz target for FUZZTIME
fuzz:
	@grep -rl --include='*_test.go' '^func Fuzz' pkg | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$target"; \
			$(GO) test ./$$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) </dev/null || exit 1; \
		done; \
	done

## update-golden: rewrite the expected outputs of tests that know -update
update-golden:
	@grep -rl --include='*_test.go' 'flag.Bool("update"' cmd hack pkg | xargs -n1 dirname | sort -u | while read -r dir; do \
		$(GO) test ./$$dir -update </dev/null || exit 1; \
	done

## generate: cut the embedded recordings from those below $$RECORDINGS
generate:
	$(GO) generate ./pkg/demo

## dist: archives for every platform, checksums and the krew manifest
dist:
	$(GO) run ./hack/dist -version '$(VERSION)' -date '$(DATE)' -ldflags '$(LDFLAGS)' -only '$(ONLY)'

## krew: dist, then install it with krew itself and run it through kubectl; needs git
krew: dist krew-test

## krew-test: the same for what dist has written
krew-test:
	cd test/krew && $(GO) test -count=1 -timeout 10m -v .

clean:
	rm -rf bin dist

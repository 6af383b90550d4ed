# Axiom Operator. `make help` lists the targets.

SHELL := /usr/bin/env bash -o pipefail
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
export GOFLAGS ?= -buildvcs=false

BIN := $(CURDIR)/bin
KUBECTL = $(shell hack/cluster/build --print-path envtest)/kubectl
CONTROLLER_GEN := $(BIN)/controller-gen
OAPI_CODEGEN := $(BIN)/oapi-codegen
GOLANGCI_LINT := $(BIN)/golangci-lint
TOOLS := hack/tools/go.mod hack/tools/go.sum

# Packages whose tests need nothing but Go: they run under the race detector.
UNITS := ./api/... ./cli/... ./cmd/... ./console/... ./controllers/... ./internal/... ./mcpserver/... ./runner/... ./gateway/client/... ./gateway/openapi/...
# Suites against a real API server, one at a time.
SUITES := ./gateway ./webhook/... ./test/...

##@ Use

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make <target>\n"} /^[a-zA-Z0-9_-]+:.*?##/ { printf "  %-18s %s\n", $$1, $$2 } /^##@/ { printf "\n%s\n", substr($$0, 5) }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Bring up a cluster, install the operator and walk through its main job.
	hack/demo/run

.PHONY: demo-supervised
demo-supervised: ## The same for a supervised run: from a request to a pull request on a real forge.
	hack/demo/supervised/run

.PHONY: demo-transcript
demo-transcript: ## Run the demos and keep what they print in docs/.
	hack/demo/transcript

.PHONY: demo-clean
demo-clean: ## Remove what the demos made, and the local cluster.
	hack/demo/clean

.PHONY: cluster-up
cluster-up: ## Start the local cluster: kind where Docker runs, else a node of its own.
	hack/cluster/up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster and remove what it left.
	hack/cluster/down

.PHONY: cluster-status
cluster-status: ## Say what of the local cluster runs.
	hack/cluster/status

.PHONY: install-local
install-local: images ## Install the operator in the local cluster.
	hack/demo/install

##@ Build

.PHONY: build
build: ## Build the programs into bin/linux.
	@mkdir -p $(BIN)/linux
	go build -ldflags "-s -w" -o $(BIN)/linux/ ./cmd/...

.PHONY: images
images: build ## Build the images, without a Docker daemon, into bin/images.
	hack/image/build

##@ Generate

.PHONY: generate
generate: $(CONTROLLER_GEN) $(OAPI_CODEGEN) ## Generate code and manifests.
	$(CONTROLLER_GEN) object paths=./api/...
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths="{./controllers/...,./gateway/...,./webhook/...,./cmd/manager/...}" output:rbac:dir=config/rbac
	$(CONTROLLER_GEN) webhook paths=./webhook/... output:webhook:dir=config/webhook
	cd gateway && for config in oapi-*.yaml; do $(OAPI_CODEGEN) -config $$config openapi.yaml; done
	go run ./hack/reference
	@$(MAKE) --no-print-directory dist

IMAGE ?= ghcr.io/apitomy/axiom-operator:v0.1.0

.PHONY: dist
dist: ## Make dist/ and the chart's files from config/; IMAGE=NAME@sha256:… names another image in dist/.
	cd hack/dist && go run . -root ../.. -image $(IMAGE)

.PHONY: test-chart
test-chart: ## Lint the Helm chart and hold what it renders against config/.
	cd hack/dist && go test ./...

.PHONY: verify
verify: generate tidy-check lint test-chart ## Generate, lint, and fail on any difference or untracked file.
	@git diff --exit-code -- . || { echo "verify: generated files are not up to date: commit what make generate wrote" >&2; exit 1; }
	@untracked=$$(git ls-files --others --exclude-standard); \
	if [ -n "$$untracked" ]; then echo "verify: untracked files:" >&2; echo "$$untracked" >&2; exit 1; fi

.PHONY: tidy-check
tidy-check:
	go mod tidy -diff
	go mod verify >/dev/null
	cd hack/dist && go mod tidy -diff

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters.
	$(GOLANGCI_LINT) run ./...
	hack/lint-scripts

##@ Test

.PHONY: envtest-assets
envtest-assets: ## Find or build etcd, kube-apiserver and kubectl.
	hack/cluster/build envtest

.PHONY: test
test: test-unit test-suites ## Run unit, property and envtest suites from nothing.

.PHONY: test-unit
test-unit: ## Run unit and property tests under the race detector.
	CGO_ENABLED=1 go test -race -timeout 20m $(UNITS)

.PHONY: test-suites
test-suites: envtest-assets ## Run the suites against a real API server.
	KUBEBUILDER_ASSETS="$$(hack/cluster/build --print-path envtest)" go test -p 1 -timeout 40m $(SUITES)

.PHONY: e2e
e2e: ## Walk the demo's path as assertions on a real node.
	hack/e2e/run

.PHONY: test-forge
test-forge: ## Build Gitea and hold both forges against one suite.
	hack/forge/build
	AXIOM_FORGE=1 go test -timeout 20m ./internal/forge

.PHONY: test-monitoring
test-monitoring: ## Hold the rules and dashboards of config/monitoring to the operator's metrics.
	cd hack/monitoring && go test ./...

.PHONY: test-console
test-console: envtest-assets ## Drive the console in a headless Chromium, which must be there.
	KUBEBUILDER_ASSETS="$$(hack/cluster/build --print-path envtest)" go test -tags browser -count=1 -timeout 20m ./test/console

.PHONY: console-shots
console-shots: export AXIOM_CONSOLE_SHOTS := $(CURDIR)/docs/images
console-shots: test-console ## Drive the console, and keep pictures of its pages in docs/images.

.PHONY: interop
interop: envtest-assets ## Have MCP clients and agents that others wrote (from npm) meet the operator.
	hack/interop/run

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 10s) each.
	hack/fuzz

.PHONY: bench-runs
bench-runs: ## Measure runs against a real API server and write the table and plot; ARGS=--quick for less.
	go run ./hack/bench/runs --write $(ARGS)

.PHONY: bench-gateway
bench-gateway: ## Measure sessions that propose at once, and write the table; ARGS=--quick for less.
	go run ./hack/bench/runs --gateway --write $(ARGS)

.PHONY: bench-supervised
bench-supervised: envtest-assets ## Measure supervised runs and write the table of docs/performance.md.
	KUBEBUILDER_ASSETS="$$(hack/cluster/build --print-path envtest)" hack/bench-supervised

.PHONY: bench-core
bench-core: ## Measure the pure packages and write the table of docs/performance.md.
	hack/bench-core

##@ Tools

$(CONTROLLER_GEN): $(TOOLS)
	cd hack/tools && go build -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(OAPI_CODEGEN): $(TOOLS)
	cd hack/tools && go build -o $@ github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen

$(GOLANGCI_LINT): hack/tools/lint/go.mod hack/tools/lint/go.sum
	@echo "building golangci-lint; about 4 min on 2 cores, cold"
	cd hack/tools/lint && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

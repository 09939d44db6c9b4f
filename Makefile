# `make help` lists the targets; CONTRIBUTING.md lists those to run before a change is sent.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Pinned tools, installed into .tools/bin.
BUF_VERSION           := v1.75.0
PROTOC_GEN_GO_VERSION := v1.36.12
OAPI_CODEGEN_VERSION  := v2.8.2
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.9.0
KUBERNETES_VERSION    := v1.34.2

TOOLS   := $(CURDIR)/.tools/bin
MODULES := $(shell sed -n 's|^[[:space:]][[:space:]]*\(\.[^ ]*\)$$|\1|p' go.work)
# Every package of every module in go.work.
PACKAGES := $(addsuffix /...,$(MODULES))
SERVICES := client-api widget-api socket-gateway processor panel parleyctl standalone
FUZZTIME ?= 20s

# The version that --version and the metric parley_build_info report; the compiler adds the commit and its date.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w -X github.com/parley-chat/parley/pkg/ops.version=$(VERSION)

# CI runs the race detector. The tests read CI too: a test that would skip fails instead.
TESTFLAGS ?= $(if $(CI),-race -timeout=35m,-timeout=25m)

.PHONY: help run engines parleyctl compose-secrets build assets deps test test-all pictures test-web test-mongodb test-kubernetes test-faults test-nemesis test-mutations race fuzz lint audit fmt generate verify bench bench-realtime bench-scale bench-widget tools clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

# exec: signals to make (SIGTERM, Ctrl-C) reach the process. `go run` does not forward SIGTERM.
STANDALONE = mkdir -p bin && CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/standalone ./services/standalone && exec bin/standalone

run: assets ## everything in one process on embedded engines, with a demo page (see README)
	@$(STANDALONE)

engines: ## only the embedded engines; prints the settings for services that connect to them
	@$(STANDALONE) engines

parleyctl: ## the operator's command line, into bin/
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/parleyctl ./services/parleyctl/cmd/parleyctl

compose-secrets: ## random passwords for docker compose, into .env; keeps existing ones
	@scripts/compose-secrets

build: assets ## the binaries, into bin/
	@mkdir -p bin
	@for s in $(filter-out standalone,$(SERVICES)); do echo "bin/$$s"; CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/$$s ./services/$$s/cmd/$$s; done
	@echo bin/standalone; CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/standalone ./services/standalone

node_modules/.package-lock.json: package.json package-lock.json clients/typescript/package.json web/panel/package.json web/shared/package.json web/widget/package.json
	npm ci --silent --no-progress
	@touch $@

# The widget, which widget-api embeds. A clean clone has a placeholder, with which everything compiles and /widget.js answers 503.
WIDGET := services/widget-api/internal/web/dist/manifest.json
$(WIDGET): node_modules/.package-lock.json $(shell find web/shared web/widget -not -path '*/node_modules*' -type f)
	npm run --silent --workspace web/widget check
	npm run --silent --workspace web/widget build

# The panel's app, which services/panel embeds. Its preview mounts the widget.
PANEL := services/panel/internal/web/dist/manifest.json
$(PANEL): $(WIDGET) $(shell find web/panel -not -path '*/node_modules*' -type f)
	npm run --silent --workspace web/panel check
	npm run --silent --workspace web/panel build

# The TypeScript client as published. `make verify` checks that its generated types are current.
CLIENT := clients/typescript/dist/index.js
$(CLIENT): node_modules/.package-lock.json $(shell find clients/typescript/src -type f) $(wildcard clients/typescript/*.json)
	npm run --silent --workspace clients/typescript check
	npm run --silent --workspace clients/typescript build

assets: $(WIDGET) $(PANEL) $(CLIENT) ## build the chat widget, the panel's app (both within their size budgets) and the TypeScript client

test-web: assets ## the unit tests of the widget, of the panel's app and of the TypeScript client
	npm test --silent --workspace web/widget
	npm test --silent --workspace web/panel
	npm test --silent --workspace clients/typescript

deps: assets ## install what the tests need: official clients, redis-server, Chromium, Caddy, PostgreSQL
	@scripts/require redis-server redis-server
	@scripts/require chromium chromium
	@scripts/require caddy caddy
	@scripts/require systemd-analyze systemd
	@[ -x /usr/lib/postgresql/*/bin/initdb ] || scripts/require initdb postgresql

test: test-web ## the tests that need nothing but Go and Node.js; with CI=1 under the race detector
	go test -short $(TESTFLAGS) $$(go list $(PACKAGES) | grep -v /standalone/e2e)

# The packages with tests that ask for more of the machine; those of whole systems run alone, after the others.
test-all: deps ## the rest: browsers, redis-server, Caddy, PostgreSQL, the official clients, whole systems; with CI=1 without skipped tests
	go test $(TESTFLAGS) $$(scripts/needy $(PACKAGES) | grep -v /standalone/e2e)
	go test $(TESTFLAGS) ./services/standalone/e2e

pictures: deps ## screenshots of the widget's and the panel's screens, into .pictures/; docs/images has those that documents show
	@mkdir -p .pictures
	PARLEY_SHOTS=$(CURDIR)/.pictures go test -count=1 -run 'TestWidget|TestPanel|TestSupport' ./services/standalone/e2e

test-mongodb: assets ## the store's tests on FerretDB and on the MongoDB at MONGODB_URI
	@[ -n "$${MONGODB_URI:-}" ] || { echo "MONGODB_URI is not set"; exit 1; }
	@[ -x /usr/lib/postgresql/*/bin/initdb ] || scripts/require initdb postgresql
	go test $(TESTFLAGS) -count=1 ./testkit/engines/... ./pkg/store/mongodb
	go test $(TESTFLAGS) -count=1 -run TestDeploymentOnMongoDB ./services/standalone/e2e

KUBERNETES := $(TOOLS)/kubernetes-$(KUBERNETES_VERSION)
test-kubernetes: $(KUBERNETES) ## the manifests, components and the chart on a real kube-apiserver; builds it (minutes, once)
	KUBERNETES_BIN=$(KUBERNETES) go test -count=1 -timeout=30m -tags kubernetes -run TestKubernetes ./deploy/manifests

# kube-apiserver, kubectl and a matching etcd; deploy/kubernetes pins the versions.
KUBERNETES_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34
$(KUBERNETES): deploy/kubernetes/go.mod
	@mkdir -p $(TOOLS)/build/kubernetes
	cd deploy/kubernetes && export GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath && \
	  go build -ldflags "$(KUBERNETES_LDFLAGS)" -o $(TOOLS)/build/kubernetes/ k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl && \
	  go build -ldflags "-s -w" -o $(TOOLS)/build/kubernetes/etcd go.etcd.io/etcd/server/v3
	@rm -rf $@ && mv $(TOOLS)/build/kubernetes $@

test-faults: deps ## the long forms of the fault tests
	PARLEY_FAULTS=long go test -count=1 -timeout=120m -run 'Fault|Restart|Kill|Down$$|Load|Abuse|PowerCut|Outages' $(PACKAGES)

# Starting and settling take a few minutes more. SHRINK=1 repeats a run that breaks a promise up to eight times.
MINUTES ?= 10
RUNS ?= 1
SEED ?= $(shell date +%s)
test-nemesis: assets ## people and programs talk for MINUTES (default 10) while faults hit everything; SEED, RUNS, TIMETABLE, NEMESIS_REPORT, SHRINK=1
	@scripts/require redis-server redis-server
	SEED=$(SEED) MINUTES=$(MINUTES) RUNS=$(RUNS) go test -count=1 -v -vet=off -timeout=$$((($(MINUTES) + 10) * ($(RUNS) + $(if $(SHRINK),8,0)) + 10))m -run 'TestNemesis$$' ./services/standalone/e2e

race: deps ## all tests with the race detector
	go test -race -timeout=25m $(PACKAGES)

test-mutations: deps ## plant the faults of testkit/nemesis/mutations, one at a time, and check that test-nemesis finds each; MUTATIONS names some
	scripts/mutations

fuzz: ## every fuzz target for FUZZTIME (default 20s)
	@scripts/fuzz $(FUZZTIME) $(MODULES)

lint: $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION) $(TOOLS)/buf-$(BUF_VERSION) node_modules/.package-lock.json ## golangci-lint on every module, Biome on web/ and clients/typescript, buf lint and the breaking-change check
	@for m in $(MODULES); do echo "golangci-lint $$m"; (cd $$m && $< run --config $(CURDIR)/.golangci.yml ./...); done
	npm run --silent lint
	cd proto-events && $(TOOLS)/buf-$(BUF_VERSION) lint && $(TOOLS)/buf-$(BUF_VERSION) breaking --against released.binpb

audit: $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION) ## known vulnerabilities in called Go code and in the npm packages
	@for m in $(MODULES); do echo "govulncheck $$m"; (cd $$m && $< ./...); done
	npm audit

fmt: $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION) node_modules/.package-lock.json ## format the code
	@for m in $(MODULES); do (cd $$m && $< fmt --config $(CURDIR)/.golangci.yml ./...); done
	npm run --silent format

generate: $(TOOLS)/buf-$(BUF_VERSION) $(TOOLS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION) $(TOOLS)/oapi-codegen-$(OAPI_CODEGEN_VERSION) node_modules/.package-lock.json ## generate code and documents: Go from .proto, AsyncAPI, tables in docs/, schemas that several APIs share, clients and the panel's types from the OpenAPI documents
	@ln -sf protoc-gen-go-$(PROTOC_GEN_GO_VERSION) $(TOOLS)/protoc-gen-go
	cp deploy/nats/accounts.conf deploy/nats/nats-server.conf k8s/overlays/dev/
	node scripts/share-schemas.mjs
	cd proto-events && PATH="$(TOOLS):$$PATH" $(TOOLS)/buf-$(BUF_VERSION) generate
	go test -count=1 ./pkg/event -run TestExamplesAreCurrent -update
	go run ./proto-events/internal/generate
	go run ./pkg/webhook/internal/generate
	go test -count=1 ./services/standalone/e2e -run TestDocumentsAreCurrent -update
	cd clients/go && go run ./internal/generate
	cd clients/go && $(TOOLS)/oapi-codegen-$(OAPI_CODEGEN_VERSION) -config clientapi/oapi-codegen.yaml ../../services/client-api/openapi.json
	cd clients/go && $(TOOLS)/oapi-codegen-$(OAPI_CODEGEN_VERSION) -config widgetapi/oapi-codegen.yaml ../../services/widget-api/openapi.json
	cd clients/go && $(TOOLS)/oapi-codegen-$(OAPI_CODEGEN_VERSION) -config webhook/oapi-codegen.yaml ../../docs/webhooks.openapi.json
	npm run --silent --workspace clients/typescript generate
	npm run --silent --workspace web/panel generate

verify: generate ## check that generated files are current, and that each module is tidy and builds alone
	@git diff --exit-code -- proto-events docs clients web/panel/src/api/generated services/widget-api/openapi.json services/panel/openapi.json k8s/overlays/dev || { echo "generated files are stale: run 'make generate' and commit"; exit 1; }
	@for m in $(MODULES); do echo "GOWORK=off $$m"; (cd $$m && export GOWORK=off CGO_ENABLED=0 && go build -trimpath -o /dev/null ./... && go mod tidy -diff); done

bench: build ## POST /message/send and the Widget API against their bounds, in ratios of one run
	go run ./bench

bench-realtime: build ## the Socket gateway against the official Node packages, in ratios of one run
	@scripts/require redis-server redis-server
	go run ./bench -only handshake,paced,broadcast,readers

bench-scale: build ## throughput per replica of processor and gateway, and waiting times when replicas start, stop and die
	@scripts/require redis-server redis-server
	go run ./bench -only scale,readers -contenders parley

bench-widget: assets ## how fast the widget opens and responds to typing, in Chromium; needs a running `make run`
	@scripts/require chromium chromium
	node web/widget/bench.mjs

release-contract: $(TOOLS)/buf-$(BUF_VERSION) ## make the current .proto files the baseline of the breaking-change check
	cd proto-events && $(TOOLS)/buf-$(BUF_VERSION) build -o released.binpb

tools: $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION) $(TOOLS)/buf-$(BUF_VERSION) $(TOOLS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION) $(TOOLS)/oapi-codegen-$(OAPI_CODEGEN_VERSION) ## the pinned tools

# The file name contains the version, so that a new pin installs a new file.
define tool
$(TOOLS)/$(1)-$(2):
	@mkdir -p $(TOOLS)/build
	GOBIN=$(TOOLS)/build GOFLAGS= go install $(3)@$(2)
	@mv $(TOOLS)/build/$(1) $$@
endef
$(eval $(call tool,golangci-lint,$(GOLANGCI_LINT_VERSION),github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
$(eval $(call tool,govulncheck,$(GOVULNCHECK_VERSION),golang.org/x/vuln/cmd/govulncheck))
$(eval $(call tool,buf,$(BUF_VERSION),github.com/bufbuild/buf/cmd/buf))
$(eval $(call tool,oapi-codegen,$(OAPI_CODEGEN_VERSION),github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen))
$(eval $(call tool,protoc-gen-go,$(PROTOC_GEN_GO_VERSION),google.golang.org/protobuf/cmd/protoc-gen-go))

clean: ## remove everything that the targets above created, including the demo's data
	rm -rf bin .tools .parley .pictures node_modules clients/typescript/dist
	git clean -fdxq services/widget-api/internal/web/dist services/panel/internal/web/dist services/panel/internal/web/dist

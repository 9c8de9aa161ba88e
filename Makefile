# machineadm: what a contributor types. Every target says what it does: `make help`.
SHELL       := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# Caches live outside the checkout and may be removed at any time.
BIN   := bin
MAN   := dist/man
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/machineadm-testenv
TOOL  := go run ./testenv/tools/cmd/tool
SUITE := go run ./testenv/suite/cmd/suite
DEPS  := go run ./testenv/deps/cmd/deps
# As testenv/tools compiles programs and tools, so that tests and linters take what they compiled, and these what those did.
export GOFLAGS := -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false $(GOFLAGS)
# The controller runs on Linux alone. To lint it for Windows as well would compile the libraries of Kubernetes once more.
LINUX_ONLY := ^\./(host/(controller|cmd/manager)|testenv/(bench|clusterctl|controller|crd|infrastructure|management|reference))(/|$$)

## Build

.PHONY: build
build: ## all binaries of this machine's platform, into bin/ (VERSION= stamps another version)
	@testenv/tools/build.sh all bin

.PHONY: cross
cross: ## linux/amd64, linux/arm64 and windows/amd64 into dist/<os>-<arch>/; fails when a binary is too large
	@testenv/tools/build.sh cross dist

.PHONY: manager
manager: ## the controller and its plugins for linux/amd64 and linux/arm64, into dist/linux-<arch>/; minutes, once
	@testenv/tools/build.sh manager dist

.PHONY: components
components: manager ## what clusterctl installs, and the controller's image, into dist/cluster-api/ (VERSION=v1.2.3; IMAGE=registry.example/manager)
	@go run ./testenv/components/cmd/components -version "$$(testenv/tools/build.sh version)" $(if $(IMAGE),-image $(IMAGE))

.PHONY: man
man: ## the manual pages, into dist/man/
	@testenv/tools/build.sh man dist/man
	@ls dist/man

.PHONY: release
release: ## archives, packages, installers, SBOMs and their manifest, into dist/release/VERSION/; minutes (VERSION=v1.2.3; KEY=FILE signs; SEQUENCE=; EXPIRES=2027-01-31T00:00:00Z; LOCATION=URL is where machineadm install looks by default)
	@testenv/tools/build.sh version | grep -Eqx 'v[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?' || { echo "a release needs a version: make release VERSION=v1.2.3" >&2; exit 2; }
	@$(MAKE) cross man
	@go run ./installer/release/cmd/release -version "$$(testenv/tools/build.sh version)" -nfpm "$$($(TOOL) nfpm)" \
		-time "$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" $(if $(KEY),-key "$(KEY)") $(if $(SEQUENCE),-sequence $(SEQUENCE)) $(if $(EXPIRES),-expires "$(EXPIRES)")

.PHONY: release-check
release-check: ## the release of a clean checkout, and again from another directory without a build cache: every byte must be equal; half an hour of a processor (VERSION=v1.2.3, and as for release)
	@[[ -n "$(VERSION)" ]] || { echo "name the version: make release-check VERSION=v1.2.3" >&2; exit 2; }
	@[[ -z "$$(git status --porcelain)" ]] || { echo "the checkout differs from its commit, which is built again: commit or remove what git status lists" >&2; exit 2; }
	@$(MAKE) release
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; git archive HEAD | tar -x -C "$$dir"; \
	GOCACHE="$$dir/cache" SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" $(MAKE) -C "$$dir" release KEY="$(abspath $(KEY))" >&2; \
	diff -r "dist/release/$(VERSION)" "$$dir/dist/release/$(VERSION)"; echo "dist/release/$(VERSION) can be built again: every byte is equal"

.PHONY: install
install: ## what `make build man` made: bin/, libexec/machineadm/, manual pages, schemas and completions, to DESTDIR below PREFIX (/usr)
	@DESTDIR=$(DESTDIR) PREFIX=$(or $(PREFIX),/usr) testenv/tools/build.sh install $(BIN) $(MAN)

.PHONY: uninstall
uninstall: ## remove what `make install` put below PREFIX (/usr) in DESTDIR, and nothing else
	@DESTDIR=$(DESTDIR) PREFIX=$(or $(PREFIX),/usr) testenv/tools/build.sh uninstall

.PHONY: clean
clean: ## remove what the other targets left in the checkout (not the caches)
	@rm -rf bin dist coverage.out

## See it work

.PHONY: demo
demo: ## apply examples/node.yaml to a scratch root; unprivileged, no network after the build
	@GOFLAGS="$(GOFLAGS) -v" $(MAKE) build 2> >(awk '!/^[[:alnum:].\/_~-]+$$/ { print; next } ++n % 100 == 0 { print n " packages compiled" }' >&2)
	@testenv/demo/demo.sh

.PHONY: demo-node
demo-node: build nodes ## the same stream against a freshly booted systemd node; root on Debian
	@testenv/demo/demo-node.sh

.PHONY: demo-nodes
demo-nodes: nodes ## a control plane and a worker on two booted nodes, from a stream each; root on Debian; Ctrl-C removes them
	@testenv/demo/demo-nodes.sh

.PHONY: demo-cluster
demo-cluster: nodes ## the same by Cluster API: examples/cluster-api, from kubectl apply to Machines that run; root on Debian; Ctrl-C removes all
	@testenv/demo/demo-cluster.sh

## Check

.PHONY: test
test: modules ## proves the product, in a quarter of an hour on two cores, and says what it left out. PKG= are packages (./sdk/...), TESTFLAGS= goes to go test, RACE=1 takes the race detector where goroutines start
	@$(DEPS) test $(if $(RACE),race)
	@$(SUITE) $(if $(RACE),-race) test $(PKG) -- $(TESTFLAGS)

.PHONY: test-controller
test-controller: ## the controller without a cluster: compiles the libraries of Kubernetes, minutes once. PKG= and TESTFLAGS= as above, here and below
	@$(DEPS) test
	@$(SUITE) controller $(PKG) -- $(TESTFLAGS)

.PHONY: test-system
test-system: modules $(if $(PKG),nodes,layers) ## booted nodes, real daemons, packages, object stores, Windows under wine; root on Debian, half an hour
	@$(TOOL) -tier system >/dev/null
	@$(SUITE) system $(PKG) -- $(TESTFLAGS)

.PHONY: test-cluster
test-cluster: $(if $(PKG),nodes,layers) ## real Kubernetes and Cluster API, which are built first, once; root on Debian, half an hour
	@$(TOOL) -tier system cluster >/dev/null
	@$(SUITE) cluster $(PKG) -- $(TESTFLAGS)

.PHONY: test-vm
test-vm: nodes-vm ## emulated machines: what needs a kernel of its own; root on Debian, a quarter of an hour
	@$(SUITE) vm $(PKG) -- $(TESTFLAGS)

.PHONY: test-slow
test-slow: modules layers nodes-vm # the last three at once, within the limits of SUITEFLAGS=: what CI runs after the others
	@$(TOOL) -tier system cluster >/dev/null
	@$(SUITE) $(SUITEFLAGS) slow $(PKG) -- $(TESTFLAGS)

.PHONY: test-all
test-all: ## every one of these targets, to the end
	@failed=; for tier in test test-controller test-system test-cluster test-vm; do $(MAKE) $$tier || failed+=" $$tier"; done; \
	[[ -z $$failed ]] || { echo "failed:$$failed" >&2; exit 1; }

.PHONY: lint
lint: ## golangci-lint, for Windows too where a package has other files there, and the protocol's linter (PKG= is a part of the module)
	@linter=$$($(TOOL) golangci-lint); \
	export GOLANGCI_LINT_CACHE=$(CACHE)/golangci-lint CGO_ENABLED=0 GOARCH=amd64; \
	lint() { echo "golangci-lint of $$1 for $$2"; (cd "$$1" && GOOS=$$2 "$$linter" run "$${@:3}"); }; \
	lint . linux $(or $(PKG),./...); \
	others=$$(GOOS=linux go list -f '{{if .IgnoredGoFiles}}{{.Dir}}{{end}}' $(or $(PKG),./...) | sed "s,^$$PWD,.," | grep -Ev '$(LINUX_ONLY)' || true); \
	[[ -z $$others ]] || lint . windows $$others; \
	$(if $(PKG),:,for module in testenv/outside/*/; do lint "$$module" linux ./...; done)
	@$(if $(PKG),:,testenv/tools/generate.sh lint)

.PHONY: format
format: ## gofumpt and the order of imports, in place
	@linter=$$($(TOOL) golangci-lint); GOLANGCI_LINT_CACHE=$(CACHE)/golangci-lint "$$linter" fmt ./...

.PHONY: size
size: ## the lines, files, packages and functions of the product
	@go run ./testenv/tools/cmd/size -without 'conformance,machinetest,require,*test' contract internal sdk plugins host

.PHONY: promise
promise: ## 10,000 random streams through validate, plan, apply and plan (STREAMS= is another number)
	@PROMISE_STREAMS=$(or $(STREAMS),10000) go test -timeout 6h -run TestAPlanIsExact -v ./testenv/promise

.PHONY: campaign
campaign: export MACHINEADM_TIERS = controller,system,cluster,vm,campaign
campaign: layers nodes-vm ## 2,000 kills and faults of runs, on image trees and on booted nodes, 200 of the manager (ROUNDS= is another number of each), every combination that make test leaves out, and all of the product with the race detector
	@go test -timeout 6h -run 'TestTrees|TestNode|TestTimesync|TestKubernetesNode|TestInstallEverywhere' -v ./testenv/crash -rounds $(or $(ROUNDS),2000)
	@go test -timeout 2h -run TestKilled -v ./testenv/controller -rounds $(or $(ROUNDS),200)
	@go test -timeout 2h -count=1 ./testenv/bootstrapdata ./testenv/broken ./testenv/cluster ./testenv/containerd ./testenv/containerruntime ./testenv/domainjoin ./testenv/imagebuilder ./testenv/infrastructure ./testenv/kubernetesnode ./testenv/management
	@go test -count=1 -timeout 40m -run 'TestTransit|TestVault' ./testenv/stores
	@CGO_ENABLED=0 go test -timeout 2h -count=1 -run 'TestNode|TestEndOfTheTest|TestWrongClock' ./testenv/vm
	@CGO_ENABLED=1 go test -race -vet=off -timeout 20m $$(go list ./... | grep -v '/testenv\(/\|$$\)')

.PHONY: bench
bench: ## every benchmark, then the table of docs/performance.md (BENCH= is a pattern of names, BENCHFLAGS= goes to go test)
	@packages=$$(grep -rEo --include='*_test.go' '^func Benchmark[A-Za-z0-9_]*' . | sed -E 's,/[^/]*:func , ,' | \
		awk -v pattern='$(BENCH)' 'BEGIN { gsub("/[^|]*", "", pattern) } $$2 ~ pattern { print $$1 }' | sort -u); \
	[[ -n $$packages ]] || { echo "no benchmark has a name like $(BENCH)" >&2; exit 2; }; \
	MACHINEADM_TIERS=system,cluster go test -timeout 60m -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $(BENCHFLAGS) $$packages | go run ./testenv/bench/cmd/table

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each (default 10s)
	@FUZZTIME=$(or $(FUZZTIME),10s) testenv/tools/fuzz.sh

## Generate

.PHONY: generate
generate: ## the protocol's Go code from plugin.proto; the custom resources and docs/reference from the document kinds; docs/reference from the command line
	@testenv/tools/generate.sh write

.PHONY: picture
picture: ## docs/demo.svg, the picture of the README, from what the commands of make demo print on a terminal
	@go test -count=1 -run TestPictureOfTheDemo ./testenv/terminal -update

.PHONY: site
site: ## the documentation as a web site in dist/site, which a browser opens from disk too; builds Hugo first, once
	@hugo=$$($(TOOL) hugo); "$$hugo" --source docs/site --destination "$$PWD/dist/site" --cleanDestinationDir --noBuildLock --quiet && echo "dist/site/index.html"

.PHONY: generate-check
generate-check: ## regenerate elsewhere and compare; fails with the difference
	@testenv/tools/generate.sh check

## Prepare

.PHONY: deps
deps: ## install the Debian packages of testenv/deps/packages that are missing, for all tiers (root on Debian; elsewhere it says what is missing)
	@$(DEPS)

.PHONY: tools
tools: ## build the pinned tools of testenv/tools, but the ones of make campaign alone, and install packages of npm into the cache, before a test's time limit counts; minutes, once
	@$(TOOL)

.PHONY: modules
modules: # every module of go.mod: testenv/outside takes the module cache for a module proxy
	@for try in 1 2 3; do ! go mod download || exit 0; done; exit 1

.PHONY: nodes
nodes: deps # the cached root filesystems of the test nodes; where they cannot be made, the suites that boot them skip
	@if [[ -d testenv/nodes/cmd/nodes-cache && $$(id -u) == 0 ]] && grep -qs '^ID=debian$$' /etc/os-release; then \
		go run ./testenv/nodes/cmd/nodes-cache; \
	fi

.PHONY: layers
layers: nodes # every cached system with layers of packages that a container of the tests boots, likewise; with PKG= a test builds its own
	@if [[ $$(id -u) == 0 ]] && grep -qs '^ID=debian$$' /etc/os-release; then \
		go run ./testenv/nodes/cmd/nodes-cache -layers; \
	fi

.PHONY: nodes-vm
nodes-vm: deps # every cached system that a virtual machine boots, likewise
	@if [[ $$(id -u) == 0 ]] && grep -qs '^ID=debian$$' /etc/os-release; then \
		go run ./testenv/nodes/cmd/nodes-cache -vm; \
	fi

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^## / { printf "\n%s\n", substr($$0, 4) } \
		/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

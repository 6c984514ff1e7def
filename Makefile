# Two commands do everything on a fresh machine: make demo, make test.
GO      ?= go
BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ARGS    ?=
EVOUNA  ?= $(or $(ASSAY_DATA),../shared/data)/EVOUNA/EVOUNA__NQ.json

.PHONY: demo test build engine browser lint race kill-test train-judge clean help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## build bin/assay and bin/assay-chdb
	@$(GO) version >/dev/null 2>&1 || { echo "Assay needs Go 1.26 or later on PATH"; exit 2; }
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/assay ./cmd/assay
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/assay-chdb ./cmd/assay-chdb

engine: build ## install the embedded ClickHouse with npm (or pip)
	@$(BIN)/assay demo --install-engine

demo: engine ## a day of a simulated assistant in about two minutes (ARGS=--fast for less)
	@$(BIN)/assay demo $(ARGS)

test: engine browser lint ## everything that must hold
	$(GO) test -timeout 20m ./...

race: engine ## the same under the race detector
	$(GO) test -race -timeout 30m ./...

lint: ## vet, staticcheck, gofmt
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }

browser: ## a Chromium for the tests of the page
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
		SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
		$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

kill-test: engine ## SIGKILL at many random moments (CI runs a short form)
	ASSAY_KILLS=40 $(GO) test -count=1 -timeout 40m -run Kill -v ./cmd/assay

train-judge: ## train the embedded judge again; the committed weights come out bit for bit
	$(GO) run ./bench/trainjudge -data $(EVOUNA) -out evaluators/judge/embedded/weights.json

clean: ## remove what was built
	rm -rf $(BIN)

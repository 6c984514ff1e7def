# Two commands do everything on a fresh machine: make demo, make test.
GO      ?= go
BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ARGS    ?=
EVOUNA  ?= $(or $(ASSAY_DATA),../shared/data)/EVOUNA/EVOUNA__NQ.json

.PHONY: demo test build engine browser prometheus kafka lint race kill-test kafka-test train-judge clean help

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

test: engine browser prometheus kafka lint ## everything that must hold
	$(GO) test -timeout 20m ./...

# cmd/assay is left out: its tests drive built programs, which carry no detector.
race: engine browser prometheus kafka ## the packages' tests under the race detector
	$(GO) test -race -timeout 30m $$($(GO) list ./... | grep -v '/cmd/assay$$')

lint: ## vet, staticcheck, gofmt
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }

browser: ## a Chromium for the tests of the page
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
		SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
		$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

# Programs for tests only: the policy keeps apt from starting them as services of this
# machine, and where there is systemd the next boot does not start them either.
prometheus: ## Prometheus and Alertmanager for the tests of the alerts
	@command -v promtool >/dev/null && command -v amtool >/dev/null && exit 0; \
	command -v apt-get >/dev/null || { echo "put prometheus, promtool, alertmanager and amtool on PATH"; exit 2; }; \
	SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; policy=/usr/sbin/policy-rc.d; \
	[ -e $$policy ] || { printf '#!/bin/sh\nexit 101\n' | $$SUDO tee $$policy >/dev/null && $$SUDO chmod +x $$policy && trap "$$SUDO rm -f $$policy" EXIT; }; \
	$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager >/dev/null || exit 1; \
	! [ -d /run/systemd/system ] || $$SUDO systemctl disable --quiet prometheus prometheus-alertmanager

kafka: ## Apache Kafka for the tests of the consumer: Java and Maven, then the broker's jars into the user's cache
	@command -v java >/dev/null && command -v mvn >/dev/null && exit 0; \
	command -v apt-get >/dev/null || { echo "put java (17 or later) and mvn on PATH"; exit 2; }; \
	SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
	$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless maven >/dev/null
	@$(GO) test -count=1 -run JarsOfABroker ./internal/testkit

kill-test: engine ## SIGKILL at many random moments (CI runs a short form)
	ASSAY_KILLS=10 $(GO) test -count=1 -timeout 40m -run SIGKILL -v ./cmd/assay

kafka-test: engine kafka ## brokers and workers killed under load, the long form (make test runs a short one)
	ASSAY_LONG=1 $(GO) test -count=1 -timeout 40m -run 'RealBroker|KilledUnder|ASecured|HumanJudged' -v ./cmd/assay

train-judge: ## train the embedded judge again; the committed weights come out bit for bit
	$(GO) run ./bench/trainjudge -data $(EVOUNA) -out evaluators/judge/embedded/weights.json

clean: ## remove what was built
	rm -rf $(BIN)

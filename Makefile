# Two commands do everything on a fresh machine: make demo, make test.
GO      ?= go
BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ARGS    ?=
EVOUNA  ?= $(or $(ASSAY_DATA),../shared/data)/EVOUNA/EVOUNA__NQ.json

.PHONY: demo test build engine browser prometheus clickhouse kafka producers api-test lint race fuzz kill-test kafka-test train-judge clean help

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

test: engine browser prometheus clickhouse kafka producers api-test lint ## everything that must hold
	$(GO) test -timeout 20m ./...

# cmd/assay is left out: its tests drive built programs, which carry no detector.
race: engine browser prometheus clickhouse kafka api-test ## the packages' tests under the race detector
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
define install-unstarted
	SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; policy=/usr/sbin/policy-rc.d; \
	[ -e $$policy ] || { printf '#!/bin/sh\nexit 101\n' | $$SUDO tee $$policy >/dev/null && $$SUDO chmod +x $$policy && trap "$$SUDO rm -f $$policy" EXIT; }; \
	$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null || exit 1; \
	! [ -d /run/systemd/system ] || $$SUDO systemctl disable --quiet $(1)
endef

prometheus: ## Prometheus and Alertmanager for the tests of the alerts
	@command -v promtool >/dev/null && command -v amtool >/dev/null && exit 0; \
	command -v apt-get >/dev/null || { echo "put prometheus, promtool, alertmanager and amtool on PATH"; exit 2; }; \
	$(call install-unstarted,prometheus prometheus-alertmanager)

clickhouse: ## Debian's ClickHouse server for the tests of the wire (a current clickhouse on PATH is used beside it)
	@[ -x /usr/sbin/clickhouse-server ] && exit 0; \
	command -v apt-get >/dev/null || { echo "put the clickhouse-server of Debian 12 (18.16) at /usr/sbin"; exit 2; }; \
	$(call install-unstarted,clickhouse-server)

kafka: ## Apache Kafka for the tests of the consumer: Java and Maven, then the broker's jars into the user's cache
	@command -v java >/dev/null && command -v mvn >/dev/null && exit 0; \
	command -v apt-get >/dev/null || { echo "put java (17 or later) and mvn on PATH"; exit 2; }; \
	SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
	$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless maven >/dev/null
	@$(GO) test -count=1 -run JarsOfABroker ./internal/testkit

# The folder has the version's name and is there only when it is whole.
SCHEMATHESIS := 4.32.5
api-test: ## schemathesis for the tests of the HTTP API, into the user's cache
	@at="$${XDG_CACHE_HOME:-$$HOME/.cache}/assay/schemathesis-$(SCHEMATHESIS)"; \
	"$$at/bin/schemathesis" --version >/dev/null 2>&1 && exit 0; \
	python3 -c 'import ensurepip, venv' 2>/dev/null || { \
		command -v apt-get >/dev/null || { echo "put python3 with venv on PATH"; exit 2; }; \
		SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
		$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null || exit 1; }; \
	rm -rf "$$at" && python3 -m venv "$$at" && "$$at/bin/pip" install -q --disable-pip-version-check schemathesis==$(SCHEMATHESIS) || { rm -rf "$$at"; exit 1; }

# The folder is the user's cache as Go names it; tests look there.
PRODUCERS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/assay-testkit/producers
WANTED    := cmd/assay/testdata/producers/requirements.txt
producers: ## kcat and Python's Kafka and OpenTelemetry clients, for the tests of foreign producers
	@command -v kcat >/dev/null && python3 -c 'import ensurepip' 2>/dev/null && exit 0; \
	command -v apt-get >/dev/null || { echo "put kcat and a python3 with venv on PATH"; exit 2; }; \
	SUDO=; [ "$$(id -u)" = 0 ] || SUDO=sudo; \
	$$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends kcat python3-venv >/dev/null
	@cmp -s $(WANTED) "$(PRODUCERS)/requirements.txt" && exit 0; \
	rm -rf "$(PRODUCERS)" && python3 -m venv "$(PRODUCERS)" && \
	"$(PRODUCERS)/bin/pip" install --quiet --disable-pip-version-check -r $(WANTED) && cp $(WANTED) "$(PRODUCERS)/"

FUZZTIME ?= 2m
fuzz: ## every fuzz target for FUZZTIME (2m each)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n 1 dirname | sort -u | while read -r dir; do \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go | cut -c 6-); do \
			echo "$$dir $$f"; \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$dir" || exit 1; \
		done; \
	done

kill-test: engine ## SIGKILL at many random moments (CI runs a short form)
	ASSAY_KILLS=10 $(GO) test -count=1 -timeout 40m -run SIGKILL -v ./cmd/assay

kafka-test: engine kafka ## brokers and workers killed under load, the long form (make test runs a short one)
	ASSAY_LONG=1 $(GO) test -count=1 -timeout 40m -run 'RealBroker|KilledUnder|ASecured|HumanJudged' -v ./cmd/assay

train-judge: ## train the embedded judge again; the committed weights come out bit for bit
	$(GO) run ./bench/trainjudge -data $(EVOUNA) -out evaluators/judge/embedded/weights.json

clean: ## remove what was built
	rm -rf $(BIN)

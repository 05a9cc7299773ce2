# Everything that is done with the project, one word each. The work is in scripts/; each target installs the packages that it
# needs (scripts/packages.sh) and builds outside the clone (scripts/build-env.sh).

ARGS ?=

.PHONY: help run check test verify steps rounds players torture fuzz mutants planted soak demo cluster bench budget sanitize release package deb archive install uninstall package-test format lint docs-check clean
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 18
	@echo "ARGS='…' goes on to run (earshot serve), test (swift test), mutants and bench."

run: ## build and start the server; it prints its addresses
	@exec scripts/run.sh $(ARGS)

check: ## lint, build and the tests of the parts, for while you work: the first part of `make test`
	@exec scripts/test.sh check

test: ## lint, build and the tests (ARGS='--filter NAME': only these tests)
	@exec scripts/test.sh test $(ARGS)

verify: ## what takes longer: sanitizers, torture, budgets, packages, all players and pages (ARGS='STEP…', ARGS=missing: what this tree has not seen)
	@exec scripts/test.sh verify $(ARGS)

steps: ## every step of check, test and verify, with its time and last result (ARGS=tests: every test, too)
	@exec scripts/test.sh list $(ARGS)

rounds: ## `make test` several times in a row (ARGS='5', ARGS='1 2': once, with two busy loops beside it)
	@exec scripts/rounds.sh $(ARGS)

players: ## OBS, VLC, mpv, ffmpeg, gstreamer, rtmpdump, Chromium, aiortc, hls.js and mpegts.js with streams of every kind (80 minutes; 22 cases are part of `make test` and `make verify`)
	@exec scripts/players.sh $(ARGS)

torture: ## kills, stops, full and failing disks, power cuts, clock leaps, hostile clients, bad webhooks (hours; two minutes of it are a step of `make verify`)
	@exec scripts/torture.sh $(ARGS)

soak: ## the long forms of tests that are short in `make test`: 200 kills, 10,000 connections and names, ten minutes of churn, an hour without an alert
	@scripts/packages.sh test && EARSHOT_HEALTHY_SECONDS=3600 python3 Tests/Metrics --earshot "$$(scripts/build.sh release earshot)/earshot" silence
	@EARSHOT_KILLS=200 EARSHOT_OUTAGE_SECONDS=180 EARSHOT_CYCLES=10000 EARSHOT_NAMES=10000 EARSHOT_CHURN_SECONDS=600 EARSHOT_HLS_SECONDS=600 EARSHOT_LARGE=1 \
		scripts/test.sh test --filter 'KillRestartTests|KillRepetitionTests|FragmentFileTests|aTargetThatIsDownForMinutes|LoadedServer|RecordingKillTests|playlistsAreAsTheSpecificationSays|largeFiles'
	@EARSHOT_KILLS=200 exec python3 Tests/Apps --earshot "$$(scripts/build.sh debug earshot)/earshot" class_kill machine_kills

sanitize: ## the address and thread sanitizers over the tests of the parts (steps of `make verify`)
	@scripts/packages.sh sanitize && scripts/sanitize.sh address && exec scripts/sanitize.sh thread

fuzz: ## new inputs for every decoder that peers feed, half an hour each (FUZZ_SECONDS=1800, ARGS='TARGET…'); ten seconds in `make verify`
	@scripts/packages.sh sanitize && exec scripts/fuzz.sh $${FUZZ_SECONDS:-1800} $(ARGS)

mutants: ## change limits, comparisons and branches of the layers of rules and values, one at a time, and see that a test notices each (hours; ARGS='COUNT SEED FILES')
	@exec scripts/mutants.sh $(ARGS)

planted: ## plant a leak, a race, a doubled frame and others, one at a time, and see that the tests notice each (half an hour; ARGS='NAME…')
	@exec scripts/planted.sh $(ARGS)

demo: ## server, test-pattern publisher, a player that reports what it decodes, and the console; ends by itself with DEMO_SECONDS=20
	@exec scripts/demo.sh

cluster: ## three servers that share the rooms in a PostgreSQL, all on this machine; prints their addresses and what to try
	@exec scripts/cluster.sh

bench: ## measure beside nginx-rtmp and a bare C program (half an hour; QUICK=1 for a look)
	@scripts/packages.sh bench && exec Benchmarks/run.sh $(ARGS)

budget: ## count instructions and allocations per frame and viewer (a step of `make verify`)
	@scripts/packages.sh budget && exec Benchmarks/budget.sh

release: ## optimised build without symbols, which are beside it; prints where the binary is
	@scripts/packages.sh build && exec scripts/release.sh

package: ## the Debian package, an archive and the program's symbols, in dist/
	@scripts/packages.sh package && exec scripts/package.sh

deb: ## the Debian package alone, in dist/
	@scripts/packages.sh package && exec scripts/deb.sh

archive: ## the archive alone, in dist/: unpack it anywhere, then ./run
	@scripts/packages.sh package && exec scripts/archive.sh

install: ## program, man pages, completions, unit and settings below PREFIX (/usr/local) and DESTDIR; EARSHOT_BINARY=PATH installs that program
	@exec scripts/install.sh install

uninstall: ## remove what `make install` put there; settings and data stay
	@exec scripts/install.sh uninstall

package-test: ## the package's life in a clean Debian: installed, used, upgraded while it runs, removed; the Dockerfile's commands (root; five minutes; ARGS=DEB)
	@scripts/packages.sh package-test && exec python3 Tests/Package life --build-stage $(ARGS)

format: ## format all Swift code in place
	@swift format --in-place --parallel --recursive Package.swift Sources Tests Benchmarks

lint: ## complain about badly formatted Swift code, about names that are not compared by their bytes, and about words that the glossary forbids
	@scripts/check_names.py
	@scripts/check_words.py
	@swift format lint --strict --parallel --recursive Package.swift Sources Tests Benchmarks

docs-check: ## whether what the documents name exists (links, paths, targets, routes, commands), and whether their commands work (ARGS=BINARY; else the newest that was built)
	@exec scripts/docs-check.sh $(ARGS)

clean: ## remove everything that was built
	@scripts/clean.sh

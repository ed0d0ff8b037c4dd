# `make demo` and `make test` are all that a newcomer needs; everything else they install themselves.
# Needs Java 17 or newer and Python 3.10 or newer, which PySpark itself needs.

PYTHON ?= $(shell sh tools/find-python)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLASS_ARCHIVES := $(VENV)/class-archives/spark.jsa

export PYSPARK_PYTHON := $(abspath $(BIN)/python)
# Bytecode is kept, even where the environment says otherwise: the next run collects its tests in half the time.
export PYTHONDONTWRITEBYTECODE :=
# Each environment here has its own PySpark and its own settings, whatever Spark the shell is set up for.
unexport HADOOP_CONF_DIR PYSPARK_DRIVER_PYTHON PYSPARK_DRIVER_PYTHON_OPTS PYSPARK_SUBMIT_ARGS PYTHONOPTIMIZE PYTHONPATH \
	SPARK_CONF_DIR SPARK_HOME SPARK_REMOTE

.PHONY: demo test test-plain test-connect lint bench bench-quick bench-filters bench-flink bench-lakehouse soak soak-tokens stress memcheck kills reruns fuzz laws histories docs site site-version publish-site picture clean test-pyspark-4.0 test-iceberg test-delta test-versions test-kafka-python-3 test-wheel test-flink flink-tables test-kerberos

demo: $(READY)
	$(BIN)/python -m pyspark_upsert_kafka demo

# Five processes on two cores, file by file: tests wait much. Class archives would take longer than they save for one run.
PROCESSES := --numprocesses=5 --dist=loadfile --no-loadscope-reorder

# Compiling all that is installed takes longer than the rest, and most of it is never imported: Python compiles what it needs.
PIP_INSTALL := pip install --quiet --no-compile

# What pytest runs: these files and folders, or those that ARGS names.
tests_or = $(if $(filter tests/%,$(ARGS)),,$(1)) $(ARGS)

test: $(READY)
	$(BIN)/python -m pytest -m "not long and not alone" $(PROCESSES) $(ARGS)

.PHONY: test-all test-long test-alone repeat

# Everything that needs nothing but Python and Java: each test with all its examples, those that run alone, and those of other
# environments. Two hours.
test-all: test-long test-alone test-connect test-kafka-python-3 test-pyspark-4.0 test-iceberg test-delta test-notebooks test-wheel \
	test-cluster test-plain site

# All tests of this environment but those that run alone.
test-long: export FULL_LAWS := 1
test-long: $(READY) $(CLASS_ARCHIVES)
	$(BIN)/python -m pytest -m "not alone" $(PROCESSES) $(ARGS)

# Tests that assert times, memory, or counts of threads: each in a process of its own, twice if it fails.
test-alone: $(READY) $(CLASS_ARCHIVES)
	$(BIN)/python -m tools.alone $(ARGS)

# Whether a test of make test depends on chance: it runs while other programs keep the cores busy (BESIDE=busy), beside a second make test
# (BESIDE=test), or beside nothing.
TIMES ?= 20
BESIDE ?= busy

repeat: $(READY) $(CLASS_ARCHIVES)
	$(BIN)/python -m tools.repeat $(TIMES) $(BESIDE)

# Some tests without what makes them start faster (tests/fast_start.py), in one process.
PLAIN ?= tests/spark/test_sink_batch.py

test-plain: $(READY)
	PLAIN_TESTS=1 $(BIN)/python -m pytest $(call tests_or,$(PLAIN))

# The end-to-end tests with a session of Spark Connect; what needs a classic one is skipped, with its reason.
# One process: a session that starts its own server listens on Spark's port for that, 15002.
test-connect: $(READY) $(CLASS_ARCHIVES)
	SPARK_REMOTE="local[2]" $(BIN)/python -m pytest $(call tests_or,tests/spark)

.PHONY: test-unit test-newest lint-workflows dist recipe release-check

# The unit tests, which need no class archives.
test-unit: $(READY)
	$(BIN)/python -m pytest -m "not long and not alone" --numprocesses=auto $(call tests_or,tests/unit)

# zizmor looks for what is unsafe in workflows.
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github

# Whether the workflows are right: their expressions, the inputs of actions, the shell scripts (needs Go).
ACTIONLINT := $(VENV)/actionlint

lint-workflows: $(ACTIONLINT)/actionlint
	$(ACTIONLINT)/actionlint

$(ACTIONLINT)/actionlint:
	GOBIN=$(abspath $(ACTIONLINT)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

bench: $(READY)
	$(BIN)/python benchmarks/run.py $(ARGS)

# Ratios to plain Python programs, beside those of the last release: did a change make anything slower?
bench-quick: export LOCAL_KAFKA_OPTS := -XX:TieredStopAtLevel=4
bench-quick: $(READY)
	PYTHONPATH=benchmarks:. $(BIN)/python benchmarks/quick.py $(ARGS)

# What the ids of schemas in messages cost: those of Confluent's registry beside those of AWS Glue, without any registry.
.PHONY: bench-schema-ids
bench-schema-ids: $(READY)
	$(BIN)/python benchmarks/schema_ids.py
	PYTHONPATH=. $(BIN)/python benchmarks/read_ids.py

# What whole queries take whose messages name their schemas in headers.
.PHONY: bench-header-queries
bench-header-queries: export LOCAL_KAFKA_OPTS := -XX:TieredStopAtLevel=4
bench-header-queries: $(READY)
	PYTHONPATH=benchmarks:. $(BIN)/python benchmarks/header_queries.py $(ARGS)

# What filters of a query save: one key of a table, one minute of a day; ARGS="--messages 20000000 --keys 5000000" takes longer.
bench-filters: export LOCAL_KAFKA_OPTS := -XX:TieredStopAtLevel=4
bench-filters: $(READY)
	PYTHONPATH=benchmarks:. $(BIN)/python benchmarks/filters.py $(ARGS)

# How large tables, many partitions and many micro-batches are read; writes the tables of docs/scale.md. ARGS="keys --quiet"
# measures one part on a machine without other work.
.PHONY: scale
scale: export LOCAL_KAFKA_OPTS := -XX:TieredStopAtLevel=4
scale: $(READY)
	PYTHONPATH=benchmarks:. $(BIN)/python -m scale $(ARGS)

# A table is copied while its broker restarts every minute; the last line is the verdict.
SECONDS ?= 600
CHANGES ?= 1000000

soak: $(READY)
	$(BIN)/python -m tools.soak $(SECONDS) $(CHANGES)

# A copy that is written exactly once while tokens to log in with are renewed so many times.
RENEWALS ?= 120

soak-tokens: $(READY)
	TOKEN_RENEWALS=$(RENEWALS) $(BIN)/python -m pytest tests/spark/test_token_soak.py

# A topic is read without an object for each message, and left and interrupted at any moment; the last line is the verdict.
MINUTES ?= 60

stress: $(READY)
	$(BIN)/python -m tools.stress $(MINUTES)

# The same under valgrind, which reports what is read after it was freed (apt-get install valgrind); takes some minutes.
memcheck: $(READY)
	$(BIN)/python -m tools.memcheck

# A topic is copied exactly once and at least once while workers and drivers are killed; the last line is the verdict.
RUNS ?= 30

kills: $(READY)
	$(BIN)/python -m tools.kills $(RUNS)

# Exactly-once queries fail and run again with something changed; the last line is the verdict.
ATTEMPTS ?= 300

reruns: $(READY)
	$(BIN)/python -m tools.reruns $(ATTEMPTS)

# Every format reads random messages, good and bad, by all its paths; ARGS="json csv --messages 100000 --seed 7" runs some.
fuzz: $(READY)
	$(BIN)/python -m tools.fuzz $(ARGS)

# The tests with examples that are made (hypothesis), with others than those of make test, and many more.
laws: export RANDOM_EXAMPLES := 1
laws: export FULL_LAWS := 1
laws: $(READY)
	$(BIN)/python -m pytest -m "not alone" $(call tests_or,tests/unit)

# 150 small mistakes are made in the code, one by one: the unit tests near each must notice it. Some fifteen minutes; the last
# line is the verdict. SEED=7 chooses others, ARGS="core/positions" a folder, ARGS=--list shows them.
SEED ?= 1
COUNT ?= 150

.PHONY: mutants
mutants: $(READY)
	$(BIN)/python -m tools.mutants --seed $(SEED) --count $(COUNT) $(ARGS)

# Snapshots of a table that is changed and compacted all the time; the last line is the verdict.
HISTORIES ?= 100

histories: $(READY)
	$(BIN)/python -m tools.histories $(HISTORIES)

# What is known of a release, in build/proof/<version>; writes docs/proof.md. Half an hour to an hour; many with PROOF=release.
PROOF ?= short

.PHONY: proof
proof: $(READY)
	$(BIN)/python -m tools.proof $(PROOF) $(ARGS)

docs: $(READY)
	$(BIN)/python tools/options_page.py docs/options.md docs/format-options.md
	$(BIN)/python tools/functions_table.py docs/sql-functions.md docs/sql-limits.md
	$(BIN)/python tools/debezium_types_table.py docs/cdc-types.md
	$(BIN)/python -m tools.dashboard operating/grafana-dashboard.json

# Which answers of a broker may be lost, late or errors, and what happens then: the table in docs/reliability.md. Some minutes.
.PHONY: fault-table
fault-table: $(READY)
	$(BIN)/python -m tools.fault_table docs/reliability.md

# The site in build/site: docs/ and the Python API, with every link followed. Nothing is fetched.
site: $(READY)
	$(BIN)/python -m tools.site

# The site as one version of a folder, with a menu of versions: make site-version VERSION=0.2.0 INTO=/tmp/site
VERSION ?= dev
INTO ?= build/published

site-version: $(READY)
	$(BIN)/python -m tools.site --publish $(INTO) --version $(VERSION)

# And pushes it, to the branch gh-pages of origin.
publish-site: site push-site

# Pushes what is in build/site; nothing is installed for that.
.PHONY: push-site
push-site:
	sh tools/publish-site "$(PYTHON)" $(VERSION)

# A terminal with `show --follow`, as it is on README.
picture: $(READY)
	$(BIN)/python -m tools.picture docs/show.svg

$(READY): pyproject.toml
	@sh tools/check-needs "$(PYTHON)"
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) --upgrade "pip>=25.1"
	$(BIN)/$(PIP_INSTALL) --editable . --group dev
	@# Several processes would compile the same at once, so here it is done, by all cores, for what they may import.
	-$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|moto)/' $(VENV)/lib
	@touch $(READY)

# With these, brokers and Spark start in half the CPU time; where they are, make test has them too.
$(CLASS_ARCHIVES): $(READY)
	$(BIN)/python -m tools.class_archives

# Reading, writing and streaming on the oldest supported PySpark (what needs limits is skipped there), which
# leaves the sockets of collected results to the garbage collector.
TESTS_ON_4_0 := $(addprefix tests/spark/test_,batch_read.py batch_sql.py sink_batch.py sink_stream.py \
	update_mode.py stream_reading.py recovery_checkpoint.py table_first.py changelog.py)

test-pyspark-4.0: .venv-4.0/.ready
	PYSPARK_PYTHON=$(abspath .venv-4.0/bin/python) .venv-4.0/bin/python -m pytest \
		-W ignore::ResourceWarning --numprocesses=2 --dist=loadfile $(call tests_or,$(TESTS_ON_4_0))

# An environment with an older PySpark: .venv-4.0 has the newest 4.0, .venv-4.1 the newest 4.1.
.venv-4.%/.ready: pyproject.toml
	@sh tools/check-needs "$(PYTHON)"
	"$(PYTHON)" -m venv .venv-4.$*
	.venv-4.$*/bin/$(PIP_INSTALL) --upgrade "pip>=25.1"
	.venv-4.$*/bin/$(PIP_INSTALL) --editable . "pyspark==4.$*.*" --group test
	@touch $@

# Some tests with each broker, Python, PySpark and the oldest and newest packages; makes docs/versions.md. An hour or more:
# ARGS="2.1.1 oldest" runs only these rows.
test-versions: $(READY) $(CLASS_ARCHIVES)
	unset PYSPARK_PYTHON; $(BIN)/python -m tools.versions $(ARGS)

# merge_sink and its pages, on the Spark that each table format is made for. PySpark 4.1 leaves the sockets of
# collected results to the garbage collector.
LAKEHOUSE ?= tests/lakehouse

test-iceberg: .venv-4.1/.ready
	PYSPARK_PYTHON=$(abspath .venv-4.1/bin/python) .venv-4.1/bin/python -m pytest \
		-W ignore::ResourceWarning $(call tests_or,$(LAKEHOUSE))

test-delta: .venv-4.2/.ready
	PYSPARK_PYTHON=$(abspath .venv-4.2/bin/python) .venv-4.2/bin/python -m pytest $(call tests_or,$(LAKEHOUSE))

# The notebooks in examples, in a kernel as Jupyter has it: they print what they show. ARGS=--write shows what they print now.
.PHONY: test-notebooks
test-notebooks: .venv-4.1/.notebooks-ready
	unset PYSPARK_PYTHON; .venv-4.1/bin/python -m tools.notebooks $(ARGS)

.venv-4.1/.notebooks-ready: .venv-4.1/.ready
	.venv-4.1/bin/$(PIP_INSTALL) --group notebooks
	@touch $@

# How fast merge_sink is; ARGS="--rows 1000000 --batches 10000" runs a part.
bench-lakehouse: .venv-4.1/.ready .venv-4.2/.ready
	for python in .venv-4.1/bin/python .venv-4.2/bin/python; do PYTHONPATH=. PYSPARK_PYTHON=$(CURDIR)/$$python $$python \
		benchmarks/lakehouse.py $(ARGS) || exit 1; done

# The page on clusters, command by command, in environments that it makes: a standalone cluster, an environment that is sent with a job,
# a server of Spark Connect, all from pip. Some ten minutes, most of them pip.
.PHONY: test-cluster
test-cluster: $(READY)
	$(BIN)/python -m pytest $(call tests_or,tests/cluster/page.py)

# What depends on kafka-python, with kafka-python 3 in the place of kafka-python-ng; nothing of librdkafka again.
# That library leaves sockets of connections that failed to the garbage collector.
test-kafka-python-3: .venv-kafka-python-3/.ready
	PYSPARK_PYTHON=$(abspath .venv-kafka-python-3/bin/python) .venv-kafka-python-3/bin/python -m pytest \
		-k "kafka-python or kafka_python" -W ignore::ResourceWarning --numprocesses=3 --dist=loadfile --no-loadscope-reorder \
		$(call tests_or,tests/kafka tests/unit/kafka tests/spark/test_kafka_python.py)

# Made anew each time: the two libraries own the same files.
.venv-kafka-python-3/.ready: pyproject.toml
	@sh tools/check-needs "$(PYTHON)"
	"$(PYTHON)" -m venv --clear .venv-kafka-python-3
	.venv-kafka-python-3/bin/$(PIP_INSTALL) --upgrade "pip>=25.1"
	.venv-kafka-python-3/bin/$(PIP_INSTALL) --editable . --group test
	.venv-kafka-python-3/bin/pip uninstall --quiet --yes kafka-python-ng
	.venv-kafka-python-3/bin/$(PIP_INSTALL) "kafka-python[crc32c,lz4,snappy,zstd]>=3"
	@touch .venv-kafka-python-3/.ready

# The newest release of each dependency, pre-releases too; in an environment that is made anew each time.
test-newest:
	@sh tools/check-needs "$(PYTHON)"
	"$(PYTHON)" -m venv --clear .venv-newest
	.venv-newest/bin/pip install --quiet --upgrade "pip>=25.1"
	.venv-newest/bin/pip install --quiet --pre --upgrade --editable . --group test
	.venv-newest/bin/pip list
	PYSPARK_PYTHON=$(abspath .venv-newest/bin/python) .venv-newest/bin/python -m pytest \
		--numprocesses=3 --dist=loadfile $(call tests_or,tests/unit tests/kafka $(TESTS_ON_4_0))

# The wheel and the source distribution. With the time of the commit, so that each build has the same bytes.
dist: export SOURCE_DATE_EPOCH = $(or $(shell git log -1 --format=%ct 2>/dev/null),1700000000)
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build

# What users install, in clean environments of the oldest and the newest Python to be had.
test-wheel: dist
	rm -rf .venv-wheel
	unset PYSPARK_PYTHON; sh tools/test-wheel dist/*.whl $$(sh tools/find-pythons)

# Every step of a release but the upload. TAG=v0.2.0: this commit must be that release.
release-check: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release-check: $(READY) .venv-release/.ready
	@changed=$$(git status --short) && test -z "$$changed" || { echo "$$changed"; \
		echo "Not ready: a release is made of a commit. Commit these files, or remove them." >&2; exit 1; }
	$(MAKE) lint lint-workflows site
	$(MAKE) test-wheel
	$(BIN)/python -m tools.release .venv-release/bin $(TAG)

# The conda package, built from the sdist in dist/ into build/conda.
recipe: dist .venv-release/.ready
	.venv-release/bin/python -m tools.release.conda_package \
		"$$($(BIN)/python -c 'from pyspark_upsert_kafka import __version__; print(__version__)')" build/conda

.venv-release/.ready: pyproject.toml
	"$(PYTHON)" -m venv .venv-release
	.venv-release/bin/pip install --quiet --upgrade "pip>=25.1"
	.venv-release/bin/pip install --quiet --group release
	@touch $@

# Flink itself, in an environment of its own (PyFlink runs on Python 3.9 to 3.12): on the same topics as
# this project, and to make the tables of messages in tests/unit/formats/flink (on Java 19 or newer).
test-flink: $(READY) .venv-flink/.ready
	$(BIN)/python -m pytest $(call tests_or,$(addprefix tests/flink/,shared_topics.py sql_scripts.py functions.py cdc_topics.py))

bench-flink: $(READY) .venv-flink/.ready
	PYTHONPATH=benchmarks:. $(BIN)/python benchmarks/beside_flink.py $(ARGS)

# The messages of Amazon's serializers in tests/unit/registry/glue_messages.json; needs a JDK.
.PHONY: glue-messages
glue-messages: $(READY)
	$(BIN)/python -m tools.glue.messages

flink-tables: $(READY) .venv-flink/.ready
	$(BIN)/python -m tools.flink.tables

.venv-flink/.ready:
	"$(PYTHON)" -m venv .venv-flink
	.venv-flink/bin/pip install --quiet "apache-flink==2.2.1"
	@touch .venv-flink/.ready

# Kerberos with kafka-python, and a KDC of its own (apt-get install krb5-kdc krb5-admin-server krb5-user libkrb5-dev gcc).
test-kerberos: $(READY)
	$(BIN)/pip install --quiet "gssapi>=1.8"
	$(BIN)/python -m pytest $(call tests_or,tests/kerberos/logins.py)

# The recorded topic beside a real Postgres with Debezium's connector (apt-get install postgresql openjdk-17-jdk-headless).
.PHONY: test-debezium
test-debezium: $(READY)
	$(BIN)/python -m pytest $(call tests_or,$(addprefix tests/debezium/,recording.py types.py page.py))

# The dashboard and the alerts: their tests with promtool, and a real Prometheus beside a real query (apt-get install prometheus).
.PHONY: test-operating
test-operating: $(READY)
	$(BIN)/python -m pytest $(call tests_or,tests/unit/test_operating.py tests/operating/real_run.py)

clean:
	rm -rf $(VENV) .venv-4.0 .venv-4.1 .venv-4.2 .venv-kafka-python-3 .venv-wheel .venv-newest .venv-release .venv-bench .venv-flink .venv-versions build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# make book       execute the chapters and render them to _build/html/index.html; again, only what changed
# make test       run the tests that are not slow
# make test-slow  run the slow tests: all chapters and the whole book, kills, several processes, a release; and repeat
#                 those of stored files with other instructions and threads
# make verify     decide every claim of the register again from the stored results, and print those that flip
# make lint       check style, format and types, and change nothing
# make format     fix style and format
# make sync       write notebooks/*.ipynb from the chapters, book/chapters/*.md, and those with gaps, book/gaps/*.ipynb
# make address    set the address of the repository in all files: make address URL=https://github.com/OWNER/NAME
# make clean      remove what was built (the virtual environment stays)
#
# Each command makes the virtual environment first where needed. On the command line you may set PYTHON (3.11 or newer),
# VENV (where the environment lives) and PRESET (smoke, demo or paper: how large the experiments of the book are).

PYTHON ?= python3
VENV ?= .venv
PRESET ?= demo

BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Files are scheduled in the order of collection, which begins with the chapters: they take longest.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

.PHONY: book test test-slow verify lint format sync address clean

book: $(READY)
	$(BIN)/python -m nads_book.site --preset $(PRESET)

test: $(READY)
	$(PYTEST) -m "not slow"

test-slow: $(READY)
	$(PYTEST) -m slow tests
	NADS_TEST_THREADS=2 OMP_WAIT_POLICY=PASSIVE .ci/another-machine $(PYTEST) -m "stored and not slow" $$(grep -l mark.stored tests/test_*.py)

verify: $(READY)
	$(BIN)/python -m nads_book.site.verify

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

sync: $(READY)
	$(BIN)/python -m nads_book.site.sync

address: $(READY)
	$(BIN)/nads-book address $(URL)

clean:
	rm -rf _build build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache

$(READY): requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "error: $(PYTHON) not found: install Python 3.11 or newer, or name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: Python 3.11 or newer is needed, but $(PYTHON) is " + sys.version.split()[0] + ": name another one with make PYTHON=/path/to/python")'
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -f $@; echo "error: $(PYTHON) could not make a virtual environment in $(VENV): see above" >&2; exit 1; }

# Two commands: `make demo` and `make test`. Each makes .venv where there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Byte-code files halve import times; one thread a process keeps small tensors fast beside a busy neighbour.
unexport PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS := 1

# mkdocs-material announces its successor in every build.
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test check format docs docs-serve bench clean
.DELETE_ON_ERROR:

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/augtree demo --out runs/demo

test: $(VENV)/.ready
	$(BIN)/pytest

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mkdocs build --strict

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.ready
	$(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.ready
	$(BIN)/mkdocs serve

# The other libraries live apart: torchvision breaks other packages beside a torch build without CUDA.
.venv-bench/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,graph]"
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --no-deps torchvision==0.29.2 kornia==0.9.0 kornia_rs==0.2.0
	touch $@

bench: .venv-bench/.ready
	.venv-bench/bin/python benchmarks/image_speed.py
	.venv-bench/bin/python benchmarks/graph_speed.py

clean:
	rm -rf $(VENV) .venv-bench runs build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

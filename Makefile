# Two commands: `make demo` and `make test`. Each makes .venv where there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Byte-code files halve import times; one thread a process keeps small tensors fast beside a busy neighbour.
unexport PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS := 1

.PHONY: demo test test-exports check format bench clean
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

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The other libraries live apart: torchvision breaks other packages beside a torch build without CUDA.
.venv-bench/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,graph]"
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --no-deps torchvision==0.29.2 kornia==0.9.0 kornia_rs==0.2.0
	touch $@

bench: .venv-bench/.ready
	.venv-bench/bin/python benchmarks/image_speed.py
	.venv-bench/bin/python benchmarks/graph_speed.py

# What exports are for lives apart, too; the tests of it are skipped elsewhere.
.venv-exports/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-exports
	.venv-exports/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,graph,export]" pytest hypothesis onnxruntime albumentations opencv-python-headless
	.venv-exports/bin/pip install --quiet --disable-pip-version-check --no-deps torchvision==0.29.2
	touch $@

test-exports: .venv-exports/.ready
	.venv-exports/bin/pytest tests/exports tests/cli/test_export.py

clean:
	rm -rf $(VENV) .venv-bench .venv-exports runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Two commands: `make demo` and `make test`. Each makes .venv where there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Byte-code files halve import times; one thread a process keeps small tensors fast beside a busy neighbour.
unexport PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS := 1

# mkdocs-material announces its successor in every build.
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test first-half second-half test-exports test-integrations test-package check browser format docs docs-serve bench package clean
.DELETE_ON_ERROR:

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/augtree demo --out runs/demo

# Two halves of about one length side by side: a test has one thread.
HALF := tests/search tests/forests tests/cli tests/testing tests/runs

test: $(VENV)/.ready
	$(MAKE) --no-print-directory -j2 --output-sync=target first-half second-half

first-half:
	$(BIN)/pytest $(HALF)

second-half:
	$(BIN)/pytest tests src $(HALF:%=--ignore=%)

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mkdocs build --strict

# For the tests of the report page in a real browser, which are skipped without: Playwright, Chromium, axe-core's rules.
browser: $(VENV)/.ready
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[browser]"
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	mkdir -p .browser
	cd .browser && npm pack --silent axe-core@4.14.1 >/dev/null && tar -xzf axe-core-4.14.1.tgz --strip-components=1 package/axe.min.js

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
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,graph]" albumentations opencv-python-headless
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt torchvision kornia==0.9.0 kornia_rs==0.2.0
	touch $@

bench: .venv-bench/.ready
	.venv-bench/bin/python benchmarks/image_speed.py
	.venv-bench/bin/python benchmarks/graph_speed.py

# What exports are for lives apart, too; the tests of it are skipped elsewhere.
.venv-exports/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-exports
	.venv-exports/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,graph,export]" pytest hypothesis onnxruntime albumentations opencv-python-headless
	.venv-exports/bin/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt torchvision
	touch $@

test-exports: .venv-exports/.ready
	.venv-exports/bin/pytest tests/exports tests/cli/test_export.py

# Other frameworks live apart as well, and torchvision comes without dependencies, since it would draw another torch.
.venv-integrations/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[cli,graph,tensorboard]" \
		pytest hypothesis lightning datasets transformers accelerate mlflow-skinny sqlalchemy alembic wandb
	.venv-integrations/bin/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps torchvision timm
	touch $@

test-integrations: .venv-integrations/.ready
	AUGTREE_INTEGRATIONS=1 .venv-integrations/bin/pytest tests/examples tests/loggers

.venv-package/.ready: constraints.txt
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/pip install --quiet --disable-pip-version-check -c constraints.txt build hatchling twine cffconvert
	touch $@

package: .venv-package/.ready
	rm -rf dist
	.venv-package/bin/cffconvert --validate
	.venv-package/bin/python -m build --no-isolation
	.venv-package/bin/twine check --strict dist/*
	$(PYTHON) tests/packaging/contents.py

# The wheel in a fresh environment: first with torch and numpy alone, then with the command.
test-package: package
	rm -rf .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/augtree-*.whl
	.venv-wheel/bin/python -I tests/packaging/light.py
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/augtree-*.whl)[cli]"
	.venv-wheel/bin/python -I tests/packaging/command.py

clean:
	rm -rf $(VENV) .browser .venv-bench .venv-exports .venv-integrations .venv-package .venv-wheel runs build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

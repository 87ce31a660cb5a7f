# medssl: two commands for a newcomer, `make demo` and `make test`; both build the environment first.
PYTHON ?= python3
EXTRAS ?= dicom,natural,label,int8,dev,docs
DEMO   ?= runs/demo
SIZE   ?= bench
WORKERS ?= 2

VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed-$(EXTRAS)
BUNDLE := bundles/gbdl

# What the tests of `medssl label` need besides Python: a DICOM archive and a browser, by their names in Debian.
SYSTEM_PACKAGES := orthanc orthanc-dicomweb chromium chromium-driver
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: setup setup-label demo test test-slow bench docs keys lint format clean

setup: $(STAMP)

# uv installs in a fraction of pip's time; where it cannot be had, pip does the same work.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] < (3, 11))" || { echo "medssl needs Python 3.11: make PYTHON=python3.11"; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check uv || echo "uv is not available: using pip"
	if $(PY) -m uv --version >/dev/null 2>&1; \
	then $(PY) -m uv pip install --python $(PY) -c constraints.txt -e ".[$(EXTRAS)]"; \
	else $(PY) -m pip install --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"; fi
	touch $@

# Debian starts an installed Orthanc as a service, which listens to others: no test needs it, so it says how to end it.
setup-label: setup
	@if dpkg -s $(SYSTEM_PACKAGES) >/dev/null 2>&1; then echo "already installed: $(SYSTEM_PACKAGES)"; \
	elif ! command -v apt-get >/dev/null; \
	then echo "no apt-get: install Orthanc with its DICOMweb plugin, Chromium and chromedriver another way"; exit 1; \
	else $(AS_ROOT) apt-get update && $(AS_ROOT) apt-get install --yes --no-install-recommends $(SYSTEM_PACKAGES) \
	    && echo "to end the archive that Debian has started: $(AS_ROOT) systemctl disable --now orthanc"; fi

demo: setup
	$(PY) -m monai.bundle run training \
	    --config_file "['$(BUNDLE)/configs/train.json','$(BUNDLE)/configs/$(SIZE).json']" \
	    --dataset_name phantom --dataset_dir $(DEMO)/phantom --labelled 8 --output_dir $(DEMO) --resume true
	$(PY) -m medssl report $(DEMO)

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: setup
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# Two processes with one thread each are much faster than one process with two threads.
test: setup
	OMP_NUM_THREADS=1 $(PY) -m pytest -m "not slow" -n $(WORKERS) --dist loadfile

test-slow: setup
	$(PY) -m pytest -m slow

# With medpy, a peer that nothing else needs; writes benchmarks/README.md.
bench:
	$(MAKE) setup EXTRAS=$(EXTRAS),bench
	OMP_NUM_THREADS=1 $(PY) benchmarks/run.py $(BENCH)

# Builds the site into site/, from pages in docs/, the help of the commands and the keys of the bundles. Broken links
# between pages are errors; links to other sites are not followed. Nothing is fetched.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	@echo "site/index.html is the first page"

# After an option was added or changed: what `medssl explain` and the docs say of the keys.
keys: setup
	$(PY) docs/generate/keys.py

clean:
	rm -rf site $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

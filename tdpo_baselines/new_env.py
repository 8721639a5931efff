"""Write an environment to begin with: `python -m tdpo_baselines.new_env my_robot`.

NAME.py has a MuJoCo model, small functions for observation, reward, end and start, and `make`, which returns the
compiled environment; test_NAME.py tests it. Exit codes: 0 written; 2 invalid input.
"""

import argparse
import keyword
import sys
from importlib.util import find_spec
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
PLACEHOLDER = "NAME"
NEXT = """\
Next:
  python -m pytest test_NAME.py
  python -m tdpo_baselines.run --env NAME:make --num_timesteps 1e6 --log_dir runs/NAME
  python -m tdpo_baselines.evaluate runs/NAME --env NAME:make --video NAME.gif"""


def write(name: str, folder: Path) -> list[Path]:
    """Write the files of a new environment; raise ValueError if the name does not fit or a file exists."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"NAME must be a Python name, such as my_robot, got {name!r}")
    texts = {folder / path.stem.replace(PLACEHOLDER, name): path.read_text() for path in TEMPLATES.glob("*.py.txt")}
    for path in texts:
        if path.exists():
            raise ValueError(f"{path.name} exists already; choose another name or folder")
    if find_spec(name) is not None:
        raise ValueError(f"there is a module {name} already, which would hide the new one; choose another name")
    for path, text in texts.items():
        path.write_text(text.replace(PLACEHOLDER, name))
    return sorted(texts)


def main(arguments: list[str] | None = None) -> int:
    """Write the files and print what to do next; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.new_env", description=__doc__)
    parser.add_argument("name", metavar="NAME", help="name of the module")
    name = parser.parse_args(arguments).name
    try:
        written = write(name, Path.cwd())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {' and '.join(path.name for path in written)}")
    print(NEXT.replace(PLACEHOLDER, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Fenced blocks of Markdown pages, and a copy of the packages in which they can be tried out."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from programs import ROOT, mpi_environment

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str  # the file it belongs into; empty if it has none
    text: str


def read_blocks(path: str, section: str = "") -> list[Block]:
    """Return the fenced blocks of a page, or of its section with that title, in order."""
    text = (ROOT / path).read_text()
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [Block(*match.groups(default="")) for match in FENCE.finditer(text)]


def read_commands(path: str) -> list[str]:
    """Return the shell commands of a page, with continued lines joined and comments removed."""
    text = "".join(block.text for block in read_blocks(path) if block.language == "bash").replace("\\\n", " ")
    return [command for line in text.splitlines() if (command := line.partition("#")[0].strip())]


class Workshop:
    """A folder with copies of both packages, in which the blocks of a page are followed."""

    def __init__(self, folder: Path, mpirun: str):
        self.folder = folder
        for name in ("tdpo_baselines", "envs"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "pyproject.toml", folder)
        path = [str(Path(sys.executable).parent), str(Path(mpirun).parent), os.environ["PATH"]]
        self._environment = {**mpi_environment(), "PATH": os.pathsep.join(path)}

    def follow(self, page: str, shorter: tuple[str, str] = ("", "")) -> str:
        """Write the files of a page, apply its diffs and run its commands, in order; return what they printed.

        `shorter` is a text of the commands and what stands for it here.
        """
        printed = []
        for block in read_blocks(page):
            path = self.folder / block.title
            if block.language == "diff":
                path.write_text(apply_diff(path.read_text(), block.text))
            elif block.title and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.language == "bash":
                printed.append(self.run(block.text.replace(*shorter)))
        return "".join(printed)

    def run(self, commands: str) -> str:
        """Run shell commands; return what they printed."""
        done = subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def apply_diff(text: str, diff: str) -> str:
    """Return the text with one hunk applied, which must fit in exactly one place."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    assert text.count(before) == 1, f"the page's diff does not fit:\n{before}"
    return text.replace(before, after)

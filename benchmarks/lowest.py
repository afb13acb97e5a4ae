"""Print the lowest versions that `pyproject.toml` declares, one a line, for `pip install --constraint`."""

import re
import tomllib
from pathlib import Path

_LEAST = re.compile(r"([A-Za-z0-9._-]+)(?:\[.*\])?>=([0-9.]+)")
_TOOLS = "dev", "docs"  # which users do not install

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
for each in (
    *project["dependencies"],
    *(each for name, own in extras.items() if name not in _TOOLS for each in own),
):
    if found := _LEAST.match(each):
        print("==".join(found.groups()))

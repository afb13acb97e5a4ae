"""Install the wheel and the sdist of a folder, each in an environment of its own, and use them; say how large they are.

python benchmarks/installation.py dist
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

USE = """
import meltpoint as mp, numpy as np
rng = np.random.default_rng(0)
model = mp.RBM(rng.normal(size=(9, 4)), np.zeros(9), np.zeros(4))
x = rng.integers(0, 2, (9, 9))
report = mp.evaluate(model, x, x, steps=50)
assert report.exact is not None and report.to_html()
print("meltpoint", mp.__version__, "evaluates, and its digits have shape", mp.datasets.load("digits").train.shape)
try:
    report.plot()
except mp.InputError as problem:
    assert "meltpoint[plot]" in str(problem)
else:
    raise SystemExit("a plain installation has Matplotlib")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=["wheel", "sdist"])
    arguments = parser.parse_args()
    folder = arguments.folder
    files = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    if len(files) != 2:
        sys.exit(f"{folder} has {len(files)} distributions; a wheel and an sdist were expected")
    names = zipfile.ZipFile(files[0]).namelist()
    for needed in ("meltpoint/py.typed", "meltpoint/data/digits.npz"):
        if needed not in names:
            sys.exit(f"{files[0].name} lacks {needed}")
    for file in files if arguments.only is None else files[:1] if arguments.only == "wheel" else files[1:]:
        with tempfile.TemporaryDirectory() as place:
            python = Path(place) / "bin" / "python"
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
            pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
            subprocess.run([*pip, "--disable-pip-version-check", "--no-compile", file.resolve()], check=True)
            sizes = f"{file.stat().st_size / 1e6:.1f} MB, installed {_megabytes(Path(place)):.0f} MB"
            print(f"{file.name}: {sizes} without bytecode")
            subprocess.run([python, "-c", USE], check=True, cwd=place)
            subprocess.run([python, "-m", "meltpoint", "--version"], check=True, cwd=place)


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    main()

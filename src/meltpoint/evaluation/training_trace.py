"""The trace of a training while it runs: its models and their evaluations are kept in OUT.trace beside OUT.npz."""

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.data.dataset import stochastic
from meltpoint.errors import InputError, Progress
from meltpoint.evaluation.trace import Tracer, WatchPoint, in_natural_order, load_checkpoint
from meltpoint.fingerprint import fingerprint
from meltpoint.formats.atomic import atomic_write, make_folder, remove_abandoned
from meltpoint.formats.models import read_note, save
from meltpoint.formats.source import open_regular
from meltpoint.results.trace import Trace
from meltpoint.training.monitor import Epoch
from meltpoint.training.recipe import Recipe
from meltpoint.training.settings import SEED

_TRAINING = "training.txt"
"""A file in the folder: a text that no other training has, so that the same training may use the folder again."""

_LAST = "the last of its stage"


class TrainingTrace:
    """Saves and evaluates models of a training, on examples from whose grey values bits are drawn once."""

    def __init__(
        self,
        out: Path,
        recipe: Recipe,
        train: NDArray[Any],
        validation: NDArray[Any],
        progress: Progress,
        watch: WatchPoint,
    ) -> None:
        """Take in what an interrupted training has left."""
        if not len(validation):
            raise InputError(
                found="--trace and no validation examples",
                expected="examples that are held out of the training",
                remedy="leave out --validation 0",
            )
        self.folder = out.with_suffix(".trace")
        text = f"{recipe}{fingerprint({'train': train, 'validation': validation})}\n".encode()
        remove_abandoned(self.folder)
        continued = out.with_suffix(".checkpoint.npz").exists() or _holds(self.folder / _TRAINING, text)
        if self.folder.exists() and not continued and any(self.folder.iterdir()):
            raise InputError(
                found=f"{self.folder}, the trace of another training",
                expected="a new folder",
                remedy="remove it, or choose another --out",
            )
        make_folder(self.folder)
        with atomic_write(self.folder / _TRAINING, follow_links=False) as file:
            file.write(text)
        seed = recipe.options.get("seed", SEED)
        if recipe.takes_rates:
            validation, train = (_bits(each, seed, k) for k, each in enumerate((validation, train)))
        runs = self.folder / "runs"
        self._tracer = Tracer(validation, train, runs, seed=seed, progress=progress, watch=watch)
        for file in in_natural_order(map(str, self.folder.glob("*.npz"))):
            self._tracer.evaluate(Path(file).stem, load_checkpoint(file), last=read_note(file) == _LAST)

    def add(self, epoch: Epoch) -> None:
        """Keep and evaluate the model of an epoch that has one."""
        name = f"{epoch.stage.replace(' ', '-')}-{epoch.number}"
        if epoch.model is None or any(point.name == name for point in self._tracer.points):
            return
        last = epoch.number == epoch.of
        # What is carried on from one model to the next ends there, also when it is read again.
        save(epoch.model, self.folder / f"{name}.npz", note=_LAST if last else "")
        self._tracer.evaluate(name, epoch.model, last)

    def write(self) -> Trace | None:
        """The trace so far, also as trace.json and trace.png in the folder; None without a point."""
        from meltpoint.results.figures import save_figure

        if not self._tracer.points:
            return None
        found = self._tracer.trace()
        with atomic_write(self.folder / "trace.json", follow_links=False) as file:
            file.write(json.dumps(found.to_dict(), indent=2, allow_nan=False).encode() + b"\n")
        save_figure(found.plot(), self.folder / "trace.png")
        return found


def _holds(path: Path, text: bytes) -> bool:
    """Whether a file has exactly this content."""
    try:
        with open_regular(path, follow_links=False) as file:
            return file.read(len(text) + 1) == text
    except OSError:
        return False


def _bits(examples: NDArray[Any], seed: int, stream: int) -> NDArray[Any]:
    """Zeros and ones: as they are, or one draw from grey values."""
    if ((examples == 0) | (examples == 1)).all():
        return examples
    return stochastic(examples, 1.0, seed, (9, 2 + stream))

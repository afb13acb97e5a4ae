"""What was decided about the stages of a run, kept with it: the size of each, its base, and which have grown.

A run takes a *look* at weights whenever a stage is finished, or an earlier one has grown. Looks are numbered from 0 on;
a stage has the number of the look that it began with, and a folder of this number.
"""

import itertools
from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np

from meltpoint.errors import InputError
from meltpoint.runs.chunks import ChunkLayout
from meltpoint.runs.contents import decision_name, growth_name, stage_name
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.store import Store
from meltpoint.stages.stage import Size, Stage, check_counts, grow_stage, stage_from_arrays

_NEW = -1  # in place of the number of the stage that grows
_GROWTH_LAYOUT: ChunkLayout = {
    "ais_chains": ((), "i"),
    "examples": (("example", None), "uif"),
    "positions": (("example",), "i"),
}


@dataclass(frozen=True)
class Decision:
    """The size of a stage and the name of its base; `grows` is the number of the stage that grows to it, if one does.

    `base` is empty in runs that were written before there was more than one: it is that of the pilot's choice.
    """

    size: Size
    base: str = ""
    grows: int | None = None


def keep_decision(store: Store, part: int, look: int, decision: Decision) -> None:
    """Write down a decision."""
    arrays = {
        "size": np.array(astuple(decision.size), np.int64),
        "base": np.array(decision.base),
        "grows": np.array(_NEW if decision.grows is None else decision.grows, np.int64),
    }
    store.write(decision_name(part, look), arrays)


def recall_decision(store: Store, part: int, look: int) -> Decision | None:
    """The decision that was kept, None if there is none."""
    kept = store.read(decision_name(part, look))
    if kept is None:
        return None
    size, base, grows = kept.get("size"), kept.get("base"), kept.get("grows")
    if size is None or size.shape != (4,) or size.dtype.kind not in "iu" or not (size > 0).all():
        raise _damaged(part, look)
    if base is None or grows is None:  # as it was written before stages could grow
        return Decision(Size(*size.tolist()))
    if base.shape or base.dtype.kind != "U" or grows.shape or grows.dtype.kind not in "iu":
        raise _damaged(part, look)
    return Decision(Size(*size.tolist()), str(base), None if grows == _NEW else int(grows))


def growth_to_arrays(stage: Stage) -> Arrays:
    """What a stage has grown by: its number of chains, and the examples that were added."""
    before, _ = stage.earlier[-1]
    return {
        "ais_chains": np.array(stage.ais_chains),
        "examples": stage.examples[before:],
        "positions": stage.positions[before:],
    }


def read_stages(store: Store, part: int) -> Iterator[Stage]:
    """The stages of a part that a store has, in the order of looks: one that grows comes again, with what was added."""
    stages: dict[int, Stage] = {}
    for look in itertools.count():
        decision = recall_decision(store, part, look)
        if decision is None or decision.grows is None:
            arrays = store.read(stage_name(part, look))
            if arrays is None:
                return
            stages[look] = stage_from_arrays(arrays)
            yield stages[look]
        else:
            stage = stages.get(decision.grows)
            arrays = store.read(growth_name(part, decision.grows, look), _GROWTH_LAYOUT)
            if stage is None or arrays is None:
                return
            check_counts(
                stage.chains, int(arrays["ais_chains"]), len(stage.examples) + len(arrays["examples"])
            )
            grown = grow_stage(
                stage, int(arrays["ais_chains"]), arrays["examples"], arrays["positions"], look
            )
            if grown.ais_chains < stage.ais_chains:
                raise _damaged(part, look)
            stages[decision.grows] = grown
            yield grown


def _damaged(part: int, look: int) -> InputError:
    return InputError(
        found=f"the chunk {decision_name(part, look)} of the run with other numbers than were written",
        expected="the size of a stage",
        remedy="restore the run's folder from a copy, or begin the run anew in another folder",
    )

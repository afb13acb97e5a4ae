"""What a run's folder contains: the names of all its files and chunks.

specification.json                  what the run computes
report.json                         the report, when the run is finished
lock                                held by the process that writes
log_f.npz                           log f of the test set; log_f-0001024.npz: of the examples from number 1,024 on
exact.npz                           the exact log Z, where it was computed
conventions.npz                     whether the data fit another reading of the parameters better
names.npz                           the names of model and data
samples.npz                         samples of the model to look at; samples/…-0000000.npz: chains that they end
base-NAME.npz, schedule-NAME.npz    every base that was tried, and the friction from it
base-NAME/…-0000000.npz             chains from number 0 on that the rates of a base were made from
pilot-NAME/…-0000000.npz            chains from number 0 on of the pilot from a base
pilot-NAME/steps.npz                steps of that pilot, where a budget chose them
part-0/decision-0.npz               size and base of a stage, or which stage grows, chosen at look 0
part-0/spent.npz                    seconds of the budget that were spent
part-0/turn.npz                     the base that stage 1 starts from, where another one found more of log Z
part-0/stage-0/stage.npz            everything that the stage's weights depend on
part-0/stage-0/growth-2.npz         what the stage has grown by at look 2
part-0/stage-0/ais-0000000.npz      log weights of the AIS chains from number 0 on
part-0/stage-0/raise-0000000.npz    log weights of the RAISE examples from number 0 on
part-0/stage-0/evidence.npz         what other starts found
part-0/stage-0/evidence/…-0000000.npz    chains from number 0 on of other starts

The arrays of a chunk are listed in the `ChunkLayout` of the module that writes it. A chunk's name here is its path in
the folder without `.npz`; … is what the module that runs the chains calls them.
"""

SPECIFICATION, REPORT, LOCK = "specification.json", "report.json", "lock"
"""Names of the files that are no chunks."""

LOG_F, EXACT, CONVENTIONS, NAMES, SAMPLES = "log_f", "exact", "conventions", "names", "samples"
"""Names of the chunks that all parts and stages share, besides those of bases and schedules."""


def log_f_part_name(first: int) -> str:
    """Name of the chunk with log f of a part of the test set, from this example on.

    >>> log_f_part_name(1024)
    'log_f-0001024'
    """
    return f"{LOG_F}-{first:07d}"


def base_name(base: str) -> str:
    """Name of the chunk with the biases of a base."""
    return f"base-{base}"


def schedule_name(base: str) -> str:
    """Name of the chunk with the friction from a base to the model."""
    return f"schedule-{base}"


def pilot_folder(base: str) -> str:
    """The folder of the pilot's chunks from a base, within the run's folder."""
    return f"pilot-{base}"


def pilot_steps_name(base: str) -> str:
    """Name of the chunk with the steps of the pilot from a base."""
    return f"{pilot_folder(base)}/steps"


def chains_name(chains: str, first: int) -> str:
    """Name, in the folder of what they are for, of the chunk with chains of that name from this number on.

    >>> chains_name("up", 32)
    'up-0000032'
    """
    return f"{chains}-{first:07d}"


def decision_name(part: int, look: int) -> str:
    """Name of the chunk with what was decided before a look at the weights."""
    return f"part-{part}/decision-{look}"


def spent_name(part: int) -> str:
    """Name of the chunk with the seconds that a part has spent."""
    return f"part-{part}/spent"


def turn_name(part: int) -> str:
    """Name of the chunk with the second base of a part."""
    return f"part-{part}/turn"


def stage_folder(part: int, index: int = 0) -> str:
    """The folder of a stage's chunks, within the run's folder.

    >>> stage_folder(0, 2)
    'part-0/stage-2'
    """
    return f"part-{part}/stage-{index}"


def stage_name(part: int, index: int) -> str:
    """Name of the chunk with everything that a stage's weights depend on."""
    return f"{stage_folder(part, index)}/stage"


def growth_name(part: int, index: int, look: int) -> str:
    """Name of the chunk with what a stage has grown by at a look."""
    return f"{stage_folder(part, index)}/growth-{look}"


def task_name(estimator: str, first: int) -> str:
    """Name, in the stage's folder, of the chunk with log weights of an estimator from this chain or example on.

    >>> task_name("raise", 10)
    'raise-0000010'
    """
    return f"{estimator}-{first:07d}"


def evidence_name(part: int, index: int) -> str:
    """Name of the chunk with what other starts found for a stage."""
    return f"{stage_folder(part, index)}/evidence"

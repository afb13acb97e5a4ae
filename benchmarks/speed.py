"""Throughput: each case in turn with its yardstick, and the first case in turn with the competitors."""

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import competitors
from bound import DenseBound, reference_rate
from cases import Case, Timing
from competitors import Answer, Competitor
from effort import Effort
from table import Row, Section, compared, quotients

Say = Callable[[str], None]
_LARGE = 500_000  # weights
_SPINNING = 0.1  # seconds: threads of a BLAS wait busily for a while after a product, on a core that we need


@dataclass
class Track:
    """One case, its measurements and those of its yardstick, one of each per round."""

    case: Case
    chains: int
    steps: int
    timings: list[Timing] = field(default_factory=list)
    yardstick: list[float] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        """Chain-steps per second."""
        return [timing.rate for timing in self.timings]

    def run(self, threads: int) -> Timing:
        """Measure the case once."""
        return self.case.run(self.chains, self.steps, threads)

    def row(self, asked: float | None) -> Row:
        """The case's line in the table."""
        return compared(
            self.case.name,
            self.rates,
            quotients(self.rates, self.yardstick),
            asked,
            yardstick=self.yardstick,
            chains=self.chains,
            steps=self.steps,
            setup=[timing.setup for timing in self.timings],
            values=[timing.value for timing in self.timings],
        )


def warmed_up(case: Case, steps: int, threads: int, effort: Effort) -> Track:
    """The case with its kernels loaded."""
    case.run(threads, 1, threads)
    return Track(case, effort.chains, steps)


def steps_of(case: Case, effort: Effort) -> int:
    """Steps of one call: fewer for large models, so that a round stays short."""
    if case.usual_steps:
        return effort.usual_steps
    pairs = sum(low * high for low, high in itertools.pairwise(case.model.layer_sizes))
    return effort.steps if pairs <= _LARGE else effort.large_steps


def speed_sections(
    cases: list[Case], tiny: Case, threads: int, effort: Effort, rivals: tuple[str, ...], say: Say
) -> list[Section]:
    """Cases against the dense bound, a tiny one against the NumPy reference, the first one against others."""
    say("warming up")
    tracks = [warmed_up(case, steps_of(case, effort), threads, effort) for case in cases]
    small = warmed_up(tiny, effort.tiny_steps, threads, effort)
    bounds = {case.model.layer_sizes: DenseBound(case.model, effort.bound_chains) for case in cases}
    theirs: dict[str, list[Answer]] = {key: [] for key in rivals}
    with ExitStack() as stack:
        others = _start(stack, tracks[0], threads, rivals, say)
        for k in range(effort.rounds):
            for track in tracks:
                say(f"round {k + 1} of {effort.rounds}: {track.case.name}")
                bound = bounds[track.case.model.layer_sizes]
                before = bound.rate(effort.bound_seconds)
                time.sleep(_SPINNING)
                track.timings.append(track.run(threads))
                track.yardstick.append((before + bound.rate(effort.bound_seconds)) / 2)
                if track is tracks[0]:
                    for key, other in others.items():
                        say(f"round {k + 1} of {effort.rounds}: {other.name}")
                        theirs[key].append(other.run())
            small.yardstick.append(reference_rate(tiny, effort.chains, effort.reference_seconds))
            small.timings.append(small.run(threads))
    setup = statistics.median(timing.setup for timing in tracks[0].timings)
    note = f"{effort.chains:,} chains, without the {setup:.2f} s that a call takes to set up."
    sections = [
        Section("Throughput", "chain-steps/s", "x bound", tuple(t.row(t.case.asked) for t in tracks), note),
        Section("Throughput of tiny models", "chain-steps/s", "x NumPy", (small.row(20.0),)),
    ]
    if others:
        ours = tracks[0]
        rows = tuple(
            _other(other.name, competitors.ASKED[key], theirs[key], ours) for key, other in others.items()
        )
        note = f"The same work as our first row: {ours.chains:,} chains, {ours.steps:,} steps, float32."
        sections.append(Section("Others, AIS", "chain-steps/s", "we are x", rows, note))
    return sections


def _start(
    stack: ExitStack, track: Track, threads: int, rivals: tuple[str, ...], say: Say
) -> dict[str, Competitor]:
    """The competitors, warmed up for the work of a track."""
    problem = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "problem.npz"
    competitors.write_problem(track.case, problem)
    started = {}
    for key in rivals:
        say(f"starting {key}")
        started[key] = stack.enter_context(Competitor(key, problem, track.chains, track.steps, threads))
    return started


def _other(name: str, asked: float | None, answers: list[Answer], ours: Track) -> Row:
    rates = [ours.chains * ours.steps / answer.seconds for answer in answers]
    log_z = [answer.log_z for answer in answers]
    return compared(name, rates, quotients(ours.rates, rates), asked, log_z=log_z)

"""What a comparison of models found: their reports, the differences, and an order as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from meltpoint.results.pair import About, Pair
from meltpoint.results.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Rank:
    """The best and the worst place that a model can have: the same where its place is known."""

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models on one test set, in nats per example. Print it, plot it, or call `to_dict()`.

    `reports` are those of every model by name, `pairs` the differences: of all pairs, or of each model to the
    `baseline`. All pairs share 1 - `confidence`. `order_known` says whether every pair's order is known, `trusted`
    whether all reports are to be trusted besides. After Ctrl-C it is `interrupted`, and `missing` names the models that
    were not evaluated.
    """

    reports: dict[str, Report]
    pairs: tuple[Pair, ...]
    test_examples: int
    confidence: float
    about: About
    baseline: str | None
    seconds: float
    missing: tuple[str, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.reports)}: {self.verdict})"

    def __str__(self) -> str:
        from meltpoint.results.comparison_views import render_comparison

        return render_comparison(self)

    def _repr_html_(self) -> str:
        from meltpoint.results.comparison_views import comparison_html

        return comparison_html(self)

    def plot(self) -> Figure:
        """A figure of each model's interval and of the differences; save it with savefig."""
        from meltpoint.results.comparison_views import plot_comparison

        return plot_comparison(self)

    def pair(self, first: str, second: str) -> Pair:
        """The pair of these names, in the order in which it was compared."""
        return next(pair for pair in self.pairs if {pair.first, pair.second} == {first, second})

    @property
    def above(self) -> set[tuple[str, str]]:
        """Which model is known to be better than which: (better, worse), with what follows from others."""
        return known_order(
            (better, pair.second if better == pair.first else pair.first)
            for pair in self.pairs
            if (better := pair.better(self.about)) is not None
        )

    @property
    def ranking(self) -> dict[str, Rank]:
        """The places that each model can have, best first."""
        order, count = self.above, len(self.reports)
        ranks = {
            name: Rank(
                1 + sum(worse == name for _, worse in order),
                count - sum(better == name for better, _ in order),
            )
            for name in self.reports
        }
        middle = {name: self.reports[name].optimistic.value for name in ranks}
        return dict(sorted(ranks.items(), key=lambda item: (item[1].best + item[1].worst, -middle[item[0]])))

    @property
    def order_known(self) -> bool:
        """Whether it is known of every pair which model is the better one."""
        order = self.above
        known = all({(p.first, p.second), (p.second, p.first)} & order for p in self.pairs)
        return bool(self.pairs) and known and not self.missing

    @property
    def untrusted(self) -> list[str]:
        """Names of models whose reports are not to be trusted; an exact value needs no trust."""
        return [
            name
            for name, report in self.reports.items()
            if not report.verdict.trusted and not (report.exact and report.log_f_exact)
        ]

    @property
    def trusted(self) -> bool:
        """Whether the order is known and nothing speaks against it: the command's exit code."""
        return self.order_known and not self.untrusted and not self.interrupted

    @property
    def verdict(self) -> str:
        """What is known of the order, in a sentence or two."""
        return " ".join([self._order_sentence(), *self._doubts()])

    def _order_sentence(self) -> str:
        if not self.pairs:
            return "Nothing to compare: fewer than two models were evaluated."
        if self.baseline is not None:
            return self._baseline_sentence()
        names = list(self.ranking)
        if self.order_known:
            return f"Order known: {' > '.join(names)}."
        order = self.above
        unknown = [
            f"{p.first} and {p.second}"
            for p in self.pairs
            if not {(p.first, p.second), (p.second, p.first)} & order
        ]
        shown = "; ".join(unknown[:3]) + (f" and {len(unknown) - 3} pairs more" if len(unknown) > 3 else "")
        what = "Order not known" if not order else "Order known in part"
        return f"{what}: these may be in either order: {shown}. A smaller gap or more steps can tell."

    def _baseline_sentence(self) -> str:
        groups: dict[str, list[str]] = {"better": [], "worse": [], "not told apart": []}
        for pair in self.pairs:
            better = pair.better(self.about)
            groups[
                "not told apart" if better is None else "better" if better == pair.first else "worse"
            ].append(pair.first)
        said = [f"{', '.join(names)} {what}" for what, names in groups.items() if names]
        return f"Against {self.baseline}: {'; '.join(said)}."

    def _doubts(self) -> list[str]:
        doubts = []
        if self.untrusted:
            doubts.append(
                f"Not to be trusted: the report{'s' if len(self.untrusted) > 1 else ''} of "
                f"{', '.join(self.untrusted)}."
            )
        if self.interrupted:
            left = f": {', '.join(self.missing)} not evaluated" if self.missing else ""
            doubts.append(f"Interrupted{left}.")
        return doubts

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: JSON."""
        return {
            "test_examples": self.test_examples,
            "confidence": self.confidence,
            "about": self.about,
            "baseline": self.baseline,
            "ranking": [
                {"name": name, "best": rank.best, "worst": rank.worst} for name, rank in self.ranking.items()
            ],
            "order_known": self.order_known,
            "trusted": self.trusted,
            "untrusted": self.untrusted,
            "verdict": self.verdict,
            "pairs": [{**pair.to_dict(), "better": pair.better(self.about)} for pair in self.pairs],
            "models": [{"name": name, **report.to_dict()} for name, report in self.reports.items()],
            "missing": list(self.missing),
            "interrupted": self.interrupted,
            "seconds": self.seconds,
        }


def known_order(better_than: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Pairs (better, worse) with all that follow from them; what contradicts itself is left out.

    >>> sorted(known_order([("a", "b"), ("b", "c")]))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    order = set(better_than)
    names: Sequence[str] = sorted({name for pair in order for name in pair})
    for middle in names:
        order |= {
            (better, worse)
            for better in names
            for worse in names
            if (better, middle) in order and (middle, worse) in order
        }
    return {(better, worse) for better, worse in order if (worse, better) not in order}

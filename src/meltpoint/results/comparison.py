"""The result of comparing models: their reports, the differences, and the known part of their order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from string import ascii_uppercase
from typing import Any

from meltpoint.errors import shortened
from meltpoint.progress import duration
from meltpoint.records import plain, plain_fields
from meltpoint.results.charts import Chart, Role, Row, rows_chart
from meltpoint.results.document import Document, Fact, Readable, Section, Table
from meltpoint.results.pair import About, Pair
from meltpoint.results.report import Report
from meltpoint.results.words import bound, count, interval, listed, percent
from meltpoint.statistics.estimate import Estimate, decimals

_NAME = 12


@dataclass(frozen=True)
class Rank:
    """The best and the worst possible place of a model, equal where its place is known."""

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Readable):
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

    def document(self) -> Document:
        sure = percent(self.confidence)
        together = f" for {len(self.pairs):,} pairs together" if len(self.pairs) > 1 else ""
        doubts = {name: self.reports[name].doubts for name in self.untrusted}
        section = Section.of(
            "comparison",
            "The comparison",
            *self._charts(),
            self._models_table(),
            replace(self._pairs_table(3), narrow=self._pairs_table(2)) if self.pairs else None,
            Fact(
                "differences",
                f"first less second, with {sure} confidence{together}, if no start missed a mode. On this test set "
                "there is no sampling error; 'population' is about all examples that it was drawn from. The order is "
                f"that on the {self.about}.",
            ),
            *(Fact("guaranteed", self._guaranteed(pair)) for pair in self.pairs),
            *(Fact(self._letters[name], f"{name}: {' '.join(said)}") for name, said in doubts.items()),
            Fact("run", f"{duration(self.seconds)} in all"),
        )
        return Document(
            f"{count(len(self.reports), 'model')} on {count(self.test_examples, 'test example')}, nats per example",
            self.trusted,
            self.verdict,
            [section],
            interrupted=self.interrupted,
            undecided=not self.untrusted,
        )

    @cached_property
    def _letters(self) -> dict[str, str]:
        """A short name for each model, best first: A, B, …, Z, AA, …. Differences are named by them."""
        lengths = range(1, 2 + len(self.reports) // 26)
        short = ("".join(each) for length in lengths for each in product(ascii_uppercase, repeat=length))
        return dict(zip(self.ranking, short, strict=False))

    def _models_table(self) -> Table:
        rows = []
        for name, rank in self.ranking.items():
            report = self.reports[name]
            digits = max(2, min(3, report.gap.digits))
            sides = (_estimate(each, digits) for each in (report.conservative, report.optimistic))
            place = str(rank) if self.baseline is None else ""
            rows.append([self._letters[name], name, place, *sides, interval(report.between)])
        head = ("", "model", "rank", "conservative", "optimistic", "between")
        return Table(head, rows, "Models, best first", words=(0, 1, 2))

    def _pairs_table(self, most_digits: int) -> Table:
        letters, rows = self._letters, []
        for pair in self.pairs:
            digits = min(most_digits, pair.optimistic.digits if pair.exact is None else 3)
            ais = _estimate(pair.optimistic, digits)
            rows.append(
                [
                    f"{letters[pair.first]} − {letters[pair.second]}",
                    ais if pair.exact is None else f"{decimals(pair.exact, digits)} exact",
                    _estimate(pair.conservative, digits) if pair.conservative else "",
                    interval(pair.between, digits),
                    interval(pair.population, digits),
                    letters.get(pair.better(self.about) or "", "?"),
                ]
            )
        head = ("pair", "AIS", "RAISE", "this test set", "population", "better")
        return Table(head, rows, "Differences", words=(0, 5))

    def _guaranteed(self, pair: Pair) -> str:
        first, second = self._letters[pair.first], self._letters[pair.second]
        said = []
        if pair.at_most is not None:
            said.append(f"{first} − {second} <= {bound(pair.at_most, up=True)}")
        if pair.at_least is not None:
            said.append(f"{first} − {second} >= {bound(pair.at_least, up=False)}")
        said += [
            f"the annealing model of {better} gives its examples {bound(limit, up=False)} nats more than {worse}"
            for limit, better, worse in zip(pair.certified, (first, second), (second, first), strict=True)
            if limit is not None and limit > 0
        ]
        if pair.exact is not None or not said:
            return ""
        return f"{'; '.join(said)}, with {percent(self.confidence)} confidence, whatever was missed"

    def _charts(self) -> list[Chart]:
        """Each model's interval with both estimates, and the intervals of the differences beside zero."""
        models = []
        for name in self.ranking:
            report = self.reports[name]
            sides: dict[Role, Estimate] = {
                "conservative": report.conservative,
                "optimistic": report.optimistic,
            }
            models.append(Row(name, sides, {"thick": report.between}))
        pairs = [
            Row(
                f"{shortened(pair.first, _NAME)} − {shortened(pair.second, _NAME)}",
                {"exact": replace(pair.optimistic, stderr=math.nan)},
                {"solid": pair.population, "thick": pair.between},
            )
            for pair in self.pairs
        ]
        return [
            rows_chart(
                "models",
                "Models",
                "mean log-probability, nats",
                models,
                "Bars: two standard errors.",
                {"conservative": "RAISE, conservative", "optimistic": "AIS, optimistic", "thick": "between"},
            ),
            rows_chart(
                "differences",
                "Differences",
                f"difference, nats ({percent(self.confidence)} for all)",
                pairs,
                "Where an interval does not reach zero, the order is known.",
                {"thick": "on this test set", "solid": "on the population"},
                zero=True,
            ),
        ][: 2 if pairs else 1]

    def pair(self, first: str, second: str) -> Pair:
        """The pair of these names, in the order in which it was compared."""
        return next(pair for pair in self.pairs if {pair.first, pair.second} == {first, second})

    @cached_property
    def above(self) -> set[tuple[str, str]]:
        """Pairs (better, worse) whose order is known, directly or through other pairs."""
        return known_order(
            (better, pair.second if better == pair.first else pair.first)
            for pair in self.pairs
            if (better := pair.better(self.about)) is not None
        )

    @cached_property
    def ranking(self) -> dict[str, Rank]:
        """The possible places of each model, best first."""
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
        """Whether the better model of every pair is known."""
        return bool(self.pairs) and not self._unordered and not self.missing

    @property
    def _unordered(self) -> list[Pair]:
        order = self.above
        return [p for p in self.pairs if not {(p.first, p.second), (p.second, p.first)} & order]

    @property
    def untrusted(self) -> list[str]:
        """Names of models whose reports are not to be trusted; an exact value needs no trust, except in the reading."""
        return [
            name
            for name, report in self.reports.items()
            if report.misreading or not (report.trusted or report.known)
        ]

    @property
    def trusted(self) -> bool:
        """Whether the order is known and nothing speaks against it: the command's exit code."""
        return self.order_known and not self.untrusted and not self.interrupted

    @property
    def verdict(self) -> str:
        """The known part of the order, in a sentence or two."""
        said = [self._order_sentence()]
        if self.untrusted:
            reports = "report" if len(self.untrusted) == 1 else "reports"
            said.append(f"Not to be trusted: the {reports} of {', '.join(self.untrusted)}.")
        if self.interrupted:
            left = f": {', '.join(self.missing)} not evaluated" if self.missing else ""
            said.append(f"Interrupted{left}.")
        return " ".join(said)

    def _order_sentence(self) -> str:
        if not self.pairs:
            return "Nothing to compare: fewer than two models were evaluated."
        if self.baseline is not None:
            groups: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
            for pair in self.pairs:
                group = {None: "undecided", pair.first: "better"}.get(pair.better(self.about), "worse")
                groups[group].append(pair.first)
            said = [f"{', '.join(names)} {what}" for what, names in groups.items() if names]
            return f"Against {self.baseline}: {'; '.join(said)}."
        if self.order_known:
            return f"Order known: {' > '.join(self.ranking)}."
        unknown = [f"{pair.first} and {pair.second}" for pair in self._unordered]
        what = "Order unknown" if not self.above else "Order partly known"
        shown = listed(unknown, 3, "; ", "pairs more")
        return f"{what}: these may be in either order: {shown}. A smaller gap or more steps can tell."

    def to_dict(self) -> dict[str, Any]:
        return {
            **plain_fields(self, without=("reports", "pairs")),
            "ranking": [{"name": name, **plain(rank)} for name, rank in self.ranking.items()],
            "order_known": self.order_known,
            "trusted": self.trusted,
            "untrusted": self.untrusted,
            "verdict": self.verdict,
            "pairs": [{**pair.to_dict(), "better": pair.better(self.about)} for pair in self.pairs],
            "models": [{"name": name, **report.to_dict()} for name, report in self.reports.items()],
        }


def known_order(better_than: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Pairs (better, worse) with all that follow from them; what contradicts itself is left out.

    >>> sorted(known_order([("a", "b"), ("b", "c")]))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    order = set(better_than)
    names = sorted({name for pair in order for name in pair})
    for middle, better, worse in product(names, repeat=3):
        if (better, middle) in order and (middle, worse) in order:
            order.add((better, worse))
    return {(better, worse) for better, worse in order if (worse, better) not in order}


def _estimate(estimate: Estimate, digits: int) -> str:
    """Value and error, short enough for a column."""
    value = estimate.value_text(digits)
    if not math.isfinite(estimate.stderr):
        return f"{value} ± ?"
    return f"{value} {estimate.error_text(digits)}" if estimate.stderr > 0 else f"{value} ± 0"

"""A comparison as text of at most 79 columns, as HTML for notebooks, and as a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from meltpoint.errors import shortened
from meltpoint.results.comparison import Comparison
from meltpoint.results.duration import duration
from meltpoint.results.figures import CONSERVATIVE, OPTIMISTIC, styled_figure
from meltpoint.results.pair import Pair
from meltpoint.results.report import Report
from meltpoint.results.text import count, html_table, interval_text, text_table, wrapped
from meltpoint.statistics.estimate import Estimate, decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 79
_LABEL = 14
_NAME, _SHORTEST_NAME = 24, 10
_MODEL_HEAD = ("", "model", "rank", "conservative", "optimistic", "between")
_LEFT = ("", "model", "rank", "pair", "better")  # heads of columns of words
_PAIR_HEAD = ("pair", "AIS", "RAISE", "this test set", "population", "better")


def render_comparison(comparison: Comparison) -> str:
    """The comparison as lines of text: the models, the differences, the order, and what it is about."""
    letters = _letters(comparison)
    title = (
        f"{count(len(comparison.reports), 'model')} on "
        f"{count(comparison.test_examples, 'test example')}, nats per example"
    )
    models = text_table(_MODEL_HEAD, _model_rows(comparison, letters, _NAME), _LEFT)
    excess = max(map(len, models)) - _WIDTH
    if excess > 0:
        models = text_table(
            _MODEL_HEAD, _model_rows(comparison, letters, max(_SHORTEST_NAME, _NAME - excess)), _LEFT
        )
    lines = [title, "─" * _WIDTH, *models, ""]
    if comparison.pairs:
        tables = (
            text_table(
                _PAIR_HEAD, [_pair_row(pair, comparison, letters, digits) for pair in comparison.pairs], _LEFT
            )
            for digits in (3, 2)
        )
        lines += [*min(tables, key=lambda table: max(map(len, table)) > _WIDTH), ""]
    lines += [*textwrap.wrap(comparison.verdict, _WIDTH), ""]
    for label, text in _details(comparison, letters):
        lines += wrapped(text, _WIDTH, label, _LABEL)
    return "\n".join(lines)


def comparison_html(comparison: Comparison) -> str:
    """The comparison as two HTML tables; names that come from files are escaped."""
    letters = _letters(comparison)
    rows = [_pair_row(pair, comparison, letters) for pair in comparison.pairs]
    parts = [
        f"<p><strong>{escape(comparison.verdict)}</strong></p>",
        html_table(_MODEL_HEAD, _model_rows(comparison, letters)),
        html_table(_PAIR_HEAD, rows) if rows else "",
        *(f"<p>{escape(label)}: {escape(text)}</p>" for label, text in _details(comparison, letters)),
    ]
    return "\n".join(part for part in parts if part)


def plot_comparison(comparison: Comparison) -> Figure:
    """Left: each model's interval with both estimates. Right: intervals of the differences, and zero."""
    names = list(comparison.ranking)
    pairs = comparison.pairs
    height = 1.5 + 0.32 * max(len(names), len(pairs), 2)
    with styled_figure(8.0, height) as figure:
        left, right = figure.subplots(1, 2)
        _plot_models(left, [(name, comparison.reports[name]) for name in names])
        _plot_pairs(right, comparison)
        figure.legend(loc="outside lower center", ncols=5, fontsize=7)
    return figure


def _plot_models(axes: Axes, reports: Sequence[tuple[str, Report]]) -> None:
    rows = np.arange(len(reports))[::-1]
    ends = np.array([report.between for _, report in reports])
    shown = np.isfinite(ends).all(axis=1)
    axes.hlines(
        rows[shown], ends[shown, 0], ends[shown, 1], color="#999999", lw=5, label="each model, between"
    )
    for label, style, values in (
        ("RAISE, conservative", CONSERVATIVE, [report.conservative.value for _, report in reports]),
        ("AIS, optimistic", OPTIMISTIC, [report.optimistic.value for _, report in reports]),
    ):
        axes.plot(values, rows, color=style["color"], marker=style["marker"], ls="", label=label)
    axes.set_yticks(rows, [shortened(name, _NAME) for name, _ in reports])
    axes.set_ylim(-0.6, len(reports) + 0.1)
    axes.set_xlabel("mean log-probability, nats")
    axes.set_title("Models")


def _plot_pairs(axes: Axes, comparison: Comparison) -> None:
    pairs = comparison.pairs
    rows = np.arange(len(pairs))[::-1]
    for k, pair in zip(rows, pairs, strict=True):
        low, high = pair.between
        wide_low, wide_high = pair.population
        if math.isfinite(wide_low) and math.isfinite(wide_high):
            axes.hlines(
                k,
                wide_low,
                wide_high,
                color="#999999",
                lw=1,
                label="difference on the population" if k == 0 else "",
            )
        if math.isfinite(low) and math.isfinite(high):
            color = OPTIMISTIC["color"] if pair.better(comparison.about) is None else CONSERVATIVE["color"]
            axes.hlines(k, low, high, color=color, lw=4, label="… on this test set" if k == 0 else "")
        axes.plot(pair.optimistic.value, k, color="#222222", marker="|", ms=9, ls="")
    axes.axvline(0.0, color="#222222", lw=0.8, ls=":")
    axes.set_yticks(
        rows, [f"{shortened(p.first, 18)}\n− {shortened(p.second, 18)}" for p in pairs], fontsize=7
    )
    axes.set_ylim(-0.6, max(len(pairs), 1) + 0.1)
    axes.set_xlabel(f"difference, nats ({100 * comparison.confidence:.12g}% for all)")
    axes.set_title("Differences")


def _letters(comparison: Comparison) -> dict[str, str]:
    """A short name for each model, best first: A, B, …, Z, AA, ….

    Differences are named by them.
    """
    short = []
    for number in range(len(comparison.reports)):
        letters, rest = "", number
        while rest >= 0:
            letters, rest = chr(65 + rest % 26) + letters, rest // 26 - 1
        short.append(letters)
    return dict(zip(comparison.ranking, short, strict=True))


def _model_rows(
    comparison: Comparison, letters: dict[str, str], longest: int | None = None
) -> list[list[str]]:
    rows = []
    for name, rank in comparison.ranking.items():
        report = comparison.reports[name]
        digits = max(2, min(3, report.gap.digits))
        rows.append(
            [
                letters[name],
                name if longest is None else shortened(name, longest),
                str(rank) if comparison.baseline is None else "",
                *(_estimate(estimate, digits) for estimate in (report.conservative, report.optimistic)),
                interval_text(report.between),
            ]
        )
    return rows


def _pair_row(pair: Pair, comparison: Comparison, letters: dict[str, str], most_digits: int = 3) -> list[str]:
    better = pair.better(comparison.about)
    digits = min(most_digits, pair.optimistic.digits if pair.exact is None else 3)
    return [
        f"{letters[pair.first]} − {letters[pair.second]}",
        _estimate(pair.optimistic, digits) if pair.exact is None else f"{decimals(pair.exact, digits)} exact",
        _estimate(pair.conservative, digits) if pair.conservative else "",
        interval_text(pair.between, digits),
        interval_text(pair.population, digits),
        letters[better] if better else "?",
    ]


def _details(comparison: Comparison, letters: dict[str, str]) -> list[tuple[str, str]]:
    sure = f"{100 * comparison.confidence:.12g}%"
    together = f" for {len(comparison.pairs):,} pairs together" if len(comparison.pairs) > 1 else ""
    details = [
        (
            "differences",
            f"first less second, with {sure} confidence{together}, if no start missed a mode. On this test set "
            "there is no sampling error; 'population' is about all examples that it was drawn from. The order is "
            f"that on the {comparison.about}.",
        )
    ]
    for pair in comparison.pairs:
        details += _guaranteed(pair, letters, sure)
    details += [
        (letters[name], f"{name}: {report.verdict}")
        for name, report in comparison.reports.items()
        if name in comparison.untrusted
    ]
    details.append(("run", f"{duration(comparison.seconds)} in all"))
    return details


def _guaranteed(pair: Pair, letters: dict[str, str], sure: str) -> list[tuple[str, str]]:
    """What holds of a pair whatever was missed."""
    first, second = letters[pair.first], letters[pair.second]
    said = []
    if pair.exact is None:
        if pair.at_most is not None:
            said.append(f"{first} − {second} <= {decimals(math.ceil(100 * pair.at_most) / 100, 2)}")
        if pair.at_least is not None:
            said.append(f"{first} − {second} >= {decimals(math.floor(100 * pair.at_least) / 100, 2)}")
        for limit, better, worse in zip(pair.certified, (first, second), (second, first), strict=True):
            if limit is not None and limit > 0:
                more = decimals(math.floor(100 * limit) / 100, 2)
                said.append(
                    f"the annealing model of {better} gives its examples {more} nats more than {worse}"
                )
    return [("guaranteed", f"{'; '.join(said)}, with {sure} confidence, whatever was missed")] if said else []


def _estimate(estimate: Estimate, digits: int) -> str:
    """Value and error in as many characters as a column has."""
    value = estimate.value_text(digits)
    if not math.isfinite(estimate.stderr):
        return f"{value} ± ?"
    return f"{value} {estimate.error_text(digits)}" if estimate.stderr > 0 else f"{value} ± 0"

"""Draw the paper's two schematics anew: python docs/figures/schematics.py

raise-dbm: RAISE for a DBM, whose hidden units must be heated before the example can be melted.
unroll: RAISE for a DBN, its top RBM unrolled into a deep belief net.
"""

import itertools
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HERE = Path(__file__).parent
MODEL = {"color": "#2c8a4b", "linestyle": "-"}
PROPOSAL = {"color": "#0b6fa4", "linestyle": "--"}
GIVEN, HIDDEN = "#d9d9d9", "white"
STYLE = {"font.size": 9, "figure.constrained_layout.use": True, "mathtext.fontset": "dejavusans"}


def box(axes: Axes, x: float, y: float, text: str, width: float, height: float, fill: str) -> None:
    """A layer of units."""
    shape = FancyBboxPatch(
        (x - width / 2, y - height / 2),
        width,
        height,
        boxstyle="round,pad=0.02",
        fc=fill,
        ec="#222222",
        lw=0.9,
    )
    axes.add_patch(shape)
    axes.text(x, y, text, ha="center", va="center")


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], style: dict, bend: float = 0.0
) -> None:
    """A draw of the generative model, or of the proposal."""
    patch = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=10, lw=1.3, connectionstyle=f"arc3,rad={bend}", **style
    )
    axes.add_patch(patch)


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure without axes, in inches."""
    figure = Figure(figsize=(width, height))
    axes = figure.subplots()
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure, axes


def legend(axes: Axes, **where: object) -> None:
    handles = [Line2D([], [], lw=1.3, **MODEL), Line2D([], [], lw=1.3, **PROPOSAL)]
    axes.legend(handles, ["annealing model", "proposal (RAISE)"], frameon=False, **where)


def raise_dbm() -> Figure:
    """Left of the middle all layers melt; right of it the hidden ones are heated, with v frozen."""
    figure, axes = canvas(8.8, 3.6)
    columns = [
        (0.6, "$p_0$", "0", "", False),
        (1.8, "$p_1$", "1", "", False),
        (3.8, "$p_{K-1}$", "K-1", "", False),
        (5.0, "$p_K$", "K", "", True),
        (6.2, "$p_{K-1}(h\\,|\\,v)$", "K-1", "'", True),
        (8.2, "$p_0(h\\,|\\,v)$", "0", "'", True),
    ]
    for x, distribution, index, prime, given in columns:
        axes.text(x, 3.25, distribution, ha="center")
        box(axes, x, 2.25, f"$h{prime}_{{2,{index}}}$", 0.78, 0.4, HIDDEN)
        box(axes, x, 1.65, f"$h{prime}_{{1,{index}}}$", 0.78, 0.4, HIDDEN)
        box(axes, x, 1.05, "$v$" if given else f"$v_{{{index}}}$", 0.78, 0.4, GIVEN if given else HIDDEN)
    for x in (2.8, 7.2):
        axes.text(x, 1.65, "…", ha="center", va="center", fontsize=14)
    for left, right in itertools.pairwise([0.6, 1.8, 2.8, 3.8, 5.0, 6.2, 7.2, 8.2]):
        arrow(axes, (left + 0.12, 2.7), (right - 0.12, 2.7), MODEL)
        arrow(axes, (right - 0.12, 0.6), (left + 0.12, 0.6), PROPOSAL)
    for x, above, below in [
        (2.8, "moves $T_k$ of all layers", "melt: $\\beta$ from 1 to 0"),
        (6.6, "the heating, reversed", "heat: $\\beta$ from 0 to 1, $v$ frozen"),
    ]:
        axes.text(x, 2.82, above, ha="center", color=MODEL["color"])
        axes.text(x, 0.48, below, ha="center", va="top", color=PROPOSAL["color"])
    legend(axes, loc="lower center", ncols=2, bbox_to_anchor=(0.5, -0.05))
    return figure


def unroll() -> Figure:
    """From the top of the unrolled RBM at beta 0 down to the visible units, and back up."""
    figure, axes = canvas(4.4, 4.9)
    x, width = 1.5, 1.5
    layers = [
        ("$h_1$ at $\\beta = 0$", 4.55, HIDDEN),
        ("$h_2$", 3.85, HIDDEN),
        ("$h_1$", 3.15, HIDDEN),
        ("…", 2.5, None),
        ("$h_2$", 1.85, HIDDEN),
        ("$h_1$ at $\\beta = 1$", 1.15, HIDDEN),
        ("$v$", 0.4, GIVEN),
    ]
    for text, y, fill in layers:
        if fill is None:
            axes.text(x, y, "⋮", ha="center", va="center", fontsize=13)
        else:
            box(axes, x, y, text, width, 0.34, fill)
    weights = ["$\\beta_1 W_2$", "$\\beta_1 W_2^\\top$", "", "", "$\\beta_K W_2^\\top$", "$W_1^\\top$"]
    for (_, upper, _), (_, lower, _), label in zip(layers[:-1], layers[1:], weights, strict=True):
        arrow(axes, (x - 0.35, upper - 0.21), (x - 0.35, lower + 0.21), MODEL)
        arrow(axes, (x + 0.35, lower + 0.21), (x + 0.35, upper - 0.21), PROPOSAL)
        axes.text(x - 0.5, (upper + lower) / 2, label, ha="right", va="center")
    for text, low, high in [
        ("the top RBM,\nunrolled: K moves", 1.15, 4.55),
        ("directed layer,\nrecognition", 0.4, 0.98),
    ]:
        axes.plot([2.5, 2.6, 2.6, 2.5], [low, low, high, high], color="#555555", lw=0.9)
        axes.text(2.7, (low + high) / 2, text, va="center")
    legend(axes, loc="upper right", bbox_to_anchor=(1.02, 1.02))
    return figure


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        for name, draw in {"raise-dbm": raise_dbm, "unroll": unroll}.items():
            draw().savefig(HERE / f"{name}.png", dpi=160)
            print(HERE / f"{name}.png")

"""`meltpoint paper`: the options of the program in `reproduce/`, which is in a checkout of the source."""

import sys
from pathlib import Path
from typing import Any

from meltpoint.cli.options import argument, option, takes
from meltpoint.cli.screen import echo, echo_err, progress_bar
from meltpoint.errors import InputError

_CHECKOUT = Path(__file__).resolve().parents[3]


@takes(
    argument("what", str, "WHAT", "table1, table2, figure NAME, all, or page."),
    argument("name", str, "[NAME]", "log-likelihood-rbms, cd1-500, cd1-20-dbr, omni-pcd-1000 or dbn.", None),
    option("profile", str, "quick (minutes), full or paper (hours).", default="full"),
    option("steps", int, "Linear steps of the tables.", shown="the profile's"),
    option("models", Path, "Folder of the trained models.", default=Path("zoo")),
    option(
        "parameters",
        Path,
        "mnistvh_CD25.mat, the paper's own parameters, for one more row.",
        shown="in MODELS",
    ),
    option("out", Path, "Folder for the results.", default=Path("results")),
    option("threads", int, "Threads.", shown="all cores"),
    option("docs", Path, "Folder that `page` writes paper.md into.", default=Path("docs")),
    option("only", str, "Compute only these models: NAME,NAME.", shown="all"),
    option("dry_run", bool, "List the cells that are missing.", default=False),
)
def paper(**chosen: Any) -> None:
    """Reproduce the paper's tables and figures from the trained models, in a checkout of meltpoint's source.

    Every finished cell is kept in the folder of results and not computed again. After Ctrl-C or a crash the
    same command continues where it was. Tables and figures are written to a folder of the profile's name below
    it; their paths go to stdout. `page` computes nothing: it writes the page of the documentation from what is
    there.
    """
    if (_CHECKOUT / "reproduce" / "command.py").is_file():
        sys.path.insert(0, str(_CHECKOUT))
    try:
        from reproduce.command import run
    except ModuleNotFoundError as problem:
        if problem.name not in ("reproduce", "reproduce.command"):
            raise
        raise InputError(
            found="no folder reproduce, which has the program",
            expected="a checkout of the source: the package has its options only",
            remedy="git clone https://github.com/meltpoint/meltpoint, and pip install -e . in it",
        ) from None
    run(**chosen, echo=echo, echo_err=echo_err, progress_bar=progress_bar)

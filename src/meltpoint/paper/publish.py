"""Tables and figures as files, made from the cells that are finished."""

from pathlib import Path

from meltpoint.files.atomic import atomic_write, make_folder
from meltpoint.paper.cells import Plan
from meltpoint.paper.curves import curves_csv, curves_json, curves_of
from meltpoint.paper.figures import draw
from meltpoint.paper.rows import table1_rows, table2_rows
from meltpoint.paper.store import Store
from meltpoint.paper.tables import as_json, comma_separated, latex, markdown
from meltpoint.report.figures import save_figure

TABLES = {"table1": table1_rows, "table2": table2_rows}


def publish_table(name: str, plan: Plan, store: Store, folder: Path) -> list[Path]:
    """Write a table as Markdown, LaTeX, CSV and JSON; gives the paths."""
    rows = TABLES[name](plan, store)
    texts = {
        ".md": markdown(rows),
        ".tex": latex(rows),
        ".csv": comma_separated(rows),
        ".json": as_json(rows),
    }
    return [write_text(folder / f"{name}{suffix}", text) for suffix, text in texts.items()]


def publish_figure(name: str, plan: Plan, store: Store, folder: Path) -> list[Path]:
    """Write a figure as PDF and PNG and its points as CSV and JSON; gives the paths."""
    curves = curves_of(name, plan, store)
    paths = [
        write_text(folder / f"{name}.csv", curves_csv(curves)),
        write_text(folder / f"{name}.json", curves_json(curves)),
    ]
    figure = draw(name, plan, store)
    for suffix in (".pdf", ".png"):
        paths.append(folder / f"{name}{suffix}")
        save_figure(figure, paths[-1])
    return paths


def write_text(path: Path, text: str) -> Path:
    """Write a text whole or not at all."""
    make_folder(path.parent)
    with atomic_write(path) as file:
        file.write(text.encode())
    return path

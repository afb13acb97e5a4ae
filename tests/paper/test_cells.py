"""What the tables and figures are made of."""

import pytest

from meltpoint.errors import InputError
from meltpoint.paper.cells import CURVES, Plan
from meltpoint.paper.profiles import PROFILES, profile_of
from meltpoint.paper.store import fingerprint
from meltpoint.paper.subjects import RBMS

FULL = Plan(PROFILES["full"], parameters=True)


def test_names_tell_cells_apart():
    cells = {cell for plan in (FULL, Plan(PROFILES["quick"], True)) for group in plan.all() for cell in group}
    assert len({cell.name for cell in cells}) == len(cells)


def test_table1_has_both_bases_and_the_long_rows():
    cells = FULL.table1()
    assert len(cells) == 2 + (6 + 1 + 1) * 2 * 2 + 7 + 1
    assert {cell.model for cell in cells if cell.steps == 100_000} == {"mnistvh_CD25"}
    assert [cell.model for cell in cells if cell.method == "exact"] == ["mnistCD1-20", "mnistPCD-20"]


def test_without_the_papers_parameters_a_row_is_missing():
    assert all(cell.model != "mnistvh_CD25" for group in Plan(FULL.profile, False).all() for cell in group)


def test_the_tables_are_run_with_what_the_paper_page_promises():
    for cell in FULL.table1() + FULL.table2():
        if cell.method == "ais":
            assert (cell.chains, cell.examples) == (1_000, None)
        if cell.method == "raise":
            assert (cell.chains, cell.examples) == (10, 100)
        if cell.method in ("ais", "raise"):
            assert cell.steps in (10_000, 100_000)
        assert (cell.seed, cell.test_examples) == (0, None)


@pytest.mark.parametrize("name", CURVES)
def test_the_last_point_of_a_curve_is_a_cell_of_a_table(name):
    tables = set(FULL.table1() + FULL.table2())
    last = [c for c in FULL.figure(name) if c.steps == 10_000 and c.method in ("ais", "raise")]
    assert last
    assert set(last) <= tables


def test_steps_cut_the_curves():
    profile = profile_of("full", 100)
    assert (profile.steps, profile.curve, profile.long_steps) == (100, (10, 30, 100), 1_000)
    assert profile_of("full", 10_000) is PROFILES["full"]


@pytest.mark.parametrize("arguments", [("slow",), ("full", 0)])
def test_what_no_profile_can_be_is_refused(arguments):
    with pytest.raises(InputError):
        profile_of(*arguments)


def test_fingerprints_stay_what_they_are():
    cell = FULL.raise_(RBMS[0], "data", 10_000)
    assert fingerprint(cell, "model", "data")[:16] == "04d2e6648fff4922"
    assert fingerprint(cell, "model", "other") != fingerprint(cell, "model", "data")
    assert fingerprint(cell, "other", "data") != fingerprint(cell, "model", "data")

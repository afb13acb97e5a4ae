"""What the tables and figures are made of."""

import pytest

import meltpoint as mp
from reproduce.cells import CURVES, PROFILES, TABLES, Plan, profile_of, unique
from reproduce.models import MODELS, RBMS
from reproduce.results import cell_fingerprint

FULL = Plan(PROFILES["full"], parameters=True)
TABLE_CELLS = unique([FULL.table(table) for table in TABLES])


def test_names_tell_cells_apart():
    cells = {cell for plan in (FULL, Plan(PROFILES["quick"], True)) for group in plan.all() for cell in group}
    assert len({cell.name for cell in cells}) == len(cells)


def test_table1_has_both_bases_and_the_long_rows():
    cells = FULL.table("table1")
    assert len(cells) == 2 + (6 + 1 + 1) * 2 * 3 + 7 + 1 + 1
    assert {cell.model for cell in cells if cell.steps == 100_000} == {"mnistvh_CD25"}
    assert [cell.model for cell in cells if cell.method == "exact"] == ["mnistCD1-20", "mnistPCD-20"]


def test_without_the_papers_parameters_a_row_is_missing():
    assert all(cell.model != "mnistvh_CD25" for group in Plan(FULL.profile, False).all() for cell in group)


def test_the_tables_are_run_with_what_the_paper_page_promises():
    sizes = {"ais": (None, 1_000, None), "raise": (100, 10, None), "raise-n": (100, 1, 900)}
    found = {(c.method, c.examples, c.chains, c.forward) for c in TABLE_CELLS if c.method in sizes}
    assert found == {(method, *size) for method, size in sizes.items()}
    assert {cell.steps for cell in TABLE_CELLS if cell.method in sizes} == {10_000, 100_000}
    assert {(cell.seed, cell.test_examples) for cell in TABLE_CELLS} == {(0, None)}


def test_the_profile_of_the_paper_has_its_chains_where_it_has_its_steps():
    table = Plan(PROFILES["paper"], parameters=True).table("table1")
    own = [cell for cell in table if cell.steps == 100_000]
    assert {(cell.method, cell.examples, cell.chains) for cell in own} == {
        ("ais", None, 5_000),
        ("raise", 100, 50),
        ("raise-n", 100, 1),
    }
    assert set(table) - set(own) == {cell for cell in FULL.table("table1") if cell.steps != 100_000}


@pytest.mark.parametrize("name", CURVES)
def test_the_last_point_of_a_curve_is_a_cell_of_a_table(name):
    last = {c for c in FULL.figure(name) if c.steps == 10_000 and c.method in ("ais", "raise")}
    assert last
    assert last <= set(TABLE_CELLS)


def test_steps_cut_the_curves():
    profile = profile_of("full", 100)
    assert (profile.steps, profile.curve, profile.long_steps) == (100, (10, 30, 100), 1_000)
    assert profile_of("full", 10_000) is PROFILES["full"]


@pytest.mark.parametrize("arguments", [("slow",), ("full", 0)])
def test_what_no_profile_can_be_is_refused(arguments):
    with pytest.raises(mp.InputError):
        profile_of(*arguments)


def test_fingerprints_stay_what_they_are():
    cell = FULL.cell(RBMS[0], "raise", "data", 10_000)
    assert cell_fingerprint(cell, "model", "data") == "7d8ee3e4d0d12ee87d39c90500f81c84"
    assert cell_fingerprint(cell, "model", "other") != cell_fingerprint(cell, "model", "data")
    assert cell_fingerprint(cell, "other", "data") != cell_fingerprint(cell, "model", "data")


def test_the_paper_has_no_data_base_rates_for_dbns():
    assert [name for name, model in MODELS.items() if model.bases == ["uniform"]] == [
        "mnistDBN-500-2000",
        "omniDBN-1000-1000",
    ]

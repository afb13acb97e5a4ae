"""The models of the paper, and the files they are read from."""

from dataclasses import dataclass
from pathlib import Path

from meltpoint.errors import InputError


@dataclass(frozen=True)
class Subject:
    """A model the paper evaluates: its name, its name in the paper's tables, and its data set."""

    name: str
    label: str
    data: str


RBMS = (
    Subject("mnistCD1-20", "mnistCD1-20", "mnist"),
    Subject("mnistPCD-20", "mnistPCD-20", "mnist"),
    Subject("mnistCD1-500", "mnistCD1-500", "mnist"),
    Subject("mnistPCD-500", "mnistPCD-500", "mnist"),
    Subject("mnistCD25-500", "mnistCD25-500", "mnist"),
    Subject("omniPCD-1000", "omniPCD-1000", "omniglot"),
)
SMALL = RBMS[:2]
"""Those with 20 hidden units, whose exact value is known."""

DBMS = (
    Subject("mnistDBM-500-1000", "MNIST DBM", "mnist"),
    Subject("omniDBM-1000-1000", "Omniglot DBM", "omniglot"),
)
DBNS = (
    Subject("mnistDBN-500-2000", "MNIST DBN", "mnist"),
    Subject("omniDBN-1000-1000", "Omniglot DBN", "omniglot"),
)
DEEP = DBMS + DBNS

PARAMETERS = Subject("mnistvh_CD25", "mnistvh_CD25.mat", "mnist")
"""The paper's own parameters of mnistCD25-500, as Salakhutdinov published them; not part of this project."""

SUBJECTS = {subject.name: subject for subject in (*RBMS, *DEEP, PARAMETERS)}


def model_file(subject: Subject, models: Path) -> Path:
    """Where the file of a model of this project lies."""
    path = models / f"{subject.name}.npz"
    if not path.is_file():
        raise InputError(
            found=f"no {path}",
            expected=f"{subject.name}.npz in the folder of models",
            remedy="run this in a checkout of meltpoint, whose folder zoo has the models, or name another "
            f"with --models; meltpoint train --recipe recipes/{subject.name}.toml trains this one",
        )
    return path


def parameters_file(given: Path | None, models: Path) -> Path | None:
    """The file with the paper's own parameters: as given, or among the models; None if it is not there."""
    if given is None:
        path = models / PARAMETERS.label
        return path if path.is_file() else None
    if not given.is_file():
        raise InputError(
            found=f"no file {given}",
            expected=f"{PARAMETERS.label}, the paper's own parameters",
            remedy="leave --parameters out, and the tables have one row less",
        )
    return given

"""Optional libraries, each in an extra of the package."""

from importlib import import_module
from types import ModuleType

from meltpoint.errors import InputError

EXTRAS = {
    "matplotlib": "plot",
    "distributed": "cluster",
    "h5py": "h5",
    "arviz_base": "arviz",
    "pyarrow": "parquet",
}
"""Libraries and the extras that install them."""


def require(library: str, purpose: str) -> ModuleType:
    """The library, or an error that names the extra to install."""
    try:
        return import_module(library)
    except ModuleNotFoundError as problem:
        top = library.partition(".")[0]
        if problem.name is None or problem.name.partition(".")[0] != top:
            raise
        raise InputError(
            found=f"no {top} in this installation",
            expected=f"it is needed for {purpose}",
            remedy=f"install it: pip install 'meltpoint[{EXTRAS.get(top, top)}]'",
        ) from None

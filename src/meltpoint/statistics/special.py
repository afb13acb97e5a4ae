"""Functions of scipy.special, imported when one is first called: the import takes a fifth of a second."""

from collections.abc import Callable
from typing import Any


def _imported_late(name: str) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:  # noqa: ANN401
        from scipy import special

        return getattr(special, name)(*arguments)

    return function


xlogy, ndtri, stdtrit = map(_imported_late, ("xlogy", "ndtri", "stdtrit"))

"""Functions of scipy.special, imported when one is first called: the import takes a fifth of a second."""

from typing import Any


def xlogy(x: Any, y: Any) -> Any:  # noqa: ANN401
    """x log(y), and 0 where x is 0."""
    from scipy import special

    return special.xlogy(x, y)


def ndtri(p: Any) -> Any:  # noqa: ANN401
    """The quantile of the normal distribution."""
    from scipy import special

    return special.ndtri(p)


def stdtrit(df: Any, p: Any) -> Any:  # noqa: ANN401
    """The quantile of Student's t distribution."""
    from scipy import special

    return special.stdtrit(df, p)

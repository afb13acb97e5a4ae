"""Functions of scipy.special, imported when one is first called: the import takes a fifth of a second."""

from typing import Any


def expit(x: Any, **options: Any) -> Any:  # noqa: ANN401
    """1 / (1 + exp(-x))."""
    from scipy import special

    return special.expit(x, **options)


def logit(p: Any) -> Any:  # noqa: ANN401
    """log(p / (1 - p))."""
    from scipy import special

    return special.logit(p)


def softmax(x: Any, axis: int | tuple[int, ...]) -> Any:  # noqa: ANN401
    """exp(x), divided by its sum along an axis or several."""
    from scipy import special

    return special.softmax(x, axis=axis)


def logsumexp(x: Any, axis: int | None = None) -> Any:  # noqa: ANN401
    """Log of the sum of exp(x) along an axis."""
    from scipy import special

    return special.logsumexp(x, axis=axis)


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

"""`estimators.raise_` by its old name, until its users have switched."""

from meltpoint.estimators.raise_ import raise_log_prob

__all__ = ["raise_log_prob"]

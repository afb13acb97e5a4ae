"""Lengths of time for people."""


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter.

    >>> duration(3.14), duration(75), duration(200), duration(7500)
    ('3.1 s', '75 s', '3 min 20 s', '2 h 5 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"

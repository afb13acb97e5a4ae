"""A figure that a notebook shows by itself, without pyplot and its settings."""

import io
from typing import Any

from matplotlib.figure import Figure

_DPI = 200  # of the picture, which is shown at half of it


class NotebookFigure(Figure):
    """A Matplotlib figure with a picture for notebooks; save it with savefig like any other."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=_DPI)
        width, height = self.get_size_inches()
        return picture.getvalue(), {"width": round(width * _DPI / 2), "height": round(height * _DPI / 2)}

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from meltpoint.data.picture import INK, LINE, PAPER, mosaic, write_png
from meltpoint.errors import InputError

sides = st.integers(1, 6)


@given(st.integers(1, 30), sides, sides, st.integers(0, 2**32))
def test_every_example_is_in_the_picture_once_and_in_order(n, rows, columns, seed):
    examples = np.random.default_rng(seed).integers(0, 2, (n, rows * columns), dtype=np.uint8)
    picture = mosaic(examples, (rows, columns))
    down, across = (picture.shape[0] - 1) // (rows + 1), (picture.shape[1] - 1) // (columns + 1)
    tiles = picture[1:, 1:].reshape(down, rows + 1, across, columns + 1)[:, :-1, :, :-1]
    tiles = tiles.transpose(0, 2, 1, 3).reshape(down * across, rows * columns)
    np.testing.assert_array_equal(tiles[:n], np.where(examples, INK, PAPER))
    assert (tiles[n:] == LINE).all()
    assert (down - 1) * across < n


def test_the_grid_is_nearly_square():
    assert mosaic(np.zeros((100, 64), np.uint8), (8, 8)).shape == (91, 91)


def test_a_written_picture_is_the_picture_enlarged(tmp_path):
    picture = mosaic(np.eye(4, dtype=np.uint8), (2, 2))
    write_png(picture, tmp_path / "a.PNG")
    scale = 900 // 7
    read = imread(tmp_path / "a.PNG")
    np.testing.assert_allclose(read[::scale, ::scale] * 255, picture, atol=0.5)
    assert read.shape[:2] == (7 * scale, 7 * scale)


@pytest.mark.parametrize("name", ["a.jpg", "a", "png"])
def test_only_png_is_written(tmp_path, name):
    with pytest.raises(InputError, match="png"):
        write_png(np.zeros((2, 2), np.uint8), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        write_png(np.zeros((2, 2), np.uint8), tmp_path / "nowhere" / "a.png")

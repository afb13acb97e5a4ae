import dataclasses
import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint import datasets
from meltpoint.datasets import Dataset
from meltpoint.errors import InputError


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def digits_above_half():
    return datasets.load("digits", binarize="threshold")


def fingerprint(*arrays):
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def check_shape_of_all(dataset, n_train, n_test, image_shape):
    assert dataset.image_shape == image_shape
    n_pixels = image_shape[0] * image_shape[1]
    for bits, grey, n in (
        (dataset.train, dataset.grey_train, n_train),
        (dataset.test, dataset.grey_test, n_test),
    ):
        assert bits.shape == grey.shape == (n, n_pixels)
        assert bits.dtype == np.uint8
        assert set(np.unique(bits)) == {0, 1}
        assert grey.dtype == np.float32
        assert (grey.min(), grey.max()) == (0, 1)
        assert not bits[grey == 0].any()
        assert bits[grey == 1].all()


def test_digits_are_all_of_scikit_learns_in_a_fixed_split(digits):
    from sklearn.datasets import load_digits

    check_shape_of_all(digits, 1500, 297, (8, 8))
    ours = np.concatenate([digits.images.train, digits.images.test])
    theirs = load_digits().data
    np.testing.assert_array_equal(sorted(map(tuple, ours)), sorted(map(tuple, theirs)))


def test_the_split_of_digits_takes_from_all_over_the_file(digits):
    from sklearn.datasets import load_digits

    place_of = {tuple(image): place for place, image in enumerate(load_digits().data)}
    places = [place_of[tuple(image)] for image in digits.images.test]
    # Tenths of the file, about 30 in each. The split is fixed, so this cannot flicker.
    assert (np.histogram(places, bins=10, range=(0, 1797))[0] >= 10).all()


def test_bars_and_stripes_are_all_images_of_full_rows_or_of_full_columns():
    every = (np.arange(2**16)[:, np.newaxis] >> np.arange(16) & 1).reshape(-1, 4, 4)
    rows = (every == every[:, :, :1]).all(axis=(1, 2))
    columns = (every == every[:, :1, :]).all(axis=(1, 2))
    expected = {tuple(image) for image in every[rows | columns].reshape(-1, 16)}
    dataset = datasets.load("bars-and-stripes")
    check_shape_of_all(dataset, 30, 30, (4, 4))
    assert {tuple(image) for image in dataset.train} == expected
    assert {tuple(image) for image in dataset.test} == expected


@given(st.integers(0, 2**64), st.sampled_from(["stochastic", "threshold"]))
def test_binary_data_do_not_change_under_binarisation(seed, binarize):
    plain = datasets.load("bars-and-stripes")
    other = datasets.load("bars-and-stripes", binarize=binarize, seed=seed)
    for bits in (other.train, other.epoch(seed, 7)):
        np.testing.assert_array_equal(bits, plain.train)


def test_the_default_draw_is_this_one_for_ever(digits):
    assert fingerprint(digits.train, digits.test) == "9d0dc98fdba96761"
    assert fingerprint(datasets.load("digits", seed=1).train) == "fa31c05b82e68143"
    assert fingerprint(digits.epoch(0, 1)) == "7ecfdc813121d1ae"


def test_threshold_needs_no_seed():
    first, second = (datasets.load("digits", binarize="threshold", seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(first.train, second.train)
    np.testing.assert_array_equal(first.train, first.grey_train > 0.5)


def test_epochs_differ_from_each_other_and_from_the_fixed_draw(digits):
    draws = [digits.train, digits.epoch(0, 0), digits.epoch(0, 1), digits.epoch(1, 0)]
    assert len({fingerprint(draw) for draw in draws}) == 4
    for draw in draws:
        assert not draw[digits.grey_train == 0].any()
        assert draw[digits.grey_train == 1].all()


@given(st.integers(0, 100), st.integers(0, 100))
def test_an_epoch_is_the_same_however_the_set_was_loaded(digits, digits_above_half, seed, number):
    np.testing.assert_array_equal(digits.epoch(seed, number), digits_above_half.epoch(seed, number))


def test_a_dataset_cannot_be_changed_by_accident(digits):
    with pytest.raises(dataclasses.FrozenInstanceError):
        digits.train = digits.test
    for array in (digits.train, digits.test, digits.images.train):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize("name", datasets.names())
def test_a_close_name_is_suggested(name):
    with pytest.raises(InputError, match=f"did you mean {name}") as caught:
        datasets.load(name[:-1])
    assert all(known in caught.value.expected for known in datasets.names())


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"name": "cifar"}, "cifar"),
        ({"name": "mnist", "binarize": "median"}, "median"),
        ({"name": "mnist", "binarize": ["threshold"]}, "threshold"),
        ({"name": "mnist", "seed": -1}, "seed=-1"),
        ({"name": "mnist", "seed": 0.5}, "seed=0.5"),
        ({"name": "mnist", "seed": True}, "seed=True"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_downloaded(arguments, found, monkeypatch):
    monkeypatch.setattr("meltpoint.data.catalogue.obtain", None)
    with pytest.raises(InputError, match=found):
        datasets.load(**arguments)


@pytest.mark.parametrize("wrong", [-1, 1.5, "1", None])
def test_epochs_are_numbered_from_zero(digits, wrong):
    with pytest.raises(InputError, match="epoch number"):
        digits.epoch(0, wrong)
    with pytest.raises(InputError, match="seed"):
        digits.epoch(wrong, 0)


def test_a_dataset_reads_well(digits, digits_above_half):
    lines = str(digits).splitlines()
    assert lines[0] == "digits: 1,500 training and 297 test examples of 8 x 8 pixels"
    assert lines[1].endswith("% of the training pixels are on; stochastic binarisation, seed 0")
    assert str(digits_above_half).endswith("on where the grey value is above one half")
    assert str(datasets.load("bars-and-stripes")).endswith("binary from the start")
    assert repr(digits) == "Dataset(name='digits', image_shape=(8, 8), binarize='stochastic', seed=0)"
    assert isinstance(digits, Dataset)

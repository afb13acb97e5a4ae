"""MNIST and Omniglot: small stand-ins for what can go wrong, the real files for what must come out."""

import dataclasses
import gzip
import hashlib
import struct

import numpy as np
import pytest
from scipy.io import savemat

from meltpoint import datasets
from meltpoint.data import catalogue, sources
from meltpoint.errors import InputError
from meltpoint.formats.download import cached_path


def idx_gz(images):
    header = struct.pack(">HBB", 0, 8, 3) + struct.pack(">III", *images.shape)
    return gzip.compress(header + images.tobytes(), mtime=0)


@pytest.fixture
def small_mnist(web, monkeypatch):
    """MNIST with a handful of images, published on a local server: the images, and their files."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (n, 28, 28), dtype=np.uint8) for n in (5, 3)]
    files = []
    for file, split in zip(sources.MNIST, images, strict=True):
        body = idx_gz(split)
        checksum = "sha256:" + hashlib.sha256(body).hexdigest()
        urls = (web.answers(500), web.sends(body, promised=len(body)))
        files.append(dataclasses.replace(file, size=len(body), checksum=checksum, urls=urls))
    entry = dataclasses.replace(catalogue.ENTRIES["mnist"], files=tuple(files))
    monkeypatch.setitem(catalogue.ENTRIES, "mnist", entry)
    return images, files


def test_mnist_comes_from_the_web_once(small_mnist, web):
    (train, test), files = small_mnist
    calls = []
    dataset = datasets.load("mnist", progress=lambda *call: calls.append(call))
    np.testing.assert_array_equal(dataset.grey_train, train.reshape(5, 784) / np.float32(255))
    np.testing.assert_array_equal(dataset.grey_test, test.reshape(3, 784) / np.float32(255))
    assert [what for what, done, total in calls if done == total] == [f"mnist: {file.name}" for file in files]
    visits = len(web.visits)
    np.testing.assert_array_equal(datasets.load("mnist").train, dataset.train)
    assert len(web.visits) == visits


def test_offline_the_message_names_the_addresses_and_the_way_out(monkeypatch):
    monkeypatch.setattr("meltpoint.formats.download.time.sleep", lambda seconds: None)
    with pytest.raises(InputError) as caught:
        datasets.load("mnist")
    for mirror in sources.MIRRORS:
        assert f"{mirror}train-images-idx3-ubyte.gz could not be reached" in caught.value.found
    assert "9,912,422 bytes with sha256:440fcabf" in caught.value.expected
    assert "MELTPOINT_DATA" in caught.value.remedy


def test_the_addresses_end_in_the_files_names():
    for file in (*sources.MNIST, *sources.OMNIGLOT):
        assert file.urls
        assert all(url.startswith("https://") and url.endswith("/" + file.name) for url in file.urls)
    assert len(sources.MNIST[0].urls) >= 3


@pytest.fixture
def small_omniglot(tmp_path, monkeypatch):
    """Writes a chardata.mat with three training and two test images where MELTPOINT_DATA points."""
    monkeypatch.setattr(sources, "N_TRAIN", 3)
    monkeypatch.setattr(sources, "N_TEST", 2)
    monkeypatch.setenv("MELTPOINT_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    content = {"data": rng.random((784, 3)), "testdata": rng.random((784, 2)), "target": np.eye(50)[:, :3]}

    def write(**changes):
        savemat(tmp_path / "chardata.mat", content | changes, do_compression=True)
        return tmp_path / "chardata.mat"

    return write


def test_omniglot_images_stand_upright(small_omniglot):
    letter = np.zeros((28, 28))
    letter[4:24, 8] = 1  # an L: a stem on the left,
    letter[23, 8:20] = 1  # a foot at the bottom
    small_omniglot(data=np.stack([letter.reshape(-1, order="F")] * 3, axis=1))
    dataset = datasets.load("omniglot")
    np.testing.assert_array_equal(dataset.train[0].reshape(28, 28), letter)


def test_omniglot_of_another_make_is_welcome_if_its_layout_is_right(small_omniglot):
    path = small_omniglot(extra=np.arange(5))
    stored = datasets.load("omniglot").images.train
    assert stored.shape == (3, 784)
    assert path.exists()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"data": np.zeros((784, 4))}, r"data of shape \(784, 4\)"),
        ({"data": np.zeros((3, 784))}, r"data of shape \(3, 784\)"),
        ({"testdata": np.zeros((400, 2))}, r"testdata of shape \(400, 2\)"),
        ({"testdata": "text"}, "no array 'testdata'"),
        ({"data": np.full((784, 3), 255.0)}, "outside of 0 to 1"),
        ({"data": np.full((784, 3), -0.1)}, "outside of 0 to 1"),
        ({"data": np.full((784, 3), np.nan)}, "outside of 0 to 1"),
    ],
)
def test_omniglot_with_another_layout_is_refused(small_omniglot, changes, found):
    path = small_omniglot(**changes)
    with pytest.raises(InputError, match=found) as caught:
        datasets.load("omniglot")
    assert str(path) in caught.value.found
    assert "md5:" + hashlib.md5(path.read_bytes()).hexdigest() in caught.value.found
    assert sources.CHARDATA.checksum in caught.value.expected
    assert sources.CHARDATA.urls[0] in caught.value.remedy


@pytest.mark.parametrize("kept", [0, 1, 100, 128, 0.2, 0.5, 0.9, -1, -20])
def test_omniglot_cut_short_anywhere_is_refused(small_omniglot, kept):
    path = small_omniglot()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if 0 < kept < 1 else kept])
    with pytest.raises(InputError, match=sources.CHARDATA.checksum):
        datasets.load("omniglot")


def test_omniglot_with_a_flipped_bit_is_refused(small_omniglot):
    path = small_omniglot()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 3] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=sources.CHARDATA.checksum):
        datasets.load("omniglot")


def test_a_web_page_under_the_name_of_omniglot_is_refused(small_omniglot):
    small_omniglot().write_bytes(b"<!DOCTYPE html><title>404</title>" * 20)
    with pytest.raises(InputError, match=sources.CHARDATA.checksum):
        datasets.load("omniglot")


def test_a_downloaded_omniglot_must_have_the_published_checksum(web, monkeypatch):
    page = b"<html>rate limit exceeded</html>"
    file = dataclasses.replace(sources.CHARDATA, urls=(web.sends(page, promised=len(page)),))
    monkeypatch.setattr("meltpoint.formats.download.time.sleep", lambda seconds: None)
    monkeypatch.setitem(
        catalogue.ENTRIES, "omniglot", dataclasses.replace(catalogue.ENTRIES["omniglot"], files=(file,))
    )
    with pytest.raises(InputError, match=sources.CHARDATA.checksum):
        datasets.load("omniglot")
    assert not cached_path(file).exists()


@pytest.fixture(scope="module")
def real(shared):
    """The real MNIST and Omniglot, both read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MELTPOINT_DATA", str(shared / "data"))
        return {name: datasets.load(name) for name in ("mnist", "omniglot")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "omniglot"])
def test_the_real_sets_are_as_the_catalogue_says(real, name):
    entry, dataset = catalogue.ENTRIES[name], real[name]
    assert (len(dataset.train), len(dataset.test)) == (entry.n_train, entry.n_test)
    assert dataset.image_shape == entry.image_shape
    for bits in (dataset.train, dataset.test):
        assert bits.dtype == np.uint8
        assert bits.shape[1] == 784
        assert bits.max() == 1


@pytest.mark.slow
def test_mnist_has_the_known_mean(real):
    assert real["mnist"].images.train.mean() / 255 == pytest.approx(0.1306604762738429, abs=1e-15)
    # 47 million coins: their mean is within 5 standard deviations of 1/2/sqrt(n) at most.
    assert abs(real["mnist"].train.mean() - 0.13066) < 5 * 0.5 / np.sqrt(real["mnist"].train.size) + 1e-5


@pytest.mark.slow
def test_the_default_draw_of_mnist_is_this_one_for_ever(real):
    assert hashlib.sha256(real["mnist"].test.tobytes()).hexdigest()[:16] == "da179ad52f76e31f"


@pytest.mark.slow
def test_mnist_directly_in_the_folder_is_found_too(shared, monkeypatch, real):
    monkeypatch.setenv("MELTPOINT_DATA", str(shared / "data" / "mnist"))
    np.testing.assert_array_equal(datasets.load("mnist").test, real["mnist"].test)

"""Data are found where the user put them, and refused when they are not what they should be; no network is used."""

import os
import tracemalloc

import numpy as np
import pytest

from meanmap import datasets
from meanmap.core import ParameterError
from meanmap.datasets.files import DataNotFoundError

UCI_ROWS = {
    "banknote": (1372, 4, 610),
    "transfusion": (748, 4, 178),
    "fertility": (100, 9, 12),
    "ionosphere": (351, 34, 225),
}


def needs(name: str) -> None:
    folder = os.environ.get("MEANMAP_DATA")
    if not folder or not os.path.exists(os.path.join(folder, name)):
        pytest.skip(f"set MEANMAP_DATA to a folder that holds {name}")


@pytest.fixture
def delivered(monkeypatch, tmp_path):
    """What the network answers: an error, or bytes; the cache is an empty folder."""
    import pooch

    answer = {"bytes": None}

    def download(self, url, output_file, pooch, check_only=False):
        if answer["bytes"] is None:
            raise ConnectionError("no route to host")
        with open(output_file, "wb") as file:
            file.write(answer["bytes"])

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)
    monkeypatch.delenv("MEANMAP_DATA", raising=False)
    monkeypatch.setenv("MEANMAP_CACHE", str(tmp_path / "cache"))
    return answer


def test_the_users_own_files_come_first(tmp_path, monkeypatch):
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "fertility.csv").write_text("header\n1,2,3,4,5,6,7,8,9,1\n0,0,0,0,0,0,0,0,0.5,0\n")
    monkeypatch.setenv("MEANMAP_DATA", str(tmp_path))
    table, labels = datasets.uci("fertility")
    assert labels.tolist() == [1, 0]
    assert table.matrix()[:, -1].tolist() == [9.0, 0.5]


def test_raw_files_are_read_as_their_authors_wrote_them(tmp_path, monkeypatch):
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "fertility.txt").write_text("-1,2,3,4,5,6,7,8,9,O\n0,0,0,0,0,0,0,0,0.5,N\n")
    (tmp_path / "uci" / "transfusion.txt").write_text("Recency,Frequency,Money,Time,Donated\n2 ,50,12500,98 ,1\n")
    monkeypatch.setenv("MEANMAP_DATA", str(tmp_path))
    assert datasets.uci("fertility")[1].tolist() == [1, 0]
    table, labels = datasets.uci("transfusion")
    assert (table.matrix().tolist(), labels.tolist()) == ([[2.0, 50.0, 12500.0, 98.0]], [1])


@pytest.mark.parametrize("name", UCI_ROWS)
def test_classification_problems_have_their_published_sizes(name):
    needs(f"uci/{name}.csv")
    table, labels = datasets.uci(name)
    assert (len(table), len(table.names), int(labels.sum())) == UCI_ROWS[name]


def test_ozone_has_330_days():
    needs("ozone/ozone_330x10.csv")
    table = datasets.ozone()
    assert len(table) == 330
    assert table.names[0] == "O3"


def test_citations_are_symmetric_and_count_as_published():
    needs("citation/acmv9.npz")
    network = datasets.citation()
    assert network.links.sum() == 2 * 15556
    assert abs(network.links - network.links.T).sum() == 0
    assert sorted(network.topics.sum(0).tolist()) == [818, 1785, 1916, 2550, 2872]
    assert network.words.shape == (9360, 6775)


def test_stereo_disparities_are_thirds_of_pixels():
    needs("stereo_depth/Baby1_disp1.png")
    scene = datasets.stereo("Baby1")
    known = scene.disparity[np.isfinite(scene.disparity)]
    assert scene.left.shape == (*scene.disparity.shape, 3)
    assert np.allclose(known * 3, np.rint(known * 3))
    assert 0.0 <= scene.left.min() < scene.left.max() <= 1.0


def test_pages_are_parallel():
    needs("parallel_help/en.txt")
    assert {len(pages) for pages in datasets.parallel_help().values()} == {876}


def test_without_a_network_the_message_says_what_to_do(delivered):
    with pytest.raises(
        DataNotFoundError, match=r"could not be downloaded from https://raw.*\(ConnectionError\).*set MEANMAP"
    ):
        datasets.uci("banknote")
    with pytest.raises(DataNotFoundError, match="It is not downloaded"):
        datasets.parallel_help()


def test_a_wrong_file_is_refused(delivered):
    delivered["bytes"] = b"1,2,3,4,0\n"
    with pytest.raises(ValueError, match="does not match the known hash"):
        datasets.uci("banknote")
    delivered["bytes"] = b"ozone,vh\n1,2\n"
    with pytest.raises(DataNotFoundError, match="does not hold the expected 330 days"):
        datasets.ozone()


def test_unknown_names_are_told():
    with pytest.raises(ParameterError, match="name is 'iris'; expected one of 'banknote', 'transfusion', 'fertility'"):
        datasets.uci("iris")
    with pytest.raises(ParameterError, match=r"scene is 'Baby9' \(did you mean 'Baby."):
        datasets.stereo("Baby9")


def test_chapters_of_europarl_are_matched_and_the_longest_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MEANMAP_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"europarl/txt/da is not in the folder"):
        datasets.europarl()
    for language in datasets.LANGUAGES:
        folder = tmp_path / "europarl" / "txt" / language
        folder.mkdir(parents=True)
        own = "only here" if language == "fr" else ""
        first, second = (
            ("<CHAPTER ID=1>", "<CHAPTER ID=2>") if language == "sv" else ('<CHAPTER ID="001">', '<CHAPTER ID="2">')
        )
        text = f'{first}\nshort {language}\n{second}\n<SPEAKER ID=1 NAME="X">\nä much\n<P>\nlonger {language}\n'
        (folder / "ep-00-01-17.txt").write_text(f"{text}<CHAPTER ID=3>\n{own}\n", encoding="utf-8")
    (tmp_path / "europarl" / "txt" / "en" / "ep-00-01-18.txt").write_text("<CHAPTER ID=1>\nin English only")
    assert datasets.europarl()["sv"] == ["ä much longer sv", "short sv"]
    assert datasets.europarl(1)["en"] == ["ä much longer en"]


def sittings(folder, monkeypatch, chapters):
    """Files in all languages, each of one chapter."""
    monkeypatch.setenv("MEANMAP_DATA", str(folder))
    for language in datasets.LANGUAGES:
        place = folder / "europarl" / "txt" / language
        place.mkdir(parents=True)
        for number, text in enumerate(chapters):
            (place / f"ep-00-01-{number:02}.txt").write_bytes(b"<CHAPTER ID=1>\n" + text)


def test_of_europarl_the_longest_chapters_alone_are_held(tmp_path, monkeypatch):
    """3 GB of nine languages hold 24,000 chapters, of which 876 are asked for."""
    sittings(tmp_path, monkeypatch, [b"a" * (20_000 + number) for number in range(20)])
    tracemalloc.start()
    kept = datasets.europarl(1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept["sv"][0]) == 20_019
    assert most < 9 * 20 * 20_000 / 3


def test_odd_characters_in_europarl_cost_no_text(tmp_path, monkeypatch):
    """A sign of comparison begins no mark, and what is not UTF-8 is replaced alone."""
    text = b'below < 5 %\n<P>\nmore > 6 and 7 < 8 > 6, caf\xe9 then\n<SPEAKER ID=1 NAME="X">\nend\n'
    sittings(tmp_path, monkeypatch, [text])
    assert datasets.europarl()["en"] == ["below < 5 % more > 6 and 7 < 8 > 6, caf\ufffd then end"]

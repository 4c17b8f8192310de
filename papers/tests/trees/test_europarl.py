"""Figure 1 on a small made corpus in the format of Europarl."""

import numpy as np

from meanmap.datasets import LANGUAGES
from meanmap_papers.trees.europarl import main

CHAPTERS, WORDS = 130, 400


def test_translations_are_found_in_files_like_those_of_the_corpus(tmp_path, monkeypatch, capsys):
    """Each chapter is words drawn from a topic of its own, written in each language with its name before each word."""
    monkeypatch.setenv("MEANMAP_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    drawn = [rng.choice(rng.permutation(WORDS)[:40], rng.integers(40, 80)) for _ in range(CHAPTERS)]
    letters = ["".join(chr(97 + digit) for digit in (word // 26, word % 26)) for word in range(WORDS)]
    for language in LANGUAGES:
        folder = tmp_path / "europarl" / "txt" / language
        folder.mkdir(parents=True)
        text = "".join(
            f'<CHAPTER ID={at}>\n<SPEAKER ID=1 NAME="A">\n{" ".join(language + letters[word] for word in words)}\n<P>\n'
            for at, words in enumerate(drawn)
        )
        (folder / "ep-00-01-17.txt").write_text(text, encoding="utf-8")
    main("smoke", "1")
    printed = capsys.readouterr().out
    assert "876 longest chapters of Europarl, whole" in printed
    chain = next(line for line in printed.splitlines() if line.startswith("chain; 2 languages; 10; "))
    assert float(chain.split("; ")[3].split(",")[0].split(" ")[0]) > 0.5  # 10 of 60 candidates by chance: .17
    assert "Claims are not judged at the scale 'smoke'." in printed

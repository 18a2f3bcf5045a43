"""Deals in text, played again; mistakes are told with line and column."""

from pathlib import Path

import numpy as np
import pytest

from domino_env import make_engine
from experiments.replay import play, read

DEAL = "tiny_pairs leader=0 | 0-1 1-2 | 2-2 0-3 | 0-0 1-3 | 0-2 2-3"


def played(rules: str, seed: int) -> str:
    """A deal in text, played to its end at random."""
    engine = make_engine(rules, 1, seed=seed)
    engine.reset(seed=seed)
    rng = np.random.default_rng(seed)
    while not engine.over()[0]:
        engine.step(engine.sample_legal(rng), autoreset=False)
    return engine.text(0)


@pytest.mark.parametrize("rules", ["sport_book", "sport_club", "puerto_rico", "tiny_pairs"])
def test_what_the_engine_writes_is_replayed_to_the_same_end(rules: str, tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    texts = [played(rules, seed) for seed in range(5)]
    path.write_text("# five deals\n\n" + "\n".join(texts) + "\n")
    replays = read(path)
    assert [replay.line for replay in replays] == [3, 4, 5, 6, 7]
    for replay in replays:
        last = replay.positions[-1]
        assert last["over"] and last["deal"]["plies"] == len(replay.deal.moves) == len(replay.positions) - 1
        assert replay.as_dict()["deal"] == last["deal"]


def test_every_position_is_shown_from_the_deal_on() -> None:
    replay = play(DEAL + " | 0-1L 0-3L")
    assert [len(position["moves"]) for position in replay.positions] == [0, 1, 2]
    assert [position["to_move"] for position in replay.positions] == [0, 1, 2]
    assert replay.positions[0]["ends"] is None and replay.positions[2]["ends"] == [3, 1]


@pytest.mark.parametrize(
    ("moves", "says"),
    [
        ("0-1L 2-2L", "line 9, column 70: seat 1 may not play 2-2L; allowed: 0-3L"),
        ("0-1L pass", "line 9, column 70: seat 1 may not play pass; allowed: 0-3L"),
        ("0-1R", "line 9, column 65: seat 0 may not play 0-1R; allowed: 0-1L, 1-2L"),
        ("0-3L", "line 9, column 65: seat 0 may not play 0-3L"),
        ("0-1L 0-9L", "line 9, column 70: unknown move '0-9L'"),
    ],
)
def test_mistakes_are_told_with_their_place(moves: str, says: str) -> None:
    text = DEAL + " | " + moves
    with pytest.raises(ValueError) as error:
        play(text, 9)
    # Columns are told for people: the first character is column 1.
    assert says.replace("column 70", f"column {len(DEAL) + 4 + 5}").replace(
        "column 65", f"column {len(DEAL) + 4}"
    ) in str(error.value)


def test_a_move_after_the_end() -> None:
    text = played("sport_book", 1) + " pass"
    with pytest.raises(ValueError, match="pass comes after the end of the deal"):
        play(text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no deal in it"),
        (b"# nothing\n\n", "no deal in it"),
        (b"\xff\xfe", "not a text file"),
        (b"sport leader=0", "line 1, column 1: unknown rules 'sport'"),
        (b"\n" + DEAL.replace("2-3", "0-1").encode(), "line 2, column"),
    ],
)
def test_files_that_are_none(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "deals.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        read(path)
    assert says in str(error.value) and str(path) in str(error.value)

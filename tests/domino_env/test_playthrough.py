"""Golden playthroughs: whole deals as text, which the engine must write again byte for byte.

A change of a stream, an id, an encoding or a score shows up as a diff of a text file that a person can read. The
reference plays every file too, so that what is frozen is right. To write them anew, on purpose::

    python -m tests.domino_env.test_playthrough
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domino_env import make_engine
from domino_env.deals import Deal, parse_deal
from tests import blitz_reference, rows_reference
from tests.blitz_reference import BlitzTable
from tests.reference import GAMES, PASS, TILES, Match, Table, make_game, name_of
from tests.rows_reference import BLIND, BLIND_BLITZ, RowTable

FOLDER = Path(__file__).parent / "playthroughs"

# File name -> preset, overrides, seed, episode
PLAYTHROUGHS: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "sport_book": ("sport_book", {}, 1, "deal"),
    "sport_club": ("sport_club", {}, 2, "deal"),
    "puerto_rico": ("puerto_rico", {}, 3, "deal"),
    "double_six": ("puerto_rico", {"lead": "double_six"}, 4, "deal"),
    "kozyol": ("kozyol", {}, 5, "match"),
    "tiny_pairs": ("tiny_pairs", {}, 6, "deal"),
    "four": ("sport_club", {}, 7, "match"),
    "labelled_ends": ("sport_book", {"labelled_ends": True}, 8, "deal"),
    "two_seats": ("sport_book", {"seats": 2, "pairs": False}, 9, "deal"),
    "single": ("sport_book", {"pairs": False}, 10, "deal"),
    "blitz": ("blitz", {}, 11, "deal"),
    "blitz_one_end": ("blitz", {"seats": 6, "chain": "one"}, 12, "deal"),
    "blitz_pairs": ("blitz", {"pairs": True}, 13, "deal"),
    "blind_blitz": ("blind_blitz", {}, 14, "deal"),
    "blind_blitz_peek": ("blind_blitz", {"seats": 3, "memory": "peek"}, 21, "deal"),
    "blind": ("blind", {"seats": 2}, 23, "deal"),
}


def pick(legal: list[int], ply: int, preset: str) -> int:
    """A choice that wanders over all legal actions; of two it is the first, but in the games of several a turn."""
    return legal[(5 * ply * ply + 3 * ply + (0 if preset in GAMES else ply // 2)) % len(legal)]


def playthrough(name: str) -> str:
    """The text of one episode, as the engine plays it."""
    preset, overrides, seed, episode = PLAYTHROUGHS[name]
    engine = make_engine(preset, 1, seed=seed, episode=episode, **overrides)
    settings = "".join(f" {key}={value}" for key, value in overrides.items())
    lines = [f"# {preset}{settings} seed={seed} episode={episode}"]
    done, ply = np.zeros(1, bool), 0
    while not done[0]:
        if engine.plies()[0] == 0:
            lines += ["", engine.text(0)]
        legal = np.flatnonzero(engine.legal()[0]).tolist()
        action = pick(legal, ply, preset)
        left, right = engine.ends()[0].tolist()
        ends = "--" if left < 0 else f"{left}{right}"
        seat = int(engine.to_move()[0])
        hand = " ".join(engine.snapshot(0)["hands"][seat])  # of a blind game the row, then what lies open
        name = engine.rules.action_name
        lines.append(
            f"seat_{seat} at {ends} holds {hand}; legal {' '.join(map(name, legal))}; "
            f"plays {name(action)}; sees {engine.observe(packed=True)[0].tobytes().hex()}"
        )
        rewards, done = engine.step(np.array([action]), autoreset=False)
        ply += 1
        for j in range(len(engine.finished.rows)):
            info = engine.finished.info(j)
            lines.append("; ".join(f"{key} {value}" for key, value in info.items()))
            lines.append(f"rewards {rewards[0].astype(int).tolist()}; score {engine.score()[0].tolist()}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", sorted(PLAYTHROUGHS))
def test_playthrough__as_written(name):
    assert playthrough(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_playthroughs__all_have_a_test():
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(PLAYTHROUGHS)


def begin(preset: str, overrides: dict[str, Any], match: Match | None, deal: Deal) -> Table | BlitzTable | RowTable:
    """A deal that is written down, on a table of the plain second rules."""
    hands = [[TILES[tile] for tile in hand] for hand in deal.hands]
    if match is not None:
        return match.begin(hands)
    if preset == "blitz":
        return BlitzTable(blitz_reference.variant(**overrides), hands)
    game = rows_reference.variant({"blind": BLIND, "blind_blitz": BLIND_BLITZ}[preset], **overrides)
    return RowTable(game, hands, [TILES[tile] for tile in deal.stock], deal.leader)


@pytest.mark.parametrize("name", sorted(PLAYTHROUGHS))
def test_playthrough__the_reference_agrees(name):
    """Every line of a file but the view and the running score, from the deal's text on, by the plain second rules."""
    preset, overrides, _, episode = PLAYTHROUGHS[name]
    match = Match(make_game(preset, **overrides)) if preset in GAMES else None
    table = None
    deals = 0
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith(preset):
            deal = parse_deal(line)
            table = begin(preset, overrides, match, deal)
            assert table.leader == deal.leader and deal.moves == []
            name_of_action = deal.rules.action_name
        elif line.startswith("seat_"):
            seat, hand, legal, action = read_ply(line)
            ends = "--" if table.ends is None else f"{table.ends[0]}{table.ends[1]}"
            assert (table.turn, ends) == seat
            held = table.hand(table.turn) if isinstance(table, RowTable) else table.hands[table.turn]
            assert sorted(held) == hand
            assert [name_of_action(a) for a in table.legal()] == legal
            table.play(next(a for a in table.legal() if name_of_action(a) == action))
        elif line.startswith("outcome"):
            assert line == "; ".join(f"{key} {value}" for key, value in table.result.items())
            if match is not None:
                match.end(table)
            deals += 1
        elif line.startswith("rewards"):
            score = match.score if episode == "match" else [0] * len(table.result["points"])
            rewards = table.result["points"] if isinstance(table, RowTable) else table.rewards()
            assert line == f"rewards {rewards}; score {score}"
        else:
            assert line == ""
    assert table.result is not None and deals == {"kozyol": deals, "four": 4}.get(name, 1)
    if name == "kozyol":
        assert max(match.score) >= 101 and deals > 1


def read_ply(line: str) -> tuple[tuple[int, str], list[tuple[int, int]], list[str], str]:
    """Seat and ends, hand, legal actions and action of a line."""
    head, legal, action, _ = line.split("; ")
    who, hand = head.split(" holds ")
    seat, ends = who.split(" at ")
    tiles = [(int(tile[0]), int(tile[2])) for tile in hand.split()]
    return (int(seat[5:]), ends), sorted(tiles), legal.split()[1:], action.split()[1]


def test_playthroughs__go_everywhere():
    """Among them are outs and blocks, passes, choices of an end, equal ends, stops, turns, draws and open tiles."""
    texts = {name: (FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in PLAYTHROUGHS}
    everything = "".join(texts.values())
    for found in ("outcome out", "outcome block", f"plays {name_of(PASS)}", "L 3-4R", " at 33 ", " at -- "):
        assert found in everything, found
    for name, found in [
        ("blitz", "L pass; plays pass"),  # a stop with more to lay
        ("blitz", "legal pass;"),
        ("blitz_one_end", "R pass; plays"),
        ("blind_blitz", "legal turn;"),
        ("blind_blitz_peek", "legal pass draw; plays draw"),
        ("blind", "legal pass turn; plays turn"),
        ("blind", "legal pass draw; plays pass"),
    ]:
        assert found in texts[name], (name, found)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for title in PLAYTHROUGHS:
        (FOLDER / f"{title}.txt").write_text(playthrough(title), encoding="utf-8")

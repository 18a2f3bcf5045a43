"""Every game against the slow reference: move for move, mask for mask, result for result; views are sampled."""

import random
from collections import Counter

import numpy as np
import pytest

from tests.reference import GAMES, Game, Table, make_game, shuffled
from tests.twin import Twin, engine_of, mask_in

PRESETS = sorted(GAMES)

VARIANTS = [
    make_game("sport_book", pairs=False),
    make_game("sport_club", labelled_ends=True),
    make_game("sport_book", labelled_ends=True, pairs=False),
    make_game("puerto_rico", seats=2, pairs=False, hand_size=14),
    make_game("sport_book", seats=2, pairs=False),
    make_game("sport_book", seats=2, pairs=False, max_pip=4, hand_size=7),
    make_game("kozyol", seats=2, pairs=False, max_pip=3, hand_size=5, match_to=40),
    make_game("sport_club", max_pip=5, hand_size=5),
    make_game("sport_book", max_pip=4, hand_size=3),
    make_game("tiny_pairs", pairs=False),
    make_game("tiny_pairs", max_pip=2, hand_size=1),
    make_game("tiny_pairs", seats=2, pairs=False, hand_size=1, max_pip=2),
    make_game("tiny_pairs", lone_blank=25, block_score="both_totals", out_score="others"),
    make_game("tiny_pairs", lone_blank=10, equal_block="credit", labelled_ends=True),
    make_game("puerto_rico", lead="double_six", lone_blank=25),
    make_game("puerto_rico", lead="double_six", redeal=True, pairs=False),
    make_game("kozyol", match_to=None),
    make_game("kozyol", pairs=False, match_to=60),
    make_game("sport_book", lead="winner"),
    make_game("sport_book", hand_size=6, redeal=True),
]

MATCHES = [
    (make_game("sport_book"), 1),
    (make_game("sport_club"), 2),
    (make_game("kozyol"), 1),
    (make_game("kozyol", match_to=None, labelled_ends=True), 1),
    (make_game("puerto_rico", lead="double_six", match_to=200), 1),
    (make_game("tiny_pairs", pairs=False), 2),
    (make_game("sport_book", seats=2, pairs=False), 1),
]


def label(value: object) -> str | None:
    """A readable test id."""
    if not isinstance(value, Game):
        return None
    base = GAMES[value.name]
    changes = [f"{k}={v}" for k, v in vars(value).items() if v != getattr(base, k)]
    return "-".join([value.name, *changes])


@pytest.mark.parametrize("name", PRESETS)
def test_preset__3000_deals(name):
    """Single deals of every preset."""
    twin = Twin(GAMES[name], 512, seed=101)
    twin.run(3_000)


@pytest.mark.parametrize("game", VARIANTS, ids=label)
def test_variant__deals(game):
    """Single deals under overrides: each for itself, two seats, labelled ends, small sets, other leads and scores."""
    twin = Twin(game, 128, seed=102)
    twin.run(400)


@pytest.mark.parametrize(("game", "fours"), MATCHES, ids=label)
def test_match__deals(game, fours):
    """Matches of one and two fours and to a score: leaders, running score, and its place in the observation."""
    twin = Twin(game, 48, seed=103, episode="match", fours=fours)
    twin.run(48 * 4 * fours + 300, look_every=5)
    assert twin.matches > 12


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_preset__30000_deals(name):
    Twin(GAMES[name], 1024, seed=201).run(30_000)
    Twin(GAMES[name], 256, seed=202, episode="match").run(8_000)


@pytest.mark.slow
@pytest.mark.parametrize("game", VARIANTS, ids=label)
def test_variant__many_deals(game):
    Twin(game, 512, seed=203).run(8_000)


def test_twin__compares_all_there_is():
    """A twin on other rules than the engine's finds the difference: the comparison can fail."""
    for name, changes in [
        ("sport_book", {"lone_blank": 0}),
        ("sport_book", {"block_score": "loser_total"}),
        ("sport_club", {"equal_block": "nothing"}),
        ("sport_book", {"labelled_ends": True}),
        ("puerto_rico", {"out_score": "losers"}),
    ]:
        twin = Twin(GAMES[name], 256, seed=104)
        for row, table in enumerate(twin.tables):
            twin.rows[row].game = table.game = make_game(name, **changes)
        with pytest.raises(AssertionError):
            twin.run(1_500)


@pytest.mark.parametrize("name", PRESETS)
def test_given_deals__played_alike(name):
    """Deals shuffled by the reference, S4 or not, given to the engine as arrays."""
    game = make_game(name, redeal=False)
    rng = random.Random(105)
    rows = 200
    deals = [shuffled(game, rng) for _ in range(rows)]
    leaders = [rng.randrange(4) for _ in range(rows)]
    engine = engine_of(GAMES[name], rows, seed=1)
    engine.deal(np.array([[mask_in(hand) for hand in deal] for deal in deals], np.uint32), np.array(leaders))
    tables = [Table(game if name != "sport_book" else GAMES[name], d, s) for d, s in zip(deals, leaders, strict=True)]
    live = np.arange(rows)
    outcomes = Counter()
    while len(live):
        actions = []
        mask = engine.legal()
        for j, row in enumerate(live):
            legal = tables[row].legal()
            assert np.flatnonzero(mask[j]).tolist() == legal
            actions.append(rng.choice(legal))
            tables[row].play(actions[-1])
        rewards, done = engine.step(np.array(actions), autoreset=False)
        for k, j in enumerate(engine.finished.rows):
            table = tables[live[j]]
            assert engine.finished.info(k) == table.result
            assert rewards[j].tolist() == table.rewards()
            outcomes[table.result["outcome"]] += 1
        assert done.tolist() == [tables[row].result is not None for row in live]
        live = live[~done]
        if len(live):
            engine = engine.take(~done)
    assert sum(outcomes.values()) == rows and len(outcomes) == 2

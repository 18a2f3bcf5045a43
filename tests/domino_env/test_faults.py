"""Faults that other projects shipped, under their numbers in field-faults.md: those that an engine can have."""

import multiprocessing
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from domino_env import DominoEnv, make_engine, parallel_env, raw_aec_env
from domino_env.rules import PRESETS
from tests.reference import GAMES, TILES, action_of, number
from tests.twin import tiles_in


def legal_names(engine, row=0):
    """Legal actions of a row as "ab" + end, like "35L"."""
    ids = np.flatnonzero(engine.legal()[row])
    return {"pass" if a == 56 else "{}{}".format(*TILES[a % 28]) + "LR"[a // 28] for a in ids}


@pytest.mark.parametrize("rules", sorted(PRESETS))
def test_b08__seed_fixes_deal_and_first_seat(rules):
    """A seeded reset gives the same deal and the same seat to move, whatever was played before."""
    played = make_engine(rules, 4, seed=999)
    rng = np.random.default_rng(999)
    deals, seeds = set(), 200 if rules in GAMES else 40  # deals of blitz and the blind games are long
    for seed in range(seeds):
        fresh = make_engine(rules, 4, seed=seed)
        hands, mover, legal = fresh.hands(), fresh.to_move(), fresh.legal()
        ended = 0
        while ended < (1, 3, 10)[seed % 3]:
            played.step(played.sample_legal(rng))
            ended += len(played.finished.rows)
        played.reset(seed=seed)
        for engine in (played, make_engine(rules, 4, seed=seed)):
            assert np.array_equal(engine.hands(), hands)
            assert np.array_equal(engine.to_move(), mover)
            assert np.array_equal(engine.legal(), legal)
        deals.add(hands[0].tobytes())
    assert len(deals) >= (seeds - 1 if rules != "tiny_pairs" else 190)


@pytest.mark.parametrize(
    ("rules", "keywords"), [("kozyol", {"episode": "match"}), ("puerto_rico", {"lead": "double_six"})]
)
def test_b08__every_seat_leads_as_often(rules, keywords):
    """Where a tile decides, each seat leads 25 % +- 1.3 points of 10,000 unseeded deals."""
    share = np.bincount(make_engine(rules, 10_000, **keywords).leader(), minlength=4) / 10_000
    assert (abs(share - 0.25) < 0.022).all(), share  # five standard errors; a seed would make 1.3 points mean something
    share = np.bincount(make_engine(rules, 10_000, seed=3, **keywords).leader(), minlength=4) / 10_000
    assert (abs(share - 0.25) < 0.013).all(), share


@pytest.mark.parametrize("labelled_ends", [False, True])
def test_b14__an_id_is_a_tile_and_an_end(labelled_ends):
    """What an id does depends on the id alone, over more than 5,000 states."""
    engine = make_engine("sport_book", 256, seed=91, labelled_ends=labelled_ends)
    rng = np.random.default_rng(91)
    met = set()
    for _ in range(40):
        mask, hands, mover, ends = engine.legal(), engine.hands(), engine.to_move(), engine.ends()
        actions = engine.sample_legal(rng)
        twin = engine.take(np.arange(256))
        twin.step(actions, autoreset=False)
        after, shown = twin.hands(), twin.ends()
        for row, action in enumerate(actions.tolist()):
            assert mask[row, action]
            met.add(action)
            gone = tiles_in(hands[row, mover[row]] ^ after[row, mover[row]])
            if action == 56:
                assert gone == [] and np.array_equal(shown[row], ends[row])
                continue
            tile = TILES[action % 28]
            assert gone == [tile]
            if ends[row, 0] < 0:
                assert action < 28 and tuple(shown[row]) == tile
            elif action < 28:
                assert shown[row].tolist() == [sum(tile) - ends[row, 0], ends[row, 1]]
            else:
                assert shown[row].tolist() == [ends[row, 0], sum(tile) - ends[row, 1]]
        engine.step(actions)
    assert met == set(range(57))


def test_b14__legal_ids_are_accepted_and_all_others_refused():
    engine = make_engine("sport_book", 6, seed=92)
    rng = np.random.default_rng(92)
    for _ in range(30):
        for row in range(6):
            legal = set(np.flatnonzero(engine.legal()[row]).tolist())
            accepted = set()
            for action in range(57):
                one = engine.take(np.array([row]))
                try:
                    one.step(np.array([action]))
                    accepted.add(action)
                except ValueError:
                    pass
            assert accepted == legal
        engine.step(engine.sample_legal(rng))


def test_b14__example():
    """Ends 3 and 5, hand 01 02 06 12 33 35 55: four plays; 35L leaves 5 and 5, 35R leaves 3 and 3."""
    hands = [
        ["0-1", "0-2", "0-6", "1-2", "3-3", "3-5", "5-5"],
        ["0-0", "0-3", "0-4", "0-5", "1-1", "1-3", "1-4"],
        ["3-4", "1-5", "1-6", "2-2", "2-3", "2-4", "2-5"],
        ["4-5", "2-6", "3-6", "4-4", "4-6", "5-6", "6-6"],
    ]
    engine = make_engine("sport_book", 2)
    engine.reset(options={"hands": hands, "leader": 2})
    engine.step(np.full(2, action_of((3, 4), "L")))
    engine.step(np.full(2, action_of((4, 5), "R")))
    assert engine.ends().tolist() == [[3, 5]] * 2
    assert legal_names(engine) == {"33L", "35L", "35R", "55R"}
    engine.step(np.array([action_of((3, 5), "L"), action_of((3, 5), "R")]))
    assert engine.ends().tolist() == [[5, 5], [3, 3]]


def test_b15__the_opening_is_not_offered_twice():
    """Seven ids for seven tiles (one where 6-6 must be led), all on the left; 3-4 opens 3 and 4, 4-4 opens 4 and 4."""
    for lead, count in (("rotation", 7), ("double_six", 1)):
        for labelled_ends in (False, True):
            engine = make_engine("puerto_rico", 500, seed=93, lead=lead, labelled_ends=labelled_ends)
            mask = engine.legal()
            assert (mask.sum(axis=1) == count).all() and not mask[:, 28:].any()
    engine = make_engine("puerto_rico", 500, seed=93)
    for tile in ((3, 4), (4, 4)):
        rows = np.flatnonzero(engine.legal()[:, number(tile)])
        one = engine.take(rows)
        one.step(np.full(len(rows), action_of(tile, "L")))
        assert (one.ends() == tile).all()


@pytest.mark.parametrize("labelled_ends", [False, True])
def test_b15__one_convention_for_equal_ends(labelled_ends):
    """Equal ends: one id a tile, the left one; two only where ends are labelled."""
    engine = make_engine("sport_book", 500, seed=94, labelled_ends=labelled_ends)
    rng = np.random.default_rng(94)
    seen = 0
    for _ in range(40):
        ends, mask = engine.ends(), engine.legal()
        equal = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0) & (mask[:, 56] == 0)
        seen += equal.sum()
        expected = mask[equal, :28] if labelled_ends else 0
        assert (mask[equal, 28:56] == expected).all() and mask[equal, :28].any(axis=1).all()
        engine.step(engine.sample_legal(rng))
    assert seen > 1_000


def test_b16__the_chain_can_be_rebuilt_from_the_log():
    """2,000 deals: neighbours match, no tile lies twice, the outer ends are the engine's."""
    engine = make_engine("sport_book", 2_000, seed=95)
    rng = np.random.default_rng(95)
    deals = 0
    while True:
        engine.step(engine.sample_legal(rng), autoreset=False)
        over = engine.over()
        events, plies, ends = engine.history(0), engine.plies(), engine.ends()
        for row in np.flatnonzero(over):
            chain = []
            for event in events[row, : plies[row]].tolist():
                action, before = event & 63, (event >> 9 & 7, event >> 6 & 7)
                assert before == ((chain[0][0], chain[-1][1]) if chain else (7, 7))
                if action == 56:
                    continue
                tile = TILES[action % 28]
                if not chain:
                    chain = [tile]
                elif action < 28:
                    chain.insert(0, tile if tile[1] == chain[0][0] else tile[::-1])
                else:
                    chain.append(tile if tile[0] == chain[-1][1] else tile[::-1])
            assert all(left[1] == right[0] for left, right in pairwise(chain))
            assert len({tuple(sorted(tile)) for tile in chain}) == len(chain)
            assert ends[row].tolist() == [chain[0][0], chain[-1][1]]
            deals += 1
        if over.all():
            break
        engine = engine.take(~over) if over.any() else engine
    assert deals == 2_000


@pytest.mark.parametrize(
    ("ends", "move", "after"),
    [((3, 4), ((4, 5), "R"), (3, 5)), ((4, 6), ((4, 4), "L"), (4, 6)), ((2, 5), ((2, 3), "L"), (3, 5))],
)
def test_b16__spot_values(ends, move, after):
    """The outer half of the laid tile becomes the end."""
    rest = [tile for tile in TILES if tile not in (ends, move[0])]
    hands = [[ends, *rest[:6]], [move[0], *rest[6:12]], rest[12:19], rest[19:]]
    engine = make_engine("sport_book", 1)
    engine.reset(options={"hands": [[f"{a}-{b}" for a, b in hand] for hand in hands], "leader": 0})
    engine.step(np.array([action_of(ends, "L")]))
    assert tuple(engine.ends()[0]) == ends
    engine.step(np.array([action_of(*move)]))
    assert tuple(engine.ends()[0]) == after


def test_b16__the_set():
    """28 tiles, seven each, 168 pips, each double once, in every one of 5,000 deals."""
    hands = make_engine("sport_club", 5_000, seed=96).hands()
    for row in hands[:200]:
        dealt = [tile for mask in row for tile in tiles_in(mask)]
        assert sorted(dealt) == TILES and sum(a + b for a, b in dealt) == 168
        assert sorted(tile for tile in dealt if tile[0] == tile[1]) == [(k, k) for k in range(7)]
    assert (np.bitwise_xor.reduce(hands, axis=1) == (1 << 28) - 1).all() and (np.bitwise_count(hands) == 7).all()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_b11__resets_do_not_pile_up():
    """5,000 resets of each of four kinds of table leave the resident memory as it was."""
    envs = [raw_aec_env(), parallel_env(history=True), DominoEnv()]
    engine = make_engine("sport_book", 64, seed=1, episode="match")

    def reset(times):
        for _ in range(times):
            for env in envs:
                env.reset()
            engine.reset_rows(np.arange(64))
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = reset(500)
    assert reset(5_000) - before < 2 << 20


def deals_of_a_worker(seed, answers):
    """First deals of an unseeded and of a seeded engine."""
    answers.put([make_engine("sport_book", 20, seed=s).hands().tolist() for s in (None, seed)])


@pytest.mark.parametrize("method", sorted({"fork", "spawn"} & set(multiprocessing.get_all_start_methods())))
def test_b28__workers_do_not_play_the_same_deals(method):
    """Eight processes: unseeded ones all differ, also when NumPy's global state is the same; seeded ones repeat."""
    context = multiprocessing.get_context(method)
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    answers = context.SimpleQueue()
    workers = [context.Process(target=deals_of_a_worker, args=(seed, answers), daemon=True) for seed in range(8)]
    for worker in workers:
        worker.start()
    told = [answers.get() for _ in workers]
    for worker in workers:
        worker.join(10)
        assert worker.exitcode == 0
    np.random.set_state(state)  # noqa: NPY002
    for kind in (0, 1):
        assert len({str(deal) for answer in told for deal in answer[kind]}) == 160
    here = [make_engine("sport_book", 20, seed=seed).hands().tolist() for seed in range(8)]
    assert sorted(answer[1] for answer in told) == sorted(here)

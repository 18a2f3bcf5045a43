"""The planted player: what it says, who hears it, and that without strength it is the player without a convention."""

import itertools
from typing import Any

import numpy as np
import pytest

from agents.base import Decisions, decide, make_agent
from agents.planted import CODE, Planted, asked, claims
from domino_env import get_rules, make_engine
from domino_env.deals import Streams
from domino_env.engine import Engine
from domino_env.tiles import HIGH, LOW, PASS, PIPS, tiles_of

LINE = ["sport_book", "sport_club", "puerto_rico", "kozyol", "tiny_pairs"]
NAMES = ["planted", "planted:strength=0", "planted:strength=2,listen=3", "planted:strength=8,noise=2,temperature=3"]


def tables(rules: Any, rows: int = 60, seed: int = 3) -> list[Engine]:
    """One engine after every ply of deals that are played at random, without those that are over."""
    engine: Any = make_engine(rules, rows, seed=seed)
    rng, found = np.random.default_rng(seed), []
    while True:
        found.append(engine.take(np.arange(engine.num_envs)))
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
        if done.all():
            return found
        engine = engine.take(~done)


def questions(rules: Any, agent: Any, rows: int = 60) -> list[tuple[Engine, Decisions]]:
    return [(engine, decide(engine, agent)) for engine in tables(rules, rows)]


@pytest.mark.parametrize(("name", "game"), list(itertools.product(NAMES, LINE)))
def test_probabilities__are_of_legal_moves_and_do_not_hang_on_the_batch(name: str, game: str) -> None:
    rules = get_rules(game)
    if "listen" in name and not rules.pairs:
        with pytest.raises(ValueError, match="needs a partner"):
            make_agent(name, rules)
        return
    agent: Any = make_agent(name, rules)
    choices = 0
    for engine, batch in questions(rules, agent, rows=20):
        p = agent.probabilities(batch)
        assert p.shape == batch.mask.shape and p.dtype == np.float64
        assert ((p > 0) == (batch.mask != 0)).all() and np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        rows = np.arange(engine.num_envs)[::-2]
        assert np.array_equal(agent.probabilities(batch.take(rows)), p[rows])
        assert np.array_equal(agent.probabilities(batch.take(rows[:1])), p[rows[:1]])
        choices += int((batch.mask.sum(axis=1) > 1).sum())
    assert choices > 40


def test_without_strength_it_is_the_player_without_a_convention() -> None:
    """softmax of pips over a temperature, to the bit, whatever else there is to know."""
    agent = Planted(0)
    heavy = np.append(np.tile(PIPS, 2), 0).astype(float)
    for _, batch in questions("sport_book", agent):
        worth = np.where(batch.mask != 0, heavy, -np.inf)
        p = np.exp(worth - worth.max(axis=1, keepdims=True))
        assert np.array_equal(agent.probabilities(batch), p / p.cumsum(axis=1)[:, -1:])
        assert np.array_equal(Planted(0, listen=0.0, noise=0.0).probabilities(batch), agent.probabilities(batch))


def told(engine: Any, row: int) -> bool:
    """Whether the mover holds at least a quarter of its tiles in the suit it speaks of, from the open hands."""
    suit = sum(len(tiles_of(int(one))) for one in engine.played()[row]) % 7
    hand = tiles_of(int(engine.hands()[row, engine.to_move()[row]]))
    return 4 * sum(suit in (LOW[t], HIGH[t]) for t in hand) >= len(hand)


def test_what_it_says_is_true_as_far_as_it_is_strong() -> None:
    """The odds of two actions are those without a convention, times e ** strength for the one that tells the truth."""
    base, agent = Planted(0), Planted(3)
    compared = 0
    for engine, batch in questions("sport_book", agent, rows=15):
        p, q = agent.probabilities(batch), base.probabilities(batch)
        for row in range(len(batch)):
            legal = np.flatnonzero(batch.mask[row])
            if len(legal) < 2:
                continue
            true = (CODE[legal] == 1) == told(engine, row)
            odds = p[row, legal] / q[row, legal]
            assert np.allclose(odds / odds.min(), np.exp(3.0 * (true.astype(int) - true.min())))
            compared += 0 < true.sum() < len(true)
    assert compared > 40


def test_all_suits_are_spoken_of_and_longs_are_common() -> None:
    rng, holds = np.random.default_rng(0), []
    for engine in tables("sport_book"):
        batch = decide(engine)
        laid = np.bitwise_count(engine.played()).sum(axis=1)
        assert np.array_equal(asked(batch.obs, get_rules("sport_book")), laid % 7)
        holds += [told(engine, row) for row in rng.permutation(engine.num_envs)[:5]]
    assert 0.3 < np.mean(holds) < 0.7


def test_claims__are_read_off_the_past() -> None:
    """By hand: the partner's events alone count, the last of a suit stands, passes say nothing."""
    rules = get_rules("sport_book")

    def event(seat: int, action: int) -> int:
        return seat << 12 | 3 << 9 | 3 << 6 | action

    # Tiles on the line before each: 0, 1, 1, 2, 3; the padding is no event.
    past = [event(0, 5), event(1, PASS), event(2, 7), event(3, 4), event(2, 28 + 7)] + [-1]
    said = claims(np.array([past, [event(2, 4), *[-1] * 5]]), rules)
    assert said[0].tolist() == [0, 1, 0, -1, 0, 0, 0, 0]  # 7 says long; 7 at the other end says short
    assert said[1].tolist() == [-1, 0, 0, 0, 0, 0, 0, 0]
    assert claims(np.array([past]), rules, place=3)[0].tolist() == [0, 0, -1, 0, 0, 0, 0, 0]
    again = [event(2, 4), *[event(1, 5)] * 6, event(2, 5)]  # seven tiles later it speaks of suit 0 again
    assert claims(np.array([again]), rules)[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_listening__is_to_the_partner_alone() -> None:
    agent, deaf = Planted(2, listen=3), Planted(2)
    changed = 0
    for _, batch in questions("sport_book", agent):
        p, q = agent.probabilities(batch), deaf.probabilities(batch)
        said = claims(batch.history.astype(int), get_rules("sport_book"))
        quiet = ~said.any(axis=1)
        assert np.allclose(p[quiet], q[quiet], rtol=0, atol=1e-15)
        changed += int((abs(p - q).max(axis=1) > 0.05).sum())
        # What the opponents laid, on which ends, and when, changes nothing but the number of tiles.
        other = batch.history.copy()
        theirs = (other >= 0) & (other >> 12 != 2) & (other & 63 != PASS)
        other[theirs] = other[theirs] & ~0o7777 | 0o3305
        batch.history = other
        assert np.array_equal(agent.probabilities(batch), p)
    assert changed > 100


def test_listening__opens_what_the_partner_is_long_in() -> None:
    agent, deaf = Planted(0, listen=2), Planted(0)
    compared = 0
    for engine, batch in questions("sport_book", agent, rows=20):
        said = claims(batch.history.astype(int), get_rules("sport_book"))
        p, q, ends = agent.probabilities(batch), deaf.probabilities(batch), engine.ends().astype(int)
        for row in np.flatnonzero(ends[:, 0] >= 0):
            legal = np.flatnonzero(batch.mask[row, :PASS])
            opens = [int(PIPS[a % 28]) - ends[row, a // 28] for a in legal]
            gain = np.exp(2.0 * said[row, opens]) if opens else np.ones(0)
            odds = p[row, legal] / np.maximum(q[row, legal], 1e-300)
            assert np.allclose(odds * gain[:1], odds[:1] * gain) if opens else True
            compared += len(set(gain.tolist())) > 1
    assert compared > 30


def test_noise__follows_the_past_and_not_the_hand() -> None:
    agent, quiet = Planted(0, noise=2), Planted(0)
    coins = []
    for _, batch in questions("sport_book", agent):
        p, q = agent.probabilities(batch), quiet.probabilities(batch)
        row, action = np.nonzero(batch.mask)
        first = np.flatnonzero(np.diff(row, prepend=-1))
        ratio = np.log(p[row, action] / q[row, action])
        low = np.minimum.reduceat(ratio, first)[np.searchsorted(first, np.arange(len(row)), "right") - 1]
        step = (ratio - low) / 2
        assert np.allclose(step, np.round(step), atol=1e-9) and step.max() < 1.001
        several = batch.mask.sum(axis=1)[row] > 1
        coins += step[several].tolist()
        longer = np.full((len(batch), batch.history.shape[1] + 9), -1, np.int16)  # more room for events is no event
        longer[:, : batch.history.shape[1]] = batch.history
        batch.history = longer
        assert np.array_equal(agent.probabilities(batch), p)
    assert 0.2 < np.mean(coins) < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_act__draws_by_the_probabilities(name: str) -> None:
    agent: Any = make_agent(name)
    engine = tables("sport_book", rows=8)[9]
    times = 3000
    many: Any = engine.take(np.repeat(np.arange(engine.num_envs), times))
    batch = decide(many, agent, Streams.of(1, np.arange(many.num_envs)))
    drawn = agent.act(batch).reshape(-1, times)
    p = agent.probabilities(decide(engine, agent))
    for row in range(len(p)):
        share = np.bincount(drawn[row], minlength=p.shape[1]) / times
        assert np.abs(share - p[row]).max() < 4.5 * np.sqrt(0.25 / times) and not share[p[row] == 0].any()
    part = decide(many, agent, Streams.of(1, np.arange(many.num_envs)), rows=np.arange(5, many.num_envs, 7))
    assert np.array_equal(agent.act(part), drawn.ravel()[5::7])


def test_names_and_refusals() -> None:
    assert make_agent("planted:strength=2,listen=1.5").name == "planted:strength=2,listen=1.5"
    assert Planted().needs_history is False and Planted(noise=1).needs_history is True
    with pytest.raises(ValueError, match="one tile a turn on an open line"):
        make_agent("planted", "blitz")
    with pytest.raises(ValueError, match="not blind"):
        make_agent("planted", "blind")
    with pytest.raises(ValueError, match="no option 'loud'"):
        make_agent("planted:loud=2")
    with pytest.raises(ValueError, match="strength=inf must be a finite number"):
        make_agent("planted:strength=inf")
    with pytest.raises(ValueError, match="noise=True must be a finite number"):
        make_agent("planted:noise=true")
    with pytest.raises(ValueError, match="temperature=0 must be above 0"):
        make_agent("planted:temperature=0")
    batch = decide(tables("sport_book", rows=2)[0], Planted())
    with pytest.raises(ValueError, match=r"needs batch\.history"):
        Planted(listen=1).probabilities(batch)
    with pytest.raises(ValueError, match=r"needs batch\.rng"):
        Planted().act(batch)
    with pytest.raises(ValueError, match="observations of sport_book"):
        Planted().probabilities(Decisions(batch.obs[:, :64], batch.mask, batch.seat, rules=get_rules("sport_book")))

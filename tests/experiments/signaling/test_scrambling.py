"""A spoilt speaker: the agent itself with share 0, the uniform player with share 1, and slopes board by board."""

import json
import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from agents import make_agent
from agents.base import has_probabilities
from agents.search.asking import answers
from domino_env.decisions import Decisions
from experiments.evaluate import evaluate
from experiments.signaling.record import play
from experiments.signaling.scrambling import Preferences, Scrambled, Scrambling, scramble, slopes


def flat(batch):
    """No move is better than another."""
    return np.zeros(batch.mask.shape)


def first(batch):
    """The lower the action, the better."""
    return -np.arange(batch.mask.shape[1]) * np.ones((len(batch), 1))


class Secretive:
    """A player without probabilities."""

    name = "secretive"

    def act(self, batch):
        return batch.mask.argmax(axis=1)


@pytest.mark.parametrize("agent", [make_agent("club"), make_agent("random"), Secretive()], ids=lambda one: one.name)
def test_scrambled__share_0_is_the_agent(agent):
    one = Scrambled(agent, 0, math.inf, flat)
    mine, its = (evaluate(side, "greedy", boards=30, seed=1).values for side in (one, agent))
    assert (mine == its).all() and mine.any() and one.counts["changed"] == 0 < one.counts["asked"]
    assert has_probabilities(one) == has_probabilities(agent)


def test_scrambled__share_1_is_the_uniform_player():
    one, even = Scrambled(make_agent("club"), 1, math.inf, first), make_agent("random")
    moments = play(one, deals=300, seed=2).moments
    rows = np.arange(len(moments))
    said, legal = answers(moments.seen_by(0), one, rows, moments.hand())
    alike, _ = answers(moments.seen_by(0), even, rows, moments.hand())
    assert (said == alike).all()
    # Of decisions with two moves the lower one is played in half of the cases.
    two = np.bitwise_count(legal) == 2
    lower = legal[two] & -legal[two] == np.uint64(1) << moments.action[two].astype(np.uint64)
    assert two.sum() > 1000 and abs(lower.mean() - 0.5) < 4 * 0.5 / two.sum() ** 0.5


def test_scrambled__plays_as_its_probabilities_say():
    one = Scrambled(make_agent("greedy"), 0.4, 10, first)
    moments = play(one, deals=300, seed=3).moments
    said, _ = answers(moments.seen_by(0), one, np.arange(len(moments)), moments.hand())
    assert np.allclose(said.sum(axis=1), 1)
    chance = said[np.arange(len(said)), moments.action]
    assert (chance > 0).all()
    likely = said.max(axis=1)
    expected, spread = likely.mean(), ((likely * (1 - likely)).sum()) ** 0.5 / len(likely)
    assert abs((chance == likely).mean() - expected) < 4 * spread + (likely == 0.5).mean()


def test_scrambled__only_good_moves_come_in():
    """As good as the speaker's own: a better one would be another player, no spoilt message."""
    never = Scrambled(make_agent("club"), 1, 0, first)  # no two moves are worth the same
    assert (play(never, deals=40, seed=2).moments.action == play("club", deals=40, seed=2).moments.action).all()
    assert never.counts["open"] == never.counts["changed"] == 0 < never.counts["replaced"]
    near = Scrambled(make_agent("double_first"), 1, 5, first)
    moments = play(near, deals=60, seed=2, tiles=[0]).moments
    apart = moments.action - play("double_first", deals=60, seed=2, tiles=[0]).moments.action
    assert (abs(apart) <= 5).all() and (apart < 0).any() and (apart > 0).any() and near.counts["open"] > 0


def test_good__is_what_is_near_the_own_move():
    worth = np.array([[0.0, 3, 5, 6, 9], [0, 3, -math.inf, -math.inf, 9]])
    batch = Decisions(
        np.zeros((2, 3), np.uint8), np.array([[1, 1, 1, 1, 0], [1, 0, 1, 1, 1]], np.int8), np.zeros(2, int)
    )
    good = Scrambled(make_agent("random"), 1, 2.5, lambda _: worth).good(batch, np.array([2, 2]))
    assert good.tolist() == [[False, True, True, True, False], [False, False, True, True, False]]
    wide = Scrambled(make_agent("random"), 1, math.inf, lambda _: worth).good(batch, np.array([2, 2]))
    assert (wide == (batch.mask != 0)).all()


def test_scrambled__probabilities_mix_what_stands_beside_each_own_move():
    """Against a sum over all pairs of moves, written out."""

    class Fixed:
        name, said = "fixed", np.array([[0.5, 0.0, 0.2, 0.3]])

        def act(self, batch):
            return np.zeros(len(batch), np.int64)

        def probabilities(self, batch):
            return self.said

    worth = np.array([[0.0, 1, 2, 10]])
    batch = Decisions(np.zeros((1, 3), np.uint8), np.ones((1, 4), np.int8), np.zeros(1, int))
    one = Scrambled(Fixed(), 0.5, 1, lambda _: worth)
    expected = np.zeros(4)
    for own in range(4):
        near = [move for move in range(4) if abs(worth[0, move] - worth[0, own]) <= 1]
        expected[near] += Fixed.said[0, own] / len(near)
    assert one.probabilities(batch)[0] == pytest.approx(Fixed.said[0] / 2 + expected / 2)


def test_scrambled__chance_is_its_own():
    """Whether a move is replaced has nothing to do with what the agent drew, nor with how decisions are batched."""
    one = Scrambled(make_agent("random"), 0.5, math.inf, flat)
    values = [evaluate(one, "greedy", boards=30, seed=4, batch=batch).values for batch in (30, 7)]
    assert (values[0] == values[1]).all()
    seen = {share: set() for share in (0.3, 0.6)}
    for share, rows in seen.items():
        spoilt = Scrambled(make_agent("greedy"), share, math.inf, flat)
        moments = play(spoilt, deals=100, seed=4, tiles=[0]).moments
        honest = play("greedy", deals=100, seed=4, tiles=[0]).moments
        rows.update(np.flatnonzero(moments.action != honest.action).tolist())
    assert seen[0.3] < seen[0.6]


def test_scrambled__keeps_to_what_the_agent_needs():
    class Judge:
        needs_history = True

        def __call__(self, batch):
            assert batch.history is not None
            return flat(batch)

    class Asked:
        name, batch_hint, sees_everything = "asked", 3, True

        def act(self, batch):
            assert batch.table is not None
            return batch.mask.argmax(axis=1)

        def check(self, rules):
            raise ValueError("not this game")

    one = Scrambled(Asked(), 0.5, 1, Judge())
    assert one.batch_hint == 3 and not has_probabilities(one)
    with pytest.raises(ValueError, match="not this game"):
        evaluate(one, "greedy", boards=2)
    one.agent = make_agent("greedy")
    evaluate(one, "greedy", boards=2)


def test_preferences():
    judge = Preferences(make_agent("random"))
    batch = Decisions(np.zeros((1, 3), np.uint8), np.array([[1, 1, 0]], np.int8), np.zeros(1, np.int64))
    assert judge(batch).tolist() == [[math.log(0.5), math.log(0.5), -math.inf]]
    assert Scrambled(make_agent("random"), 1, 0, judge).good(batch, np.zeros(1, int)).tolist() == [[True, True, False]]
    with pytest.raises(ValueError, match="has no probabilities"):
        Preferences(Secretive())


def test_slopes__by_hand():
    shares = np.array([0, 0.5, 1])
    values = np.array([[10.0, 3], [9, 3], [6, 3]])
    assert slopes(shares, values).tolist() == [-4, 0]
    heavy = slopes(shares, values, [1, 0, 1])
    assert heavy.tolist() == [-4, 0]
    assert slopes(shares, values, [1, 1, 0]) == pytest.approx([-2, 0])
    rng = np.random.default_rng(0)
    shares, values = np.array([0, 0.25, 0.5, 1]), rng.normal(size=(4, 30))
    by_numpy = np.polyfit(shares, values, 1)[0]
    assert slopes(shares, values) == pytest.approx(by_numpy)
    assert slopes(shares, values).mean() == pytest.approx(np.polyfit(shares, values.mean(axis=1), 1)[0])


def test_slope__boards_are_paired():
    """What a board is worth by itself, however much, is not in the error."""
    rng = np.random.default_rng(1)
    boards = rng.normal(size=200) * 50
    shares = np.array([0, 0.25, 0.5, 1])
    hear = boards - 3 * shares[:, None] + 0.1 * rng.normal(size=(4, 200))
    deaf = boards - 1 * shares[:, None] + 0.1 * rng.normal(size=(4, 200))
    one = Scrambling("s", "p", "d", ("o",), "sport_book", 0, 1.0, shares, hear, deaf)
    assert one.slope.covers(-3) and one.slope.error < 0.02 and one.message is not None
    assert one.message.covers(2) and one.message.told and one.curve[-1].mean == pytest.approx(-3, abs=0.1)
    assert one.curve[0].mean == 0


def test_scramble__matches_and_report(tmp_path):
    pool, told = ["double_first", "random"], []
    words = {"shares": (0, 1), "boards": 20, "seed": 2, "deaf": "random", "claim": 0.1, "folder": tmp_path}
    one = scramble("greedy", "greedy", pool, flat, math.inf, progress=lambda *now: told.append(now), **words)
    assert told[-1] == (160, 160) and one.shares.tolist() == [0, 1]

    def won(side):
        return np.mean([evaluate(side, other, boards=20, seed=2).values for other in pool], axis=0)

    assert (one.values[0] == won("greedy")).all() and one.deaf_values is not None
    assert (one.deaf_values[0] == won(("greedy", "random"))).all()
    assert one.slope.mean == pytest.approx(one.values[1].mean() - one.values[0].mean())
    assert one.doses[0].changed == 0 and one.doses[1].changed > 0.3 * one.doses[1].asked
    assert one.doses[1].open == one.doses[1].asked  # forced moves are not asked
    assert any("boards are too few for a claim of 0.1 points" in note for note in one.notes)
    plain = json.dumps(one.to_dict(), allow_nan=False)
    again = scramble("greedy", "greedy", pool, flat, math.inf, **words)
    assert json.dumps(again.to_dict(), allow_nan=False) == plain and len(list(tmp_path.iterdir())) == 8
    axes = Figure().add_subplot()
    one.draw(axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["partner", "deaf partner"]
    assert [name for name, _ in one.rows()][:3] == ["dJ/de", "dJ/de beside a deaf partner", "worth of the message"]


def test_scramble__nothing_to_spoil():
    """A judge who holds one move alone to be good, and the speaker's own: nothing changes, and it says so."""
    agent = make_agent("greedy")
    one = scramble(agent, "club", ["random"], Preferences(agent), 1, boards=10)
    assert (one.slope.mean, one.slope.low, one.slope.high) == (0, 0, 0) and one.message is None
    assert "only 0.0 % of the moves were changed" in one.notes[0]


@pytest.mark.parametrize(
    ("share", "within", "values", "line"),
    [
        (1.2, 0, flat, "share=1.2"),
        (0.5, -1, flat, "within=-1"),
        (0.5, math.nan, flat, "within=nan"),
        (1, 0, lambda batch: flat(batch)[:, 1:], "not"),
        (1, 0, lambda batch: flat(batch) + math.inf, "below infinity"),
        (1, 0, lambda batch: flat(batch) + math.nan, "below infinity"),
    ],
)
def test_errors(share, within, values, line):
    batch = Decisions(np.zeros((1, 3), np.uint8), np.array([[1, 1, 0]], np.int8), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match=line):
        Scrambled(make_agent("club"), share, within, values).good(batch, np.zeros(1, int))


def test_errors__of_scramble():
    for words, line in (
        ({"shares": (0.5, 0.5)}, "must rise"),
        ({"pool": []}, "list of opponents"),
        ({"claim": 0}, "claim=0"),
        ({"rules": "blitz"}, "no game of pairs"),
    ):
        with pytest.raises(ValueError, match=line):
            scramble("club", "club", words.pop("pool", ["greedy"]), flat, 1, **words)
    with pytest.raises(ValueError, match=r"needs batch\.rng"):
        batch = Decisions(np.zeros((1, 3), np.uint8), np.array([[1, 1, 0]], np.int8), np.zeros(1, np.int64))
        Scrambled(make_agent("greedy"), 1, 1, flat).act(batch)

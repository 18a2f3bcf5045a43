"""What moves tell of a hand: against counting all deals, and with players of whom the answer is known."""

import itertools
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from agents import make_agent
from agents.base import one_hot
from agents.search.beliefs import RulesBelief
from agents.search.reading import log_likelihood, policy_belief
from domino_env.tiles import mask_of, tile_index, tiles_of
from experiments.signaling.decoding import (
    BINARY,
    SAME,
    TARGETS,
    answers_of,
    by_the_rules,
    calibration,
    decode,
    forecast,
    reliability,
)
from experiments.signaling.record import play


class Wavering:
    """Plays like the club player, but for every third move, which it draws."""

    name = "wavering"
    needs_history = True

    def __init__(self):
        self.club = make_agent("club")

    def act(self, batch):
        said = self.probabilities(batch).cumsum(axis=1)
        return (said > batch.rng.random(len(batch))[:, None] * said[:, -1:]).argmax(axis=1)

    def probabilities(self, batch):
        even = batch.mask / batch.mask.sum(axis=1, keepdims=True)
        return 2 / 3 * one_hot(self.club.act(batch), batch.mask.shape[1]) + even / 3


@pytest.fixture(scope="module")
def wavering():
    agent = Wavering()
    record = play(agent, deals=120, seed=2, tiles=[14, 15, 16, 17], each=1)
    return agent, record.moments


def test_answers_of():
    hand = mask_of(map(tile_index, ("0-0", "0-3", "3-5", "3-3", "1-6")))
    answers = {target: answers_of(np.array([hand], np.uint32), target)[0].tolist() for target in TARGETS}
    assert answers == {
        "holds": [1, 1, 0, 1, 0, 1, 1],
        "double": [1, 0, 0, 1, 0, 0, 0],
        "void": [0, 0, 1, 0, 1, 0, 0],
        "count": [2, 1, 0, 3, 0, 1, 1],
        "longest": [3],
    }
    assert answers_of(np.array([mask_of([tile_index("1-2"), tile_index("4-4")])], np.uint32), "longest").item() == SAME


def all_deals(position):
    """Every way to deal the hidden tiles of a position of one row that the rules allow: (D, seats) masks."""
    seats, viewer = range(position.rules.seats), int(position.viewer[0])
    others = [seat for seat in seats if seat != viewer]

    def ways(tiles, left):
        if not left:
            yield {}
            return
        for some in itertools.combinations(sorted(tiles), int(position.sizes[0, left[0]])):
            for rest in ways(tiles - set(some), left[1:]):
                yield {left[0]: mask_of(some), **rest}

    hands = [
        [way.get(seat, int(position.own[0])) for seat in seats]
        for way in ways(set(tiles_of(int(position.hidden[0]))), others)
    ]
    hands = np.array(hands, np.uint32)
    return hands[RulesBelief(position.take(np.zeros(len(hands), int))).fits(hands)]


def test_forecast__counts_all_deals():
    moments = play("club", deals=40, seed=6, tiles=[18, 19], each=1).moments
    moments = moments.take(np.arange(3))
    models = [make_agent("club"), "uniform", "rules", make_agent("greedy")]
    for by, of in ((2, 0), (1, 3)):
        seen, seat = moments.seen_by(by), (moments.seat + of) % 4
        exact = forecast(policy_belief(seen, models, floor=0.1, method="exact"), seat)
        for row in range(len(moments)):
            one = seen.take(np.array([row]))
            hands = all_deals(one)
            weight = np.exp(log_likelihood(one, models, hands[None], floor=0.1)[0].sum(axis=1))
            weight /= weight.sum()
            for target, q in exact.items():
                answer = answers_of(hands[:, seat[row]], target)
                for suit in range(q.shape[1]):
                    counted = np.bincount(answer[:, suit], weight, minlength=q.shape[2])
                    assert np.abs(q[row, suit] - counted).max() < 1e-12


def test_forecast__agrees_with_the_belief_and_with_worlds():
    moments = play("club", deals=12, seed=6, tiles=[13], each=1).moments
    seen, seat, here = moments.seen_by(1), moments.seat, np.arange(len(moments))
    models = [make_agent("club")] * 4
    exact = policy_belief(seen, models, floor=0.3)
    said = forecast(exact, seat)
    assert np.allclose(said["holds"][:, :, 1], exact.holds()[here, seat])
    doubles = [tile_index(f"{suit}-{suit}") for suit in range(7)]
    assert np.allclose(said["double"][:, :, 1], exact.marginals()[here, seat][:, doubles])
    count = (said["count"] * np.arange(8)).sum(axis=(1, 2))
    singles = [tile for tile in range(28) if tile not in doubles]
    assert np.allclose(count, exact.marginals()[here, seat] @ (1 + np.isin(np.arange(28), singles)))
    worlds = forecast(policy_belief(seen, models, floor=0.3, method="sampled", candidates=4000), seat)
    for target in TARGETS:
        assert np.abs(worlds[target] - said[target]).mean() < 0.03 and (worlds[target] > 0).all()
    by_rules = forecast(policy_belief(seen, ["rules"] * 4), seat)
    for target in BINARY:
        closed, summed = by_the_rules(RulesBelief(seen), seat, target), by_rules[target][:, :, 1]
        assert np.abs(closed - summed).max() < 1e-13  # far below what counts as settled
    with pytest.raises(ValueError, match="its own hand"):
        forecast(exact, seen.viewer)
    with pytest.raises(ValueError, match="RulesBelief lists no hands"):
        forecast(RulesBelief(seen), seat)


def test_decode__nothing_to_know():
    """Who knows the rules alone gains nothing on itself, and random play is what a random reference plays."""
    moments = play("random", deals=25, seed=3, tiles=[14, 15], each=1).moments
    found = decode(moments, "random", "uniform")
    for one in found.targets.values():
        assert abs(one.gain["reference"].total.mean) < 1e-12 and one.gain["reference"].total.error < 1e-12
    assert found.targets["holds"].gain["rules"].total.mean != 0
    same = decode(moments, "rules", "rules", targets=["holds", "longest"])
    assert all(one.gain["rules"].total.mean == 0 for one in same.targets.values())
    assert all(len(one.gain["rules"].each) == size for one, size in zip(same.targets.values(), (7, 1)))


def test_decode__a_known_player(wavering):
    agent, moments = wavering
    found = decode(moments, agent, "greedy")
    assert found.decisions == len(moments) and found.deals == len(np.unique(moments.deal)) and not found.fell_back
    for one in found.targets.values():
        assert one.gain["rules"].total.told and one.gain["rules"].total.mean > 0
        assert one.gain["reference"].total.mean > 0
        assert abs(one.calibration["true"].z) < 3
    # Of seven suits together, and of each.
    holds = found.targets["holds"]
    assert np.isclose(sum(each.mean for each in holds.gain["rules"].each), holds.gain["rules"].total.mean)
    loss = holds.calibration["rules"].loss.mean - holds.calibration["true"].loss.mean
    assert np.isclose(holds.gain["rules"].total.mean, loss)
    # Who knows the players is as sure as it ought to be; who takes them for greedy ones is too sure.
    assert abs(found.hands["true"].z) < 3 and found.hands["true"].entropy.mean < found.hands["reference"].loss.mean
    assert found.hands["reference"].gap.told and found.hands["reference"].gap.mean > 0
    on_line = [one.came.covers(one.said) for one in holds.reliability["true"]]
    assert len(on_line) == 10 and sum(on_line) >= 9
    assert sum(one.came.covers(one.said) for one in holds.reliability["reference"]) < sum(on_line)
    # A void is a suit that is not held.
    assert np.isclose(found.targets["void"].gain["rules"].total.mean, holds.gain["rules"].total.mean)
    assert json.loads(json.dumps(found.to_dict()))["targets"]["count"]["gain"]["rules"]["total"]["units"] == found.deals
    assert [row["target"] for row in found.rows()] == list(TARGETS)
    axes = Figure().add_subplot()
    found.draw(axes)
    assert len(axes.get_legend().get_texts()) == 3 and "the partner" in axes.get_title()
    bars = Figure().add_subplot()
    found.draw_gains(bars)
    assert len(bars.patches) == 14
    with pytest.raises(ValueError, match="two answers"):
        found.draw(axes, "longest")


def test_decode__sampled_beliefs_that_are_worth_too_little():
    moments = play("random", deals=6, seed=3, tiles=[2], each=1).moments
    few = decode(moments, "random", "uniform", method="sampled", candidates=150, targets=["holds"])
    assert few.left_out == len(moments) and not few.decisions
    assert np.isnan(few.targets["holds"].gain["rules"].total.mean)
    seen = []
    enough = decode(
        moments,
        "random",
        "uniform",
        method="sampled",
        candidates=900,
        targets=["holds"],
        progress=lambda *at: seen.append(at),
    )
    assert enough.decisions == len(moments) and seen == [(len(moments), len(moments))]
    assert enough.hands["true"].loss.units == 0  # single deals are not spoken of by worlds


def test_decode__sampled_beliefs_draw_the_same_suits_as_exact_ones():
    """What the rules settle is no forecast, though a sampled belief is never quite sure of it."""
    moments = play("random", deals=30, seed=3, tiles=[17], each=1).moments
    targets = ["holds", "double", "void"]
    exact = decode(moments, "random", "uniform", targets=targets)
    drawn = decode(moments, "random", "uniform", targets=targets, method="sampled", candidates=2000)
    assert drawn.decisions == len(moments) == exact.decisions and drawn.hands["true"].loss.units == 0
    for target in targets:
        counts = [
            {level: sum(one.came.count for one in bins) for level, bins in found.targets[target].reliability.items()}
            for found in (exact, drawn)
        ]
        assert counts[0] == counts[1] and 0 < counts[0]["rules"] < 7 * len(moments)


def test_reliability():
    q = np.array([0.05, 0.05, 0.55, 0.55, 0.55, 0.55, 1.0])
    came = np.array([0, 0, 1, 0, 1, 1, 1])
    low, middle, top = reliability(q, came, np.array([0, 1, 2, 3, 4, 5, 6]))
    assert (low.said, low.came.mean, low.came.low) == (0.05, 0, 0)
    assert np.isclose(low.came.high, 1 - 0.025 ** (1 / 2))  # two deals, none of which had it
    assert np.isclose(middle.said, 0.55) and middle.came.mean == 0.75 and middle.came.covers(0.55)
    assert top.said == 1 and np.isnan(top.came.low)
    # What is said of one deal over and over is worth one deal.
    rng = np.random.default_rng(0)
    yes = rng.random(60) < 0.3
    one, many = (reliability(np.full(60 * k, 0.3), np.repeat(yes, k), np.repeat(np.arange(60), k))[0] for k in (1, 9))
    assert np.isclose(one.came.error, many.came.error)
    assert np.isclose(one.came.high - one.came.low, many.came.high - many.came.low, rtol=0.05)


def test_calibration():
    sure = calibration(np.full(40, 0.1), np.r_[np.full(30, 0.05), np.full(10, 4)], np.arange(40))
    assert sure.gap.told and sure.z > 3 and sure.to_dict()["z"] == sure.z
    assert calibration(np.ones(4), np.ones(4), np.arange(4)).z == 0


def test_errors(wavering):
    agent, moments = wavering
    with pytest.raises(ValueError, match="unknown target 'tiles'; choose from holds, double"):
        decode(moments, agent, targets=["tiles"])
    for of in (0, 4):
        with pytest.raises(ValueError, match=f"of={of} must be another seat"):
            decode(moments, agent, of=of)
    with pytest.raises(ValueError, match="no decisions"):
        decode(moments.take(np.zeros(0, int)), agent)
    with pytest.raises(ValueError, match="has no probabilities"):
        decode(moments, "pimc-2")
    with pytest.raises(ValueError, match="do not play what they say; give a floor"):
        decode(moments.take(np.arange(60)), "club", "uniform")
    with pytest.raises(ValueError, match="bins=0"):
        reliability(np.ones(1), np.ones(1), np.ones(1), bins=0)

"""The free channel: a player that lays at a random side, and one that says by it whether it holds a double."""

import json

import numpy as np
import pytest

from domino_env import get_rules
from domino_env.tiles import DOUBLES_MASK, SUIT_MASK
from experiments.signaling.ends import free_channel
from experiments.signaling.moves import asked
from experiments.signaling.record import play

LABELLED = get_rules("sport_book", labelled_ends=True)


class Sided:
    """Any tile, all alike; the side by a rule where both ends are the same suit."""

    needs_history = True

    def __init__(self, how: str) -> None:
        self.how, self.name = how, f"sided {how}"

    def probabilities(self, batch):
        s = asked(batch)
        ends = s.position.ends
        alike = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
        double = s.hand & SUIT_MASK[np.maximum(ends[:, 0], 0)] & np.uint32(DOUBLES_MASK) != 0
        right = {"random": np.full(len(s), 0.5), "left": np.zeros(len(s)), "coded": double.astype(float)}[self.how]
        share = np.ones(batch.mask.shape)
        share[alike, :28], share[alike, 28:56] = 1 - right[alike, None], right[alike, None]
        share = share * (batch.mask != 0)
        return share / share.sum(axis=1, keepdims=True)

    def act(self, batch):
        upto = self.probabilities(batch).cumsum(axis=1)
        return (upto > batch.rng.random(len(batch))[:, None] * upto[:, -1:]).argmax(axis=1)


@pytest.mark.parametrize("how", ["random", "left"])
def test_who_does_not_code__tells_nothing(how):
    found = free_channel(play(Sided(how), LABELLED, deals=70, seed=1), tiles=[14, 15, 16, 17])
    assert found.measured > 15 and not found.left_out
    assert 0 <= found.information.mean < 1e-12 and 0 <= found.per_deal.mean < 1e-12
    assert all(0 <= one.mean < 1e-12 for one in found.meanings.values())
    assert found.entropy.mean == pytest.approx(1.0 if how == "random" else 0.0)
    assert 1.5 < found.capacity.mean < 4


def test_who_codes__tells_what_it_codes():
    record = play(Sided("coded"), LABELLED, deals=40, seed=1)
    found = free_channel(record, tiles=[12, 14, 15, 16, 17])
    assert found.information.low > 0.02 and found.per_deal.low > 0
    # The side says whether the double is held, all of that, and nothing besides.
    assert found.information.mean == pytest.approx(found.entropy.mean)
    assert found.meanings["double"].mean == pytest.approx(found.information.mean)
    assert found.meanings["long"].mean < 0.9 * found.information.mean
    ends = record.moments.position.ends
    alike = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    assert found.decisions == alike.sum() and found.capacity.mean == pytest.approx(alike.sum() / 40)
    measured = alike & np.isin(record.moments.tiles, [12, 14, 15, 16, 17])
    assert found.per_deal.mean == pytest.approx(found.information.mean * measured.sum() / 40)
    assert found.capacity.units == found.per_deal.units == 40
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["information"]["mean"] == found.information.mean
    assert {row["what"]: row["bits"] for row in found.rows()} == {
        "decisions with both ends alike, a deal: bits that could be told": f"{found.capacity}",
        "bits of the side, given the tile": f"{found.entropy}",
        "of these about the hand": f"{found.information}",
        "about the hand, a deal, in its measured decisions": f"{found.per_deal}",
        "about whether it holds the double of the open suit": f"{found.meanings['double']}",
        "about whether it holds 3 tiles of the open suit": f"{found.meanings['long']}",
    }
    half = free_channel(record, tiles=[16, 17], floor=0.5)
    assert 0 < half.information.mean < free_channel(record, tiles=[16, 17]).information.mean


def test_errors_and_nothing():
    with pytest.raises(ValueError, match="labelled_ends=True"):
        free_channel(play("random", deals=2))
    record = play(Sided("left"), LABELLED, deals=3)
    none = free_channel(record, tiles=[27])
    assert none.measured == 0 and np.isnan(none.information.mean) and none.capacity.units == 3

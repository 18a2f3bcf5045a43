"""What a probe finds in moves: something where there is something, nothing where there is nothing."""

import json

import numpy as np
import pytest

from agents.search.position import position_at
from domino_env.choices import choices
from domino_env.engine import make_engine
from experiments.signaling.decoding import answers_of
from experiments.signaling.probe import (
    LEAST,
    Learning,
    _bits,
    exchanged,
    parts_of,
    past_features,
    probe,
    rules_forecast,
    share_of,
    still_features,
)
from experiments.signaling.record import play


@pytest.fixture(scope="module")
def club():
    return play("club", deals=2000, seed=1, tiles=[14], each=1).moments


def test_probe__finds_what_an_informative_player_tells(club):
    found = probe(club, table="club", at_most=40)
    assert found.past.total.told and 0.4 < found.past.total.mean < found.exact.mean
    assert abs(found.permuted.total.mean) < 0.05 and found.gain.total.mean > 0.4
    assert 0.1 < found.efficiency.mean < 1 and found.efficiency.high < 1
    assert found.beyond.high < 0
    assert sum(found.deals) == len(np.unique(club.deal)) and found.deals[0] > 2.9 * found.deals[2]
    assert found.moved > 0.9 and found.epochs > 3
    # What it says comes true about as often as it says.
    said = [one for one in found.said["probe"] if one.came.count >= 50]
    assert len(said) >= 8 and all(abs(one.said - one.came.mean) < 0.15 for one in said)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["past"]["total"]["units"] == found.deals[2]
    assert found.rows()[0]["figure"] == "gain over the rules" and len(found.rows()) == 6
    # A tenth of the effect takes a hundred times the deals.
    few, many = (found.deals_needed(bits) for bits in (0.5, 0.05))
    assert 90 < many / few < 110


def test_probe__random_play_tells_no_more_than_its_belief():
    moments = play("random", deals=1000, seed=5, tiles=[15], each=1).moments
    found = probe(moments, target="double", table="uniform", at_most=300)
    assert not found.beyond.told or found.beyond.mean < 0
    assert found.exact.units > 100 and abs(found.permuted.total.mean) < 0.05
    again = probe(moments, target="double")
    assert again.gain == found.gain and again.exact is None and len(again.rows()) == 3


def test_exchanged__pasts_of_other_deals():
    moments = play("club", deals=150, seed=3).moments
    part, seat = parts_of(moments.deal), (moments.seat + 2) % 4
    order, moved = exchanged(moments, seat, part)
    here = np.arange(len(moments))
    assert (moments.deal[order] != moments.deal).all() and (part[order] == part).all()
    alike = (moments.tiles[order] == moments.tiles) & (
        moments.position.voids[order, seat[order]] == moments.position.voids[here, seat]
    )
    assert alike.mean() >= moved > 0.6
    assert (moments.tiles[order] == moments.tiles).mean() > 0.98


def test_parts_of__deals_are_whole():
    deal = np.repeat(np.arange(1000), 3)
    part = parts_of(deal, seed=1)
    assert (part.reshape(-1, 3) == part[::3, None]).all()
    assert np.bincount(part[::3]).tolist() == [600, 200, 200]
    assert (parts_of(deal, seed=2) != part).any()


def test_features__are_what_the_viewer_sees(club):
    engine = make_engine("sport_book", 40, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(11):
        engine.step(engine.sample_legal(rng), autoreset=False)
    viewer = np.arange(40) % 4
    past = past_features(position_at(engine, viewer))
    masks, _ = choices(engine.history(viewer))
    bits = past[:, :, :20].reshape(40, 7, 5, 4)
    assert (bits == (masks[:, None] >> np.arange(7)[:, None, None] & 1)).all()
    layout, obs = engine.layout.slices, engine.observe(viewer)
    for place, who in enumerate(("me", "left", "partner", "right")):
        assert (past[:, :, 20 + place] == obs[:, layout[f"passed_{who}"]]).all()
        laid = obs[:, layout[f"played_{who}"]]
        assert np.allclose(past[:, 0, 24 + place] * 7, laid[:, :7].sum(axis=1))
        assert (past[:, 0, 28 + place] == laid[:, 0]).all() and (past[:, 6, 28 + place] == laid[:, 27]).all()
    assert (past[:, :, 32:34] == np.stack([obs[:, layout["end_left"]], obs[:, layout["end_right"]]], axis=2)).all()
    assert past.min() == 0 and past.max() == 1
    # Nothing of them hangs on hidden hands.
    seen = club.take(np.arange(50)).seen_by(0)
    q = rules_forecast(seen, (club.seat[:50] + 2) % 4, "holds")
    assert still_features(seen, q).shape == (50, 7, 12) and past_features(seen).shape == (50, 7, 44)


@pytest.mark.parametrize("target", ["holds", "double"])
def test_rules_forecast__is_calibrated_for_hands_that_are_dealt(target):
    """Before anybody chooses, the rules say how often it is so."""
    moments = play("random", deals=400, seed=8, tiles=[0], each=1).moments
    seat = (moments.seat + 2) % 4
    q = rules_forecast(moments.seen_by(0), seat, target)
    y = answers_of(moments.hand(2), target)
    assert np.abs((y - q).mean(axis=0)).max() < 4 * 0.5 / 20
    assert np.abs((y - q).mean()) < 0.03


def test_bits__who_was_sure_and_wrong_has_lost_some():
    """What the rules settle is nobody's gain, and what they leave open is, however sure somebody is of it."""
    q = np.array([[0.5, 0.5, 0.25, 1.0, 0.0]])
    p = np.array([[1.0, 0.0, 1.0, 0.5, 0.5]])
    y = np.array([[1, 1, 0, 1, 0]])
    assert _bits(q, p, y)[0] == pytest.approx([0, np.log2(1e-12), np.log2(1e-12), 0, 0], abs=1e-4)
    assert _bits(q, q, y)[0] == pytest.approx([-1, -1, np.log2(0.75), 0, 0])


def test_share_of():
    rng = np.random.default_rng(0)
    whole = rng.normal(1, 0.5, 500)
    share = share_of(0.4 * whole + rng.normal(0, 0.1, 500), whole, np.arange(500))
    assert share.covers(0.4) and share.high - share.low < 0.05
    assert np.isnan(share_of(whole, whole - 1, np.arange(500)).mean)


def test_errors(club):
    few = club.take(club.deal < 100)
    with pytest.raises(ValueError, match=f"deals are too few for a probe: it needs {LEAST} at least, and .* 20000 on"):
        probe(few)
    with pytest.raises(ValueError, match="unknown target 'count'; a probe is asked holds or double"):
        probe(club, target="count")
    with pytest.raises(ValueError, match="of=0 must be another seat"):
        probe(club, of=0)
    with pytest.raises(ValueError, match="at_most=0"):
        probe(club, at_most=0)
    with pytest.raises(ValueError, match="has no probabilities"):
        probe(club, table="pimc-2")
    with pytest.raises(ValueError, match="patience=0"):
        Learning(patience=0)
    with pytest.raises(ValueError, match="rate=0"):
        Learning(rate=0)

"""The table of conventions: exact posteriors by brute force, players whose convention is known, and verdicts."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from agents import make_agent
from agents.search.asking import answers
from agents.search.beliefs import RulesBelief
from agents.search.reading import log_likelihood
from domino_env import get_rules
from domino_env.tiles import PIPS, mask_of, tile_name, tiles_of
from experiments.replay import play as replayed
from experiments.signaling.conventions import (
    ANY,
    CUE,
    LEAK,
    MEANINGS,
    NOISE,
    OPEN,
    SIGNAL,
    Evidence,
    conventions,
    judge,
    listening,
    verdict,
)
from experiments.signaling.examples import draw_examples, figure
from experiments.signaling.hands import hand_lists, said
from experiments.signaling.moves import asked
from experiments.signaling.record import play
from experiments.signaling.statistics import NOTHING, Estimate

SPEAKER, INNOCENT = (make_agent(f"planted:strength={strength}") for strength in (4, 0))


class Keeper:
    """Opens suits of which it holds many tiles more, or few: softly."""

    needs_history = True

    def __init__(self, weight: float) -> None:
        self.weight, self.name = weight, f"keeper of {weight}"

    def probabilities(self, batch):
        s = asked(batch)
        worth = np.zeros(batch.mask.shape)
        worth[:, :56] = np.exp(self.weight * s.others())
        worth[:, 56] = 1
        worth = worth * (batch.mask != 0)
        return worth / worth.sum(axis=1, keepdims=True)

    def act(self, batch):
        upto = self.probabilities(batch).cumsum(axis=1)
        return (upto > batch.rng.random(len(batch))[:, None] * upto[:, -1:]).argmax(axis=1)


@pytest.fixture(scope="module")
def spoken():
    return play(SPEAKER, deals=45, seed=1)


# -- posteriors -----------------------------------------------------------------------------------------------------


def suits(text: str) -> set[int]:
    return {int(half) for half in text.split("-")}


def means(hand: int, opened: set[int], covered: set[int], left: set[int], partner: set[int]) -> list[bool]:
    """What the meanings say of a hand, from the names of its tiles."""
    names = [tile_name(tile) for tile in tiles_of(hand)]

    def count(suit: int) -> int:
        return sum(suit in suits(name) for name in names)

    return [
        any(count(suit) >= 2 for suit in opened),
        any(f"{suit}-{suit}" in names for suit in opened),
        any(count(suit) for suit in covered),
        not any(count(suit) for suit in left),
        any(f"{suit}-{suit}" in names for suit in left),
        any(count(suit) for suit in partner),
    ]


def test_judge__is_what_all_deals_say(spoken):
    """Every deal of the hidden tiles, one by one: its likelihood, and what the mover would do in it."""
    floor = 0.1
    every = spoken.moments
    late = every.take(np.flatnonzero(every.tiles == 20)[:6])
    judged = judge(late, spoken.table, INNOCENT, floor=floor)
    assert judged.good.all() and (judged.gap > 0.01).any()
    for row in range(len(late)):
        one = late.take(np.array([row]))
        seat, action = int(one.seat[0]), int(one.action[0])
        view = one.seen_by(2)
        viewer, sizes = int(view.viewer[0]), view.sizes[0].tolist()
        hidden = tiles_of(int(view.hidden[0]))
        deals = []
        for order in set(itertools.permutations([s for s in range(4) for _ in range(sizes[s]) if s != viewer])):
            hands = [mask_of(t for t, s in zip(hidden, order) if s == who) for who in range(4)]
            hands[viewer] = int(view.own[0])
            deals.append(hands)
        hands = np.array(deals, np.uint32)
        fits = np.array([np.isfinite(RulesBelief(view).log2_probability(deal[None]))[0] for deal in hands])
        weights = {"rules": fits.astype(float)}
        for name, actor in (("true", SPEAKER), ("reference", INNOCENT)):
            models = [actor if s == seat else SPEAKER for s in range(4)]
            weights[name] = fits * np.exp(log_likelihood(view, models, hands[None], floor)[0].sum(axis=1))
        before = {name: weight / weight.sum() for name, weight in weights.items()}
        after = {}
        for name, actor in (("true", SPEAKER), ("reference", INNOCENT), ("rules", "uniform")):
            p = answers(view, actor, np.zeros(len(hands), int), hands[:, seat], floor)[0][:, action]
            mass = before[name] * (p > 0 if name == "rules" else p)
            after[name] = mass / mass.sum()
        tile, side = action % 28, action // 28
        ends = one.position.ends[0].tolist()
        halves = suits(tile_name(tile))
        opened = halves - {ends[side]} or halves
        covered, left = {ends[side]} - opened, {ends[1 - side]} - {ends[side]}
        partner = _opened_by(one, viewer)
        touched = {"opened": opened, "covered": covered, "left": left, "partner": partner}
        table = np.array([means(int(hand) & ~(1 << tile), **touched) for hand in hands[:, seat]])
        truly = means(int(one.hand()[0]) & ~(1 << tile), **touched)
        for number, meaning in enumerate(MEANINGS):
            if not touched[meaning.suits]:
                assert np.isnan(judged.true[row, number])
                continue
            for name, weight in after.items():
                assert abs(getattr(judged, name)[row, number] - weight @ table[:, number]) < 1e-12
            held = before["true"] * (after["rules"] > 0)
            assert abs(judged.before[row, number] - held @ table[:, number] / held.sum()) < 1e-12
            assert judged.held[row, number] == truly[number]
        for place, found in enumerate((before, after)):
            one_hand = {}
            for name in ("true", "reference"):
                names, back = np.unique(hands[:, seat], return_inverse=True)
                one_hand[name] = np.bincount(back, found[name], minlength=len(names))
            some = one_hand["true"] > 0
            bits = (one_hand["true"][some] * np.log2(one_hand["true"][some] / one_hand["reference"][some])).sum()
            assert abs(judged.gap[row, place] - bits) < 1e-12


def _opened_by(one, seat: int) -> set[int]:
    """What a seat has opened and has not passed on, by playing the events again."""
    found: set[int] = set()
    for event in one.position.events[0].tolist():
        if event >= 0 and event >> 12 == seat:
            action, ends = event & 63, (event >> 9 & 7, event >> 6 & 7)
            halves = set() if action == 56 else suits(tile_name(action % 28))
            if action == 56:
                found -= set(ends)
            elif ends[0] == 7:
                found |= halves
            else:
                found |= halves - {ends[action // 28]} or halves
    return {suit for suit in found if not int(one.position.voids[0, seat]) >> suit & 1}


def test_judge__parts_of_what_is_told_add_up_to_it(spoken):
    late = spoken.moments.take(spoken.moments.tiles == 17)
    judged = judge(late, spoken.table, INNOCENT, floor=0.02)
    lists = hand_lists(late, spoken.table, INNOCENT, floor=0.02)
    for told, table in ((judged.told, spoken.table), (judged.told_reference, [INNOCENT] * 4)):
        play_, _ = said(late, lists, table, 0.02)

        def entropy(p):
            return -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=1)

        mean = lists.sums(lists.true[:, None] * play_)
        information = entropy(mean) - lists.sums(lists.true * entropy(play_))
        assert np.allclose(told.sum(axis=1), information, atol=1e-12) and information.max() > 0.1


def test_a_player_that_is_the_reference__has_no_convention(spoken):
    found = conventions(spoken, SPEAKER, tiles=[16, 17, 18], least=10, floor=0.0)
    row = found.row(ANY)
    for estimate in (row.convention, row.excess):
        assert abs(estimate.mean) < 1e-12 and abs(estimate.high) < 1e-12
    assert row.told.low > 0.3  # though it tells a lot
    tested = [cell for one in found.table for cell in one.cells if not math.isnan(cell.lift.mean)]
    assert len(tested) > 10 and all(abs(cell.over_reference.mean - 1) < 1e-12 for cell in tested)
    assert not found.examples
    with pytest.raises(ValueError, match="no example to draw"):
        figure(found.examples)


@pytest.mark.parametrize(("weight", "side"), [(1.5, 1), (-1.5, -1)])
def test_lifts__of_who_opens_what_it_holds(weight, side):
    """It opens suits that it has more of, or the contrary: that is what the choice says."""
    record = play(Keeper(weight), deals=50, seed=3)
    found = conventions(record, "uniform", tiles=[14, 15], least=20, floor=0.0, examples=0)
    row = found.row(ANY)
    cell = row.cells[0]
    assert cell.meaning == "more_opened" and (cell.alone.mean - 1) * side > 0.1 and not cell.alone.covers(1)
    assert row.convention.mean > 0 and row.excess.mean != 0
    assert row.convention.units == len(np.unique(record.moments.deal[np.isin(record.moments.tiles, [14, 15])]))
    assert row.evidence.informative == any(one.found for one in row.cells)


def test_lift__is_a_ratio_of_sums_over_the_decisions(spoken):
    found = conventions(spoken, INNOCENT, tiles=[16], least=10, floor=0.02)
    judged = judge(spoken.moments.take(spoken.moments.tiles == 16), spoken.table, INNOCENT, floor=0.02)
    true, by_rules = judged.true[:, 5], judged.rules[:, 5]
    open_still = (by_rules > 1e-9) & (by_rules < 1 - 1e-9)
    cell = found.row(ANY).cells[5]
    assert abs(cell.lift.mean - true[open_still].sum() / by_rules[open_still].sum()) < 1e-12
    assert cell.lift.count == open_still.sum() and 0 <= cell.p <= 1
    assert len(found.judged) == len(judged) and (judged.open(5) == open_still).all()
    none = found.row("chooses_end")  # the game has no such kind
    assert {getattr(none, name) for name in ("share", "frequency", "told", "convention", "value")} == {NOTHING}
    assert none.count == 0 and math.isnan(none.p) and all(math.isnan(cell.p) for cell in none.cells)
    assert found.row("covers_left").share.mean >= 0
    few = conventions(spoken, INNOCENT, tiles=[19], least=10_000, examples=0)
    assert all(math.isnan(cell.lift.mean) and math.isnan(cell.p) for row in few.table for cell in row.cells)
    assert {row.verdict for row in few.table} == {OPEN}
    assert 0 < few.row(ANY).count == few.decisions


def test_leads__are_sampled():
    record = play(SPEAKER, deals=6, seed=2)
    leads = record.moments.take(record.moments.tiles == 0)
    judged = judge(leads, record.table, INNOCENT, worlds=1000)
    assert judged.good.any() and not judged.good.all()  # too few worlds hold the tile where it is seldom led
    assert np.allclose(judged.gap[judged.good, 0], 0)  # nothing was done before
    lead = conventions(record, INNOCENT, tiles=[0], least=2, worlds=1000, examples=0)
    assert lead.left_out == (~judged.good).sum() and lead.row("lead_mixed").count + lead.row("lead_double").count == 6


# -- listening and price --------------------------------------------------------------------------------------------


def test_listening__of_the_partner_alone():
    listener = make_agent("planted:strength=4,listen=3")
    record = play([listener, "greedy"], deals=40, seed=5)
    greedy = record.table[1]
    deaf = [SPEAKER, greedy, SPEAKER, greedy]
    rows = np.flatnonzero(np.isin(record.moments.tiles, [6, 7]) & (record.moments.seat % 2 == 0))
    partner = listening(record.moments, rows, 2, record.table, deaf, 0.02)
    assert partner.bits.mean() > 0.05 and len(partner.bits) > 5
    for place in (1, 3):
        assert (listening(record.moments, rows, place, record.table, deaf, 0.02).bits == 0).all()
    next_ones = record.moments.ply[rows[partner.row]] + 2
    there = {(deal, ply) for deal, ply in zip(record.moments.deal.tolist(), record.moments.ply.tolist())}
    assert {(d, p) for d, p in zip(record.moments.deal[rows[partner.row]].tolist(), next_ones.tolist())} <= there
    found = conventions(record, INNOCENT, tiles=[16, 17], deaf=deaf, least=5, examples=0)
    assert found.row(ANY).partner.mean > 0 and found.row(ANY).opponents.mean > 0  # of greedy's moves: the listeners


def test_price__is_what_the_best_move_is_better_by():
    record = play("greedy", deals=30, seed=6)

    def heavy(moments):
        return np.append(np.tile(PIPS, 2), 0).astype(float) + np.zeros((len(moments), 1))

    found = conventions(record, "uniform", tiles=[17], price=heavy, least=5, examples=0)
    assert found.row(ANY).price.mean == 0
    other = conventions(record, "uniform", tiles=[17], price=lambda m: -heavy(m), least=5, examples=0)
    assert other.row(ANY).price.low > 0


# -- verdicts -------------------------------------------------------------------------------------------------------

ABOVE, NONE, BELOW = (Estimate(mean, mean - 0.1, mean + 0.1, 0.05, 100, 100) for mean in (0.5, 0.0, -0.5))
BASE = Evidence(True, ABOVE, ABOVE, ABOVE, NONE, True)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, SIGNAL),
        ({"opponents": ABOVE}, SIGNAL),  # that others read it too takes nothing away
        ({"informative": False}, SIGNAL),
        ({"convention": NONE}, NOISE),
        ({"convention": BELOW}, NOISE),
        ({"valuable": False}, NOISE),
        ({"excess": NONE}, CUE),  # told in the deaf world as well
        ({"excess": BELOW, "valuable": False}, CUE),
        ({"excess": NONE, "informative": False}, NOISE),
        ({"partner": NONE}, NOISE),
        ({"partner": NONE, "opponents": ABOVE}, LEAK),
        ({"partner": BELOW, "opponents": ABOVE, "excess": NONE}, LEAK),
        ({"partner": NONE, "opponents": ABOVE, "informative": False}, NOISE),
        ({"valuable": None}, OPEN),
        ({"valuable": None, "convention": NONE}, NOISE),
        ({"valuable": None, "excess": NONE}, CUE),
        ({"partner": NOTHING, "opponents": ABOVE}, OPEN),
        ({"partner": NOTHING, "convention": NONE, "excess": ABOVE}, NOISE),
        ({"informative": None}, SIGNAL),
        ({"informative": None, "excess": NONE}, OPEN),
    ],
)
def test_verdict(changed, expected):
    assert verdict(dataclasses.replace(BASE, **changed)) == expected


# -- examples and what is handed on ---------------------------------------------------------------------------------


def test_examples__and_the_table_as_data(spoken, tmp_path):
    found = conventions(spoken, INNOCENT, tiles=[16, 17], least=20, examples=2, value={"squares": ABOVE})
    assert len(found.examples) == 2 and found.examples[0].gap >= found.examples[1].gap > 0
    for one in found.examples:
        deal = replayed(one.deal).deal
        assert one.rules.action_name(deal.moves[-1]) == one.move and not set(tiles_of(one.hand)) - set(
            tiles_of(one.hidden)
        )
        size = len(tiles_of(one.hand))
        assert abs(one.before.sum() - size - 1) < 1 and all(
            abs(one.beliefs[name].sum() - size) < 1e-9 for name in ("after", "reference", "rules")
        )
        assert all(len(line) <= 80 for line in one.text().splitlines())
        assert one.move in one.text() and f"seat_{one.partner} thinks" in one.text()
    drawn = figure(found.examples)
    assert len(drawn.axes) == 10
    assert draw_examples(found.examples[:1], tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"
    plain = json.loads(json.dumps(found.to_dict()))
    assert [row["kind"] for row in plain["rows"]] == [row.kind for row in found.table]
    assert plain["rows"][0]["cells"][0]["lift"]["mean"] == found.row(ANY).cells[0].lift.mean
    assert len({tuple(row) for row in found.rows()}) == 1 and found.row("squares").value is ABOVE
    found.draw(axes := drawn.add_subplot())
    made = [row for row in found.table if row.count]
    assert [one.get_text() for one in axes.get_yticklabels()] == [f"{row.text} ({row.count:,})" for row in made]
    assert len(made) < len(found.table)  # nobody leads so late


def test_most__are_the_kinds_that_were_made_most_often(spoken):
    found = conventions(spoken, INNOCENT, tiles=[16, 17], least=20, examples=0)
    few = found.most(3)
    assert few.table[0].kind == ANY and len(few.table) == 4 and few.decisions == found.decisions
    counts = sorted((row.count for row in found.table[1:]), reverse=True)
    assert [row.count for row in few.table[1:]] == counts[:3] and few.table[1] is found.row(few.table[1].kind)
    assert {row.kind for row in found.most(99).table} == {row.kind for row in found.table}


def test_errors(spoken):
    with pytest.raises(ValueError, match=r"none of .* has 27, 28 tiles"):
        conventions(spoken, INNOCENT, tiles=[27, 28])
    with pytest.raises(ValueError, match="there is no such kind"):
        conventions(spoken, INNOCENT, tiles=[20], value={"winks": ABOVE})
    with pytest.raises(ValueError, match=r"floor=0\.0 must be above 0"):
        conventions(spoken, make_agent("greedy"), tiles=[20], floor=0.0)
    with pytest.raises(ValueError, match="must be at least 2"):
        conventions(spoken, INNOCENT, least=1)
    alone = play("random", get_rules("sport_book", pairs=False), deals=2)
    with pytest.raises(ValueError, match="pairs=False has none"):
        judge(alone.moments, alone.table, "uniform")
    with pytest.raises(ValueError, match="of another seat"):
        hand_lists(spoken.moments.take(np.arange(2)), spoken.table, INNOCENT, 4)

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
from experiments.signaling import conventions as module
from experiments.signaling.conventions import (
    ANY,
    CUE,
    LEAK,
    MEANINGS,
    NOISE,
    OPEN,
    SIGNAL,
    Cell,
    Evidence,
    conventions,
    judge,
    listening,
    verdict,
)
from experiments.signaling.examples import draw_examples, figure
from experiments.signaling.hands import hand_lists, said
from experiments.signaling.moves import asked, kinds, situation, touched
from experiments.signaling.players import Seats, deaf_to_mover
from experiments.signaling.record import play
from experiments.signaling.statistics import NOTHING, Estimate

SPEAKER, INNOCENT = (make_agent(f"planted:strength={strength}") for strength in (4, 0))


class Keeper:
    """Opens suits of which it holds many tiles more, or few: softly."""

    needs_history = True

    def __init__(self, weight: float) -> None:
        self.weight, self.name = weight, f"keeper of {weight}"

    def likes(self, s):
        return s.others()

    def probabilities(self, batch):
        worth = np.ones(batch.mask.shape)
        worth[:, :56] = np.exp(self.weight * self.likes(asked(batch)))
        worth = worth * (batch.mask != 0)
        return worth / worth.sum(axis=1, keepdims=True)

    def act(self, batch):
        upto = self.probabilities(batch).cumsum(axis=1)
        return (upto > batch.rng.random(len(batch))[:, None] * upto[:, -1:]).argmax(axis=1)


class Follows(Keeper):
    """Opens suits that its partner has opened."""

    def likes(self, s):
        return kinds(s)["repeats_partner"][:, :56]


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
    with pytest.raises(ValueError, match="no example to draw: no move added to G and left the deal going, or none"):
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


def test_lift__is_a_ratio_of_sums_over_the_decisions(spoken):
    found = conventions(spoken, INNOCENT, tiles=[16], least=10, floor=0.02)
    judged = judge(spoken.moments.take(spoken.moments.tiles == 16), spoken.table, INNOCENT, floor=0.02)
    true, by_rules = judged.true[:, 5], judged.rules[:, 5]
    open_still = (by_rules > 1e-9) & (by_rules < 1 - 1e-9)
    cell = found.row(ANY).cells[5]
    assert abs(cell.lift.mean - true[open_still].sum() / by_rules[open_still].sum()) < 1e-12
    assert cell.lift.count == open_still.sum() == found.judged.open(5).sum() < len(judged) == len(found.judged)
    none = found.row("chooses_end")  # the game has no such kind
    assert {getattr(none, name) for name in ("share", "frequency", "told", "convention", "value")} == {NOTHING}
    assert none.count == 0 and math.isnan(none.p) and all(math.isnan(cell.p) for cell in none.cells)
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
    twins = {1: record.table, 2: deaf, 3: record.table}  # nobody reads its opponents
    found = conventions(record, INNOCENT, tiles=[16, 17], deaf=twins, least=5, examples=0).row(ANY)
    assert found.partner.mean > 0 == found.opponents.mean == found.opponents.high and found.opponents.count > 10


@pytest.mark.parametrize(
    ("player", "partner", "opponents"),
    [("planted:strength=4,listen=3", True, False), ("club:repeat_partner=0,spare_partner=0", False, True)],
)
def test_who_listens__is_compared_with_who_does_not_hear_the_mover(player, partner, opponents):
    seats = Seats(get_rules())
    one = seats(player)
    record = play(one.agent, deals=30, seed=1)
    words = {"tiles": [17, 18], "least": 5, "examples": 0}
    found = conventions(record, "uniform", deaf=deaf_to_mover(seats.twins(one)), **words).row(ANY)
    for column, listens in ((found.partner, partner), (found.opponents, opponents)):
        assert column.mean > 0 if listens else (column.mean, column.error) == (0, 0)


def test_price__is_what_the_best_move_is_better_by():
    record = play("greedy", deals=30, seed=6)

    def heavy(moments):
        return np.append(np.tile(PIPS, 2), 0).astype(float) + np.zeros((len(moments), 1))

    found = conventions(record, "uniform", tiles=[17], price=heavy, least=5, examples=0)
    assert found.row(ANY).price.mean == 0
    other = conventions(record, "uniform", tiles=[17], price=lambda m: -heavy(m), least=5, examples=0)
    assert other.row(ANY).price.low > 0


# -- a row ----------------------------------------------------------------------------------------------------------


def test_row__by_hand():
    """Decision by decision, from what the partners believe and from who answers how."""
    record, name, least = play(Follows(3.0), deals=60, seed=1), "repeats_partner", 10
    deaf = {1: Follows(1.0), 2: "uniform", 3: Follows(1.0)}
    found = conventions(record, "uniform", tiles=[14, 15, 16], deaf=deaf, least=least, examples=0, floor=0.0)
    row, judged = found.row(name), found.judged
    moments = judged.moments
    which = kinds(situation(moments))[name]
    rows = np.flatnonzero(np.isin(record.moments.tiles, [14, 15, 16]))
    chosen, told, beyond, made, added = [], [], [], [], []
    for at in range(len(moments)):
        legal = [action for action in range(57) if int(moments.legal[at]) >> action & 1]
        of_kind = [action for action in range(57) if which[at, action]]
        did = int(moments.action[at]) in of_kind
        if set(legal) & set(of_kind):
            told.append(sum(judged.told[at, of_kind]))
            beyond.append(sum(judged.told[at, of_kind]) - sum(judged.told_reference[at, of_kind]))
            if set(legal) - set(of_kind):
                chosen.append(did)
        if did:
            made.append(at)
            added.append(judged.gap[at, 1] - judged.gap[at, 0])
    assert row.count == len(made) and row.share.mean == pytest.approx(len(made) / len(moments))
    assert row.frequency.mean == pytest.approx(np.mean(chosen))
    assert row.frequency.count == len(chosen) not in (len(made), len(told))
    for estimate, values in ((row.told, told), (row.excess, beyond), (row.convention, added)):
        assert estimate.mean == pytest.approx(np.mean(values)) and estimate.count == len(values)
    assert row.excess.low > 0  # who always follows tells more of what it has not than random play

    for column, places in ((row.partner, (2,)), (row.opponents, (1, 3))):
        heard = [listening(record.moments, rows[made], place, record.table, deaf[place], 0.0) for place in places]
        bits = np.concatenate([one.bits for one in heard])
        assert column.mean == pytest.approx(bits.mean()) and column.count == len(bits) >= least
    assert row.partner.mean > 1.5 * row.opponents.mean > 0
    rises = listening(record.moments, rows[made], 2, record.table, "uniform", 0.0).rise
    means = {kind: values.mean() for kind, values in rises.items()}
    assert row.reply == max(means, key=means.get) and row.rise.mean == pytest.approx(max(means.values()))

    wide = 0
    for number, cell in enumerate(row.cells):
        some = [at for at in made if 1e-9 < judged.rules[at, number] < 1 - 1e-9]  # nan is no such number
        assert cell.meaning == MEANINGS[number].name and (cell.lift.count == len(some) or len(some) < least)
        if len(some) < least:
            assert math.isnan(cell.lift.mean)
            continue
        wide += 1
        before, true, reference, by_rules, held = (
            getattr(judged, what)[some, number] for what in ("before", "true", "reference", "rules", "held")
        )
        for estimate, over, under in (
            (cell.lift, true, by_rules),
            (cell.over_reference, true, reference),
            (cell.alone, true, before),
            (cell.innocent, reference, by_rules),
        ):
            assert estimate.mean == pytest.approx(over.sum() / under.sum())
        assert cell.believed.mean == pytest.approx(true.mean()) and cell.held.mean == pytest.approx(held.mean())
    assert wide > 2


def test_cells__are_found_by_what_all_of_them_say():
    """Three p of 0.01, 0.02 and 0.04 (Student's t of two deals is Cauchy's): of 3, 0.03 = 0.02 * 3 / 2 and 0.04."""

    def lift(p, sign=1):
        away = sign / math.tan(math.pi * p / 2)
        return Estimate(1 + away, -99.0, 99.0, 1.0, 2, 300)

    lifts = lift(0.01), lift(0.04), lift(0.02, -1)
    cells = [Cell(f"{n}", one, other, *[NOTHING] * 4) for n, (one, other) in enumerate(zip(lifts, lifts[::-1]))]
    empty = Cell("empty", *[NOTHING] * 6)
    rows = [module.Row("", "", True, 9, *[NOTHING] * 7, "", *[NOTHING] * 3, cells=(*pair,)) for pair in
            ((cells[0], empty), cells[1:])]  # fmt: skip
    one, other = module._adjusted(rows)
    assert [cell.p for cell in (*one.cells[:1], *other.cells)] == pytest.approx([0.03, 0.04, 0.03])
    assert [cell.p_reference for cell in (*one.cells[:1], *other.cells)] == pytest.approx([0.03, 0.04, 0.03])
    assert math.isnan(one.cells[1].p) and one.cells[0].found and not one.cells[1].found


def test_natural__is_what_the_reference_says_too():
    low, level, high = (Estimate(mean, mean - 0.1, mean + 0.1, 0.05, 50, 50) for mean in (0.6, 1.05, 1.4))

    def natural(lift, innocent, p=0.01):
        return Cell("", lift, NOTHING, NOTHING, innocent, NOTHING, NOTHING, p).natural

    assert natural(high, high) and natural(low, low)
    assert not any((natural(high, low), natural(low, high), natural(high, level), natural(high, NOTHING)))
    assert not natural(high, high, p=0.06)


def test_support__is_counted_where_there_is_a_belief(spoken, monkeypatch):
    judged = conventions(spoken, INNOCENT, tiles=[17], least=5, examples=0).judged
    lost = np.arange(len(judged)) % 3 == 0
    names = [one.name for one in dataclasses.fields(judged) if one.name != "moments"]
    blank = {name: np.where(lost.reshape(-1, *[1] * (np.ndim(one) - 1)), np.nan, one)
             for name in names for one in [getattr(judged, name)]}  # fmt: skip
    monkeypatch.setattr(module, "judge", lambda *words, **more: dataclasses.replace(judged, **blank))
    which = kinds(situation(judged.moments))
    for name in (ANY, "covers_by_choice"):
        was = ~lost if name == ANY else ~lost & which[name][np.arange(len(lost)), judged.moments.action]
        for more in (0, 1):
            table = conventions(spoken, INNOCENT, tiles=[17], least=int(was.sum()) + more, examples=0)
            row = table.row(name)
            assert row.count > was.sum() + 1 and table.left_out == lost.sum()
            for one in (row.told, row.excess, row.convention):
                assert math.isnan(one.mean) == bool(more), (name, more)


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
    found = conventions(spoken, INNOCENT, tiles=[16, 17], least=20, examples=9, value={"squares": ABOVE})
    assert len(found.examples) == 9 and found.examples[0].gap >= found.examples[1].gap > 0
    judged, apart = found.judged, 0.0
    gain, opened = judged.gap[:, 1] - judged.gap[:, 0], touched(situation(judged.moments), judged.moments.action).opened
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
        assert f"deal {one.number}, ply {one.ply}: seat_{one.seat} lays {one.move}" in one.text()
        assert f"seat_{one.partner} thinks" in one.text()
        (same,) = np.flatnonzero((spoken.moments.deal == one.number) & (spoken.moments.ply == one.ply))
        assert spoken.moments.action[same] == deal.moves[-1] and spoken.moments.seat[same] == one.seat
        row = np.nanargmin(np.abs(gain - one.gap))
        (suit,) = (k for k in range(7) if int(opened[row]) >> k & 1)
        (double,) = (tile for tile in range(28) if tile_name(tile) == f"{suit}-{suit}")
        assert MEANINGS[1].name == "double_opened"
        for name, belief in (("after", "true"), ("reference", "reference"), ("rules", "rules")):
            assert one.beliefs[name][double] == pytest.approx(getattr(judged, belief)[row, 1], abs=1e-12)
        apart = max(apart, abs(one.after[double] - one.reference[double]))
    assert apart > 0.01
    drawn = figure(found.examples[:2])
    assert len(drawn.axes) == 10
    assert drawn.axes[0].get_title().startswith(f"deal {found.examples[0].number}, ply {found.examples[0].ply}: ")
    assert draw_examples(found.examples[:1], tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"
    plain = json.loads(json.dumps(found.to_dict()))
    assert [row["kind"] for row in plain["rows"]] == [row.kind for row in found.table]
    assert plain["rows"][0]["cells"][0]["lift"]["mean"] == found.row(ANY).cells[0].lift.mean
    assert found.row("squares").value is ABOVE
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

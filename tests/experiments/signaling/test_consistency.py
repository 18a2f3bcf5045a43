"""Consistency of kinds of moves: sums by hand, random play that tells nothing, a planted convention, ranks by hand."""

import dataclasses
import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from agents.search.position import mask_of_bits
from domino_env import get_rules
from domino_env.tiles import tile_name, tiles_of
from experiments.signaling.consistency import CELLS, Agreement, agreement, consistency, stability, told
from experiments.signaling.conventions import ANY, MEANINGS, Cell, Conventions, Judged, Row, conventions, judge
from experiments.signaling.moves import MOVES, asked, kinds, made, open_to, situation
from experiments.signaling.record import play
from experiments.signaling.statistics import NOTHING, Estimate


class Repeater:
    """Repeats its partner's suit where it holds two more of it, and not where it does not; the contrary below 0."""

    needs_history = True

    def __init__(self, weight: float) -> None:
        self.weight, self.name = weight, f"repeater of {weight}"

    def probabilities(self, batch):
        s = asked(batch)
        worth = np.ones(batch.mask.shape)
        repeats = kinds(s)["repeats_partner"][:, :56]
        worth[:, :56] = np.exp(self.weight * np.where(repeats, np.where(s.others() >= 2, 1, -1), 0))
        worth = worth * (batch.mask != 0)
        return worth / worth.sum(axis=1, keepdims=True)

    def act(self, batch):
        upto = self.probabilities(batch).cumsum(axis=1)
        return (upto > batch.rng.random(len(batch))[:, None] * upto[:, -1:]).argmax(axis=1)


def unjudged(moments, **figures) -> Judged:
    """Decisions of which nobody believes anything, but for some figures."""
    n = len(moments)
    plain = {name: np.full((n, len(MEANINGS)), np.nan) for name in ("before", "true", "reference", "rules", "held")}
    actions = np.full((n, moments.position.rules.num_actions), np.nan)
    return Judged(moments, **(plain | figures), gap=np.full((n, 2), np.nan), told=actions, told_reference=actions)


def middle(record):
    return record.moments.take(np.isin(record.moments.tiles, range(8, 17)))


@pytest.fixture(scope="module")
def repeated():
    return middle(play(Repeater(1.5), deals=400, seed=1))


# -- bits -----------------------------------------------------------------------------------------------------------


def by_hand(done, so, group) -> float:
    """The formula, term by term: every class by itself, entropies after Miller and Madow."""
    total = 0.0
    for one in set(group):
        rows = [(bool(m), bool(y)) for m, y, g in zip(done, so, group) if g == one]

        def entropy(values):
            counts = Counter(values)
            n = sum(counts.values())
            return -sum(c / n * math.log(c / n) for c in counts.values()) + (len(counts) - 1) / (2 * n)

        nats = entropy([m for m, _ in rows]) + entropy([y for _, y in rows]) - entropy(rows)
        total += len(rows) / len(group) * nats / math.log(2)
    return total


def test_told__is_the_formula_on_a_table_by_hand():
    """Two classes, 8 2 / 3 7 and 5 0 / 1 4: what was done down, what is so across."""
    cells = [(0, 1, 1, 8), (0, 1, 0, 2), (0, 0, 1, 3), (0, 0, 0, 7), (3, 1, 1, 5), (3, 0, 1, 1), (3, 0, 0, 4)]
    group, done, so = (np.concatenate([np.full(one[3], one[at]) for one in cells]) for at in range(3))
    found = told(done, so, group, np.arange(len(done)), 200)
    plug = 0.0  # 30 p(c, m, Y) log p(m, Y | c) / (p(m | c) p(Y | c)), cell by cell
    for class_, m, y, count in cells:
        rows = group == class_
        plug += count / 30 * math.log2(count * rows.sum() / ((done[rows] == m).sum() * (so[rows] == y).sum()))
    extra = (1 - 0) / (2 * 30 * math.log(2))  # of the first class one degree of freedom, of the second none
    assert abs(found.bits.mean - (plug - extra)) < 1e-12
    assert abs(found.bits.mean - by_hand(done, so, group)) < 1e-12
    assert found.bits.units == found.bits.count == 30 and found.bits.low < found.bits.mean < found.bits.high
    # More often so by 0.8 - 0.3 in the first class, whose weight is 10 * 10 / 20, and by 1 - 0.2 in the other.
    assert abs(found.shift - (0.5 * 5 + 0.8 * 2.5) / 7.5) < 1e-12


@pytest.mark.parametrize("same", [True, False])
def test_told__of_what_is_the_same_or_never_varies(same):
    so = np.tile([True, False], 50)
    found = told(so if same else np.ones(100, bool), so, np.zeros(100, int), np.arange(100), 500)
    if same:
        assert abs(found.bits.mean - (1 + 1 / (200 * math.log(2)))) < 1e-12  # one bit, and two cells of four
        assert found.p == 1 / 501 and found.shift == 1 and found.chance < 0.05
    else:
        assert abs(found.bits.mean) < 1e-12 and found.p == 1 and math.isnan(found.shift)
    assert told(so[:0], so[:0], np.zeros(0, int), np.zeros(0, int), 10).bits is NOTHING


def test_told__miller_and_madow_take_off_what_counts_add():
    rng, found, plain = np.random.default_rng(3), [], []
    for _ in range(300):
        done, so, group = rng.random(200) < 0.5, rng.random(200) < 0.4, rng.integers(4, size=200)
        one = told(done, so, group, np.arange(200), 20)
        found.append(one.bits.mean)
        plain.append(one.bits.mean + 4 / (400 * math.log(2)))
    spread = np.std(found) / math.sqrt(300)
    assert abs(np.mean(found)) < 4 * spread and np.mean(plain) > 10 * spread


def test_told__interval_holds_what_is_told():
    """p(m, Y) = 0.4 0.1 / 0.1 0.4."""
    truth = 2 * 0.4 * math.log2(1.6) + 2 * 0.1 * math.log2(0.4)
    rng, inside = np.random.default_rng(5), 0
    for _ in range(200):
        done = rng.random(400) < 0.5
        so = done ^ (rng.random(400) < 0.2)
        inside += told(done, so, np.zeros(400, int), np.arange(400), 2).bits.covers(truth)
    assert inside > 180


def hanging(rng, deals=100):
    """Decisions of deals, in two classes, that hang together both in what is done and in what is so, which have
    nothing to do with each other."""
    sizes = rng.integers(1, 6, size=deals)
    deal = np.repeat(np.arange(deals), sizes)
    many = len(deal)
    group = rng.random(many) < 0.3

    def alike():
        return np.where(rng.random(many) < 0.95, (rng.random(deals) < 0.5)[deal], rng.random(many) < 0.5)

    return alike(), alike(), group.astype(int), deal


def test_told__p_is_even_where_nothing_is_told_though_deals_hang_together():
    rng = np.random.default_rng(7)
    blocks, single = [], []
    for number in range(300):
        done, so, group, deal = hanging(rng)
        blocks.append(told(done, so, group, deal, 199, number).p)
        single.append(told(done, so, group, np.arange(len(deal)), 199, number).p)
    assert stats.kstest(blocks, "uniform").pvalue > 0.01 and np.mean(np.array(blocks) < 0.05) < 0.09
    assert np.mean(np.array(single) < 0.05) > 0.15  # decisions as units would find what is not there


def test_told__shuffles_keep_blocks():
    """Every deal does all or nothing, and so is it: a shuffle of two deals of either is one of few tables."""
    done, so, deal = np.repeat([1, 1, 0, 0], 3), np.repeat([1, 0, 1, 0], 3), np.repeat(np.arange(4), 3)
    found = told(done, so, np.zeros(12, int), deal, 4000, 1)
    assert abs(found.p - 1) < 1e-12  # no table tells less than this one, in which all cells are the same
    tied = told(done, done, np.zeros(12, int), deal, 4000, 1)
    assert abs(tied.p - 1 / 3) < 0.03  # of six ways to choose two deals of four, that one and its contrary


# -- of decisions ---------------------------------------------------------------------------------------------------


def test_random_play__tells_nothing():
    moments = middle(play("random", deals=900, seed=5))
    found = consistency(unjudged(moments), draws=400, least=200)
    p = np.array([one.p for one in found.links])
    p = p[~np.isnan(p)]
    assert len(p) > 60 and not any(one.found for one in found.links)
    assert np.mean(p < 0.05) < 0.15 and 0.4 < p.mean() < 0.6
    beyond = np.array([one.beyond for one in found.links if not math.isnan(one.p)])
    assert abs(beyond.mean()) < 0.003
    assert all(math.isnan(one.stability) and not one.lifts for one in found.links)


@pytest.mark.parametrize("weight", [1.5, -1.5])
def test_planted_convention__is_found(weight, repeated):
    moments = repeated if weight > 0 else middle(play(Repeater(weight), deals=400, seed=2))
    found = consistency(unjudged(moments), draws=2000, least=100)
    one = found.link("repeats_partner", "more_opened")
    assert one.found and one.p == 1 / 2001 and one.beyond > 0.05 and one.bits.low > 0
    assert one.shift * weight > 0.3
    assert one.beyond == max(each.beyond for each in found.links if each.found)


def opened_by(moments, row: int, seat: int) -> set[int]:
    """What a seat has opened and has not passed on, by playing the events again."""
    found: set[int] = set()
    for event in moments.position.events[row].tolist():
        if event >= 0 and event >> 12 == seat:
            action, ends = event & 63, (event >> 9 & 7, event >> 6 & 7)
            if action == 56:
                found -= set(ends)
                continue
            halves = {int(half) for half in tile_name(action % 28).split("-")}
            found |= halves if ends[0] == 7 else halves - {ends[action // 28]} or halves
    return {suit for suit in found if not int(moments.position.voids[row, seat]) >> suit & 1}


def test_bits__are_those_of_decisions_one_by_one(repeated):
    """Decisions with one move that repeats: what was done, what is so, and the class in plain words."""
    s, which = situation(repeated), kinds(situation(repeated))["repeats_partner"]
    legal = mask_of_bits(repeated.legal) != 0
    single = repeated.take(open_to(which, repeated.legal) & ((which & legal).sum(axis=1) == 1))
    assert len(s) > len(single) > 200
    done, so, group = [], [], []
    for row in range(len(single)):
        seat, position = int(single.seat[row]), single.position
        moves = [action for action in range(56) if int(single.legal[row]) >> action & 1]
        ends, partner = position.ends[row].tolist(), opened_by(single, row, (seat + 2) % 4)

        names = {action: tile_name(action % 28) for action in moves}
        opens = {a: sum(int(half) for half in names[a].split("-")) - ends[a // 28] for a in moves}
        fits = [a for a in moves if opens[a] in partner and opens[a] != ends[a // 28]]
        assert len(fits) == 1
        suit, tile = opens[fits[0]], names[fits[0]]
        laid = [tile_name(one) for part in position.played[row].tolist() for one in tiles_of(part)]
        known = {*laid, *(tile_name(one) for one in tiles_of(int(single.hand(2)[row]))), tile}
        unseen = [f"{min(a, suit)}-{max(a, suit)}" for a in range(7)]
        unseen = [name for name in unseen if name not in known and f"{name[2]}-{name[0]}" not in known]
        lacks = [k for k in range(7) if int(position.voids[row, seat]) >> k & 1]
        if sum(not any(str(k) in name for k in lacks) for name in unseen) < 2:
            continue
        hand = [tile_name(one) for one in tiles_of(int(single.hand()[row]))]
        done.append(int(single.action[row]) == fits[0])
        so.append(sum(str(suit) in name for name in hand if name != tile) >= 2)
        group.append((len(laid) * 4 // 28, len(moves)))
    found = consistency(unjudged(single), draws=10, least=50).link("repeats_partner", "more_opened")
    assert found.count == len(done) > 150 and 0 < sum(so) < len(so)
    assert abs(found.bits.mean - by_hand(done, so, group)) < 1e-12 and found.bits.mean > 0.1


def test_few_decisions__have_no_number(repeated):
    found = consistency(unjudged(repeated), draws=5, least=10**6)
    assert all(one.bits is NOTHING and math.isnan(one.p) and not one.found for one in found.links)
    assert not found.rows() and found.deals == len(np.unique(repeated.deal)) and found.decisions == len(repeated)
    assert len(found.links) == len(MOVES) * len(MEANINGS)


# -- stability ------------------------------------------------------------------------------------------------------


def lift(mean: float, error: float = 0.0) -> Estimate:
    return Estimate(mean, mean - 2 * error, mean + 2 * error, error, 50, 50)


@pytest.mark.parametrize(
    ("lifts", "expected"),
    [
        ([1.4, 1.4, 1.4], 1.0),
        ([0.6, 0.6], 1.0),
        ([1.5, 0.5], 0.0),  # said in one context, and its contrary in the other
        ([1.4, 1.0], 0.5),  # a mean of 1.2: 0.04 of 0.08
        ([1.0, 1.0, 1.0], math.nan),  # nothing is said anywhere
        ([1.4], math.nan),
        ([], math.nan),
    ],
)
def test_stability__of_lifts_without_errors(lifts, expected):
    found = stability([lift(one) for one in lifts], [7.0] * len(lifts))
    assert abs(found - expected) < 1e-12 or (math.isnan(found) and math.isnan(expected))


def test_stability__weighs_contexts_and_takes_chance_off():
    assert abs(stability([lift(1.4), lift(1.0)], [3, 1]) - 0.09 / 0.12) < 1e-12
    # Var 0.04 less 2 * 0.25 * 0.01, total 0.08 less 0.01.
    assert abs(stability([lift(1.4, 0.1), lift(1.0, 0.1)], [1, 1]) - (1 - 0.035 / 0.07)) < 1e-12
    assert math.isnan(stability([lift(1.3, 0.5), lift(0.8, 0.5)], [1, 1]))
    rng, found = np.random.default_rng(1), []
    for _ in range(300):  # one lift everywhere, measured badly
        found.append(stability([lift(one, 0.1) for one in 1.4 + 0.1 * rng.standard_normal(6)], [1.0] * 6))
    assert not np.isnan(found).any() and np.mean(found) > 0.97 and max(found) == 1


def test_stability__of_decisions(repeated):
    """The contexts as they are, and beliefs by decree: a lift of 1.5 in all, and one that hangs on the quarter."""
    rules = np.full((len(repeated), len(MEANINGS)), 0.4)
    some = {"draws": 5, "least": 100}
    was = made(kinds(situation(repeated))["repeats_partner"], repeated.action)
    one = consistency(unjudged(repeated, rules=rules, true=1.5 * rules), **some).link("repeats_partner", "more_opened")
    assert abs(one.stability - 1) < 1e-9 and {round(each.mean, 9) for each in one.lifts.values()} == {1.5}
    assert set(one.lifts) == {"second quarter, partner's suit", "third quarter, partner's suit"}
    assert sum(each.count for each in one.lifts.values()) == was.sum()
    early = repeated.tiles < 14
    share = early[was].mean()
    hangs = rules * np.where(early, 1.5, 1 - 0.5 * share / (1 - share))[:, None]  # 1 in the mean
    one = consistency(unjudged(repeated, rules=rules, true=hangs), **some).link("repeats_partner", "more_opened")
    assert one.stability < 1e-9
    few = consistency(unjudged(repeated, rules=rules, true=hangs), draws=5, least=10_000)
    assert all(not each.lifts for each in few.links)


def test_contexts__are_of_the_suit_that_is_spoken_of(repeated):
    """What it leaves open to the right, and what it closes that the left has opened, is an opponent's."""
    rules = np.full((len(repeated), len(MEANINGS)), 0.4)
    found = consistency(unjudged(repeated, rules=rules, true=rules), draws=1, least=100)
    for kind, meaning in (("leaves_right", "void_left"), ("covers_left", "more_covered")):
        whose = {name.partition(", ")[2] for name in found.link(kind, meaning).lifts}
        assert "opponent's suit" in whose and "nobody else's suit" not in whose, kind


def test_lifts__are_those_of_the_table_of_conventions():
    record = play(Repeater(1.5), deals=60, seed=4)
    tiles = [17, 18]  # of one quarter
    table = conventions(record, "uniform", tiles=tiles, least=8, floor=0.0, examples=0)
    judged = judge(record.moments.take(np.isin(record.moments.tiles, tiles)), record.table, "uniform", floor=0.0)
    found = consistency(judged, draws=5, least=8)
    seen = [0, 0]
    cells = [cell for row in table.table[1:] for cell in row.cells]
    for cell, link in zip(cells, found.links, strict=True):
        lifts = [one.mean for one in link.lifts.values()]
        assert cell.meaning == link.meaning and bool(lifts) <= bool(cell.lift.count)
        if sum(one.count for one in link.lifts.values()) == cell.lift.count > 0:
            assert min(lifts) - 1e-12 <= cell.lift.mean <= max(lifts) + 1e-12
            seen[len(lifts) > 1] += 1
    assert min(seen) > 3  # one suit's, and of several


# -- agreement ------------------------------------------------------------------------------------------------------


def table_of(lifts, player: str, rules="sport_book") -> Conventions:
    """A table of conventions with given lifts, kinds down and meanings across; nan where there is no number."""
    rows = []
    for kind, values in zip([ANY, *MOVES], np.vstack([np.arange(6) * 100.0, lifts])):
        cells = [
            Cell(meaning.name, lift(value), lift(-value), *[NOTHING] * 4) if not math.isnan(value)
            else Cell(meaning.name, *[NOTHING] * 6)
            for meaning, value in zip(MEANINGS, values)
        ]  # fmt: skip
        figures = dict.fromkeys(
            "share frequency told excess convention partner opponents rise price value".split(), NOTHING
        )
        rows.append(Row(kind=kind, text=kind, public=True, count=9, reply="", cells=tuple(cells), **figures))
    game = get_rules(rules)
    counts = dict.fromkeys("decisions left_out deals least".split(), 9)
    return Conventions(game, (player,) * game.seats, "uniform", table=tuple(rows), **counts)


SIZE = (len(MOVES), len(MEANINGS))
LIFTS = np.exp(np.random.default_rng(0).standard_normal(SIZE))


def test_agreement__with_itself_and_with_its_contrary():
    found = agreement([table_of(lifts, name) for lifts, name in ((LIFTS, "a"), (LIFTS**3, "b"), (1 / LIFTS, "c"))])
    assert np.allclose(found.matrix, [[1, 1, -1], [1, 1, -1], [-1, -1, 1]])
    assert abs(found.mean.mean + 1 / 3) < 1e-12 and found.mean.units == 3 and (found.cells == LIFTS.size).all()
    assert found.mean.low < found.mean.mean < found.mean.high
    alike = agreement([table_of(LIFTS, name) for name in "abcd"])
    assert (alike.mean.mean, alike.mean.low, alike.mean.high) == pytest.approx((1, 1, 1))
    assert np.allclose(agreement([table_of(LIFTS, "a"), table_of(LIFTS, "b")], figure="over_reference").matrix, 1)


def test_agreement__of_ranks_by_hand():
    """Ten cells in common, of others one table has none: 1 - 6 * sum of squares / (10 * 99) = 1 - 6 * 8 / 990."""
    one, other = np.full(SIZE, np.nan), np.full(SIZE, np.nan)
    one.flat[:10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    other.flat[:10] = [2, 1, 4, 3, 6, 5, 8, 7, 9, 10]
    one.flat[20:30], other.flat[40:50] = 50, 1
    found = agreement([table_of(one, "a"), table_of(other, "b")])
    assert abs(found.matrix[0, 1] - (1 - 48 / 990)) < 1e-12 and found.cells[0, 1] == CELLS == 10
    assert found.mean.mean == found.matrix[0, 1] and math.isnan(found.mean.low) and found.mean.units == 2
    other.flat[9] = np.nan
    few = agreement([table_of(one, "a"), table_of(other, "b")])
    assert math.isnan(few.matrix[0, 1]) and math.isnan(few.mean.mean) and few.to_dict()["matrix"][0][1] is None
    flat = agreement([table_of(np.ones(SIZE), "a"), table_of(LIFTS, "b"), table_of(LIFTS, "c")])
    assert flat.mean.mean == pytest.approx(1) and math.isnan(flat.mean.low) and math.isnan(flat.matrix[0, 1])


def test_agreement__interval_is_over_trainings_not_over_pairs():
    """One of eight trainings means something else: of 28 pairs, seven know of it."""
    rng = np.random.default_rng(2)
    tables = [table_of(LIFTS * np.exp(0.3 * rng.standard_normal(SIZE)), f"run {i}") for i in range(7)]
    found = agreement([*tables, table_of(1 / LIFTS, "other")], draws=500)
    off = found.matrix[np.triu_indices(8, 1)]
    pairs = 2 * 1.96 * off.std(ddof=1) / math.sqrt(len(off))
    assert found.mean.mean == pytest.approx(off.mean()) and found.mean.high - found.mean.low > 1.5 * pairs


# -- what is handed on, and mistakes --------------------------------------------------------------------------------


def test_data_rows_and_pictures(repeated):
    from matplotlib.figure import Figure

    rules = np.full((len(repeated), len(MEANINGS)), 0.4)
    found = consistency(unjudged(repeated, rules=rules, true=1.5 * rules), draws=50, least=100)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    first = found.links[0]
    assert plain["links"][0]["kind"] == first.kind and plain["links"][0]["p"] is None  # leads are not among these
    rows = found.rows()
    numbers = [one for one in found.links if not math.isnan(one.p) or not math.isnan(one.stability)]
    assert len(rows) == len(numbers) and len({tuple(row) for row in rows}) == 1
    assert rows[0]["move"] == MOVES["repeats_partner"].text and rows[0]["stability"] == "1.00"
    both = agreement([table_of(LIFTS, "a"), table_of(LIFTS, "b")])
    assert json.loads(json.dumps(both.to_dict(), allow_nan=False))["mean"] == {
        "mean": pytest.approx(1), "low": None, "high": None, "error": None, "units": 2, "count": 4,
    }  # fmt: skip
    assert both.rows()[0] == {"training": "a", "a": "+1.00", "b": "+1.00"}
    thin: Agreement = dataclasses.replace(both, matrix=np.array([[1, np.nan], [np.nan, 1]]))
    for one in (found, both, thin):
        axes = Figure().add_subplot()
        one.draw(axes)
        assert axes.texts and axes.get_title()


def test_errors(repeated):
    for given, words in (({"least": 1}, "least=1 must be"), ({"draws": 0}, "draws=0 at least 1")):
        with pytest.raises(ValueError, match=words):
            consistency(unjudged(repeated), **given)
    with pytest.raises(ValueError, match="no decision"):
        consistency(unjudged(repeated.take(np.zeros(0, int))))
    alone = play("random", get_rules("sport_book", pairs=False), deals=2)
    with pytest.raises(ValueError, match="pairs=False has none"):
        consistency(unjudged(alone.moments))
    one, other = table_of(LIFTS, "a"), table_of(LIFTS, "b")
    for tables, given, words in (
        ([one], {}, "two trainings or more, not 1"),
        ([one, one], {}, "twice: a"),
        ([one, other], {"names": ["x", "x"]}, "twice: x"),
        ([one, other], {"names": ["x"]}, "as many names, not 1"),
        ([one, other], {"figure": "believed"}, "no agreement on 'believed'"),
        ([one, table_of(LIFTS, "b", "tiny_pairs")], {}, "different games"),
    ):
        with pytest.raises(ValueError, match=words):
            agreement(tables, **given)

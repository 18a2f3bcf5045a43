"""The match (S2, S10-S13, B2, R3) and its record: what is written is read back, what does not follow is refused."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from domino_env import PRESETS, DominoEnv, get_rules, make_engine, make_vec, parallel_env, raw_aec_env
from domino_env.deals import format_deal, parse_deal
from domino_env.judge import Violation
from domino_env.match import (
    Header,
    Played,
    Recorder,
    advance,
    begin,
    change_seats,
    deal_out,
    draw_numbers,
    draw_tiles,
    given_deal,
    header,
    lay_out,
    lead,
    leave,
    lowness,
    next_deal,
    read,
    result,
    seat_by_numbers,
    seat_by_tiles,
    shuffler,
    summary,
)
from domino_env.observation import SCORE_STEPS
from domino_env.schemas import KEYWORDS, check, schema
from domino_env.tiles import NUM_TILES, PASS, action_index, action_name, mask_of, tile_index, tile_name, tiles_of
from tests.reference import TILES

NAMES = ("Ann", "Bob", "Cid", "Dot", "Eve", "Fay", "Gus", "Hal")
BOOK, CLUB, KOZYOL = get_rules("sport_book"), get_rules("sport_club"), get_rules("kozyol")
GAMES = {  # every game, as records name it
    **{name: get_rules(name) for name in PRESETS},
    "puerto_rico 6-6": get_rules("puerto_rico", lead="double_six"),
    "sport_book of two": get_rules("sport_book", seats=2, pairs=False),
    "blitz of five": get_rules("blitz", seats=5),
    "blitz of eight": get_rules("blitz", seats=8, chain="one"),
    "blitz in pairs": get_rules("blitz", pairs=True),
    "blind_blitz of two": get_rules("blind_blitz", seats=2, lead="high"),
    "blind of three": get_rules("blind", seats=3),
}
OTHERS = {name: rules for name, rules in GAMES.items() if rules.kind != "line"}  # blitz and the blind games


def head(rules=BOOK, **fields):
    """A header."""
    return Header(rules, NAMES[: rules.seats], **fields)


def played(standing, rng, stop=None, deal=None, **fields):
    """The next deal of a match, played at random, or as far as `stop` moves; `deal`: masks of given hands."""
    if deal is None:
        deal = next_deal(standing, int(rng.integers(1 << 30)))
    else:
        deal = given_deal(standing, [tiles_of(hand) for hand in deal])
    engine = lay_out([standing], [deal])
    while not engine.over()[0] and (stop is None or engine.plies()[0] < stop):
        engine.step(engine.sample_legal(rng), autoreset=False)
    return Played(engine.record(0), **fields)


def fill(recorder, seed=0, deals=None):
    """Play a match to its end, or some deals, into a recorder."""
    rng = np.random.default_rng(seed)
    while not recorder.standing.over and deals != 0:
        recorder.append(played(recorder.standing, rng))
        deals = None if deals is None else deals - 1
    return recorder


def written(path, rules=BOOK, seed=0, deals=None):
    """A record on the disk."""
    path.write_bytes(whole_record(rules, seed, deals))
    return path


@cache
def whole_record(rules, seed, deals):
    """The bytes of a match that was played at random."""
    with TemporaryDirectory() as folder:
        with Recorder.create(Path(folder) / "match.jsonl", head(rules)) as recorder:
            fill(recorder, seed, deals)
        return recorder.path.read_bytes()


def edit(path, number, change):
    """Change a line of a record, as parsed; its number from 1."""
    lines = path.read_text("utf-8").splitlines()
    value = json.loads(lines[number - 1])
    value = change(value) or value
    lines[number - 1] = json.dumps(value, ensure_ascii=False)
    path.write_text("\n".join(lines) + "\n", "utf-8")


# ------------------------------------------------------------------------------------------------------ seats and leads


def test_lowness__fewest_pips_then_the_smaller_suit():
    """S11: 0-0 is the lowest; equal pips go by the smaller suit, so 0-2 is below 1-1; no two tiles are alike."""
    assert lowness("0-0") < lowness("0-1") < lowness("0-2") < lowness("1-1") < lowness("0-3") < lowness("1-2")
    assert lowness("4-6") < lowness("5-5") < lowness("5-6") < lowness("6-6")
    assert len({lowness(f"{a}-{b}") for a, b in TILES}) == 28


@pytest.mark.parametrize(
    "drawn, seats",
    [
        ((("0-0", "6-6"), ("1-1", "5-5")), "Ann Bob Cid Dot"),
        ((("6-6", "0-0"), ("5-5", "1-1")), "Cid Dot Ann Bob"),
        ((("1-1", "3-3"), ("4-4", "0-2")), "Dot Ann Bob Cid"),  # 0-2 is below 1-1, so Dot's pair begins
        ((("2-2", "0-4"), ("1-3", "6-6")), "Cid Bob Ann Dot"),
    ],
)
def test_seating__club(drawn, seats):
    """S11 club: the lowest tile leads, to its left the lower drawer of the rivals, partners face each other."""
    assert " ".join(seat_by_tiles((("Ann", "Cid"), ("Bob", "Dot")), drawn)) == seats


def test_seating__club_properties():
    """S11 club: for every order of four tiles, and whichever pair is named first."""
    tiles = ["0-0", "0-2", "1-1", "5-5"]
    for a, b, c, d in permutations(tiles):
        tile = dict(zip(NAMES[:4], (a, b, c, d)))
        seats = seat_by_tiles((("Ann", "Cid"), ("Bob", "Dot")), ((a, c), (b, d)))
        assert seats == seat_by_tiles((("Dot", "Bob"), ("Cid", "Ann")), ((d, b), (c, a)))
        assert {frozenset(seats[::2]), frozenset(seats[1::2])} == {frozenset(("Ann", "Cid")), frozenset(("Bob", "Dot"))}
        low = [lowness(tile[name]) for name in seats]
        assert low[0] == min(low) and low[1] < low[3]


@pytest.mark.parametrize("numbers, seats", [((1, 2), "Ann Bob Cid Dot"), ((7, 3), "Bob Ann Dot Cid")])
def test_seating__book(numbers, seats):
    """S11 book: first player of the lower pair, to the left first player of the other; seconds face their partners."""
    assert " ".join(seat_by_numbers((("Ann", "Cid"), ("Bob", "Dot")), numbers)) == seats


@pytest.mark.parametrize(
    "call",
    [
        lambda: seat_by_tiles((("a", "b"), ("c", "d")), (("0-0", "0-0"), ("1-1", "2-2"))),
        lambda: seat_by_tiles((("a", "b"), ("c", "d")), (("0-0", "0-7"), ("1-1", "2-2"))),
        lambda: seat_by_tiles((("a", "b", "e"), ("c", "d")), (("0-0", "0-1"), ("1-1", "2-2"))),
        lambda: seat_by_numbers((("a", "b"),), (1, 2)),
        lambda: seat_by_numbers((("a", "b"), ("c", "d")), (2, 2)),
        lambda: seat_by_numbers((("a", "b"), ("c", "d")), (0, 2)),
        lambda: shuffler("home", 0),
    ],
)
def test_seating__bad_input(call):
    with pytest.raises(ValueError):
        call()


def test_draws__are_chance():
    """S11: tiles differ; every tile, pair number and order within a pair comes up, and a seed repeats it."""
    rng = np.random.default_rng(1)
    drawn = [draw_tiles(rng) for _ in range(400)]
    assert all(len(set(tiles)) == 4 for tiles in drawn) and len({tile for tiles in drawn for tile in tiles}) == 28
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    orders = [tuple(draw_numbers(rng, pairs)) for _ in range(600)]
    assert len(set(orders)) == 6 * 8
    assert all(sorted(map(sorted, order)) == sorted(map(sorted, pairs)) for order in orders)
    assert draw_tiles(np.random.default_rng(5)) == draw_tiles(np.random.default_rng(5))


def test_lead__rotates():
    """S2: seat d mod 4, whatever happened."""
    hands = [mask_of(range(7 * seat, 7 * seat + 7)) for seat in range(4)]
    last = (3, {"winner": 1, "by": 3})
    assert [lead(BOOK, d, hands, last) for d in range(6)] == [(d % 4, None) for d in range(6)]


def test_lead__by_tile_and_by_result():
    """K1: the holder of 6-6, with it. K2: of 1-1 with it, then who went out, after a block the winners' first seat from
    the one that closed, after an equal block the same."""
    hands = [mask_of(range(7 * seat, 7 * seat + 7)) for seat in range(4)]
    assert lead(get_rules("puerto_rico", lead="double_six"), 5, hands) == (3, 27)
    assert lead(KOZYOL, 0, hands) == (1, 7)
    for raw, seat in [({"winner": 0, "by": 2}, 2), ({"winner": 1, "by": 2}, 3), ({"winner": None, "by": 2}, 1)]:
        assert lead(KOZYOL, 1, hands, (1, raw)) == (seat, None)


def test_lead__lowest_tile_dealt():
    """B2: fewest pips, then the smaller suit; a tile that is left over leads nobody."""
    blitz = get_rules("blitz", seats=8)
    hands = [mask_of(range(3 * seat + 4, 3 * seat + 7)) for seat in range(8)]  # 0-0 to 0-3 are left over
    assert lead(blitz, 5, hands) == (1, tile_index("1-1")), "1-1 is below 0-4, which seat 0 holds"
    hands[3], hands[7] = mask_of(map(tile_index, ("6-6", "0-2", "5-6"))), mask_of((13, 14, 15))
    assert lead(blitz, 0, hands) == (3, tile_index("0-2")), "0-2 is below 1-1"
    assert lead(blitz, 0, hands, (0, {"winner": 5, "by": 5})) == (3, tile_index("0-2")), "whatever happened before"


def test_lead__of_the_blind_games():
    """R3: the blank or the lowest, the highest (5-5 stands above 4-6), or the seat that a lot names."""
    hands = [mask_of(map(tile_index, hand)) for hand in (("4-6", "1-1"), ("5-5", "0-3"), ("2-2", "0-2"))]
    rules = {name: get_rules("blind_blitz", seats=3, lead=name) for name in ("blank", "low", "high", "lot")}
    assert lead(rules["high"], 0, hands) == (1, tile_index("5-5"))
    assert lead(rules["low"], 0, hands) == lead(rules["blank"], 0, hands) == (2, tile_index("0-2"))
    assert [lead(rules["lot"], 7, hands, lot=seat) for seat in range(3)] == [(seat, None) for seat in range(3)]
    for lot in (None, 3):
        with pytest.raises(ValueError, match=rf"lot={lot} must be a seat in 0\.\.2"):
            lead(rules["lot"], 0, hands, lot=lot)


LED = [name for name, rules in GAMES.items() if rules.lead != "lot"]  # a lot is the engine's own


@pytest.mark.parametrize("game", LED)
def test_lead__as_in_the_engine_s_matches(game):
    """S2, K1, K2, B2, R3: the engine's next deal is led as `lead` says."""
    engine = make_engine(GAMES[game], 40, seed=6, episode="match", fours=2)
    rng = np.random.default_rng(0)
    last = [None] * 40
    led = 0
    for _ in range(150):
        leaders, plies, hands = engine.leader(), engine.plies(), engine.hands()
        for i in np.flatnonzero(plies == 0):
            seat, tile = lead(engine.rules, int(engine.deal_index()[i]), hands[i].tolist(), last[i], int(leaders[i]))
            assert seat == leaders[i]
            assert tile is None or tiles_of(int(engine.legal_bits()[i])) == [tile]
            led += 1
        _, done = engine.step(engine.sample_legal(rng))
        for j, row in enumerate(engine.finished.rows):
            last[row] = None if done[row] else (int(leaders[row]), engine.finished.info(j))
    assert led > 80


@pytest.mark.parametrize("game", GAMES)
def test_next_deal__is_that_of_an_engine_s_match(game):
    """S1, S4, B1, R1: one seed is a whole match, in the records as in the envs."""
    rules = GAMES[game]
    standing, rng = begin(head(rules)), np.random.default_rng(2)
    engine = make_engine(rules, 1, seed=11, episode="match")
    for _ in range(4):
        deal = next_deal(standing, 11)
        dealt = engine.record(0)
        assert (deal.leader, deal.stock, deal.moves) == (dealt.leader, dealt.stock, [])
        assert format_deal(deal) == format_deal(dealt)
        done = False
        while not done and engine.deal_index()[0] == standing.deals:
            before, action = engine.record(0), engine.sample_legal(rng)
            _, (done,) = engine.step(action, autoreset=False)
        standing, _ = advance(standing, Played(replace(before, moves=[*before.moves, int(action[0])])))
        assert done == standing.over
        if done:
            break
    with pytest.raises(ValueError, match="over"):
        next_deal(replace(standing, deals=400, sums=(200,) * rules.num_sides), 11)


def test_next_deal__after_a_replay():
    """J5: the deal that is played instead is another one, of the same number and leader."""
    start, rng = begin(head(CLUB, judge="club")), np.random.default_rng(0)
    first = next_deal(start, 3)
    replayed = Played(replace(first), (Violation("show", 0, decision="replay"),))
    after, line = advance(start, replayed)
    assert line["recorded"]["deal"] == "replay"
    second = next_deal(after, 3)
    assert second.hands != first.hands and second.leader == first.leader == 0
    assert advance(after, played(after, rng))[0].deals == 1


def test_given_deal__is_led_by_the_rules():
    """S13: given hands, in order; the leader is the next of the rotation, or the holder of the tile."""
    hands = [[*range(7 * seat, 7 * seat + 7)] for seat in range(4)]
    assert given_deal(replace(begin(head()), deals=2), hands).leader == 2
    assert given_deal(begin(head(KOZYOL)), hands).leader == 1
    with pytest.raises(ValueError, match="nobody holds 1-1"):
        given_deal(begin(head(KOZYOL)), [[tile for tile in hand if tile != 7] for hand in hands])
    blind = begin(head(get_rules("blind", seats=3)))
    rows = [[*range(8 * seat, 8 * seat + 8)] for seat in range(3)]
    deal = given_deal(blind, rows, [24, 25, 26, 27], lot=2)
    assert (deal.leader, deal.hands, deal.stock) == (2, rows, [24, 25, 26, 27])
    with pytest.raises(ValueError, match="a lot decides"):
        given_deal(blind, rows, [24, 25, 26, 27])


@pytest.mark.parametrize("game", GAMES)
def test_lay_out__many_matches_side_by_side(game):
    """Each row is the deal of its match before its first move, led with the tile that the rules name."""
    rules = GAMES[game]
    standings = [begin(head(rules)) for _ in range(3)]
    deals = [next_deal(standing, seed) for seed, standing in enumerate(standings)]
    engine = lay_out(standings, deals)
    assert engine.plies().tolist() == [0, 0, 0]
    for row, deal in enumerate(deals):
        assert format_deal(engine.record(row)) == format_deal(deal)
        named = rules.lead not in ("rotation", "lot")
        assert engine.legal_count()[row] == (1 if named or rules.rows else rules.hand_size)
    with pytest.raises(ValueError, match="3 matches and 2 deals"):
        lay_out(standings, deals[:2])
    with pytest.raises(ValueError, match="of one game"):
        lay_out([begin(head()), begin(head(CLUB))], [next_deal(begin(head(one)), 0) for one in (BOOK, CLUB)])


def test_summary():
    """S10: who plays with whom, how far it has come, who won; a tie; plain data."""
    start = begin(head(CLUB, judge="club", warnings=(1, 0)))
    found = summary(start)
    assert json.loads(json.dumps(found)) == found
    assert found["sides"] == [["Ann", "Cid"], ["Bob", "Dot"]] and found["players"] == ["Ann", "Bob", "Cid", "Dot"]
    assert (found["deals"], found["length"], found["to"], found["over"], found["winner"]) == (0, 4, None, False, None)
    won, tied = replace(start, deals=4, sums=(7, 9)), replace(start, deals=4, sums=(9, 9))
    assert (summary(won)["winner"], summary(won)["tie"]) == (1, False)
    assert (summary(tied)["winner"], summary(tied)["tie"], summary(tied)["over"]) == (None, True, True)
    assert summary(leave(start, 2))["withdrawal"]["player"] == "Cid" and summary(leave(start, 2))["over"]
    alone = replace(begin(head(get_rules("blitz", seats=5))), deals=4, sums=(4, 9, -30, 8, 9))
    assert summary(alone)["sides"] == [["Ann"], ["Bob"], ["Cid"], ["Dot"], ["Eve"]] and summary(alone)["tie"]
    assert (summary(begin(head(KOZYOL)))["length"], summary(begin(head(KOZYOL)))["to"]) == (None, 101)
    assert summary(begin(head()))["warnings"] is None and found["warnings"] == [1, 0]


def test_shuffler():
    """S12: book: the pair that does not lead, and it draws last; club: the seat before the leader, then the leader."""
    for leader in range(4):
        before = (leader + 3) % 4
        assert shuffler("book", leader) == {"by": [before], "draws_last": before}
        assert shuffler("club", leader) == {"by": [before, leader], "draws_last": leader}
        assert before % 2 != leader % 2


def test_result__and_tie():
    """S10: the larger sum; equal sums are a draw."""
    assert [result(sums) for sums in ([3, 2], [2, 3], [4, 4], [1, -2, 1], [0, 5, -5])] == [0, 1, None, None, 1]


def test_change_of_seats():
    """S11: between fours, by the pair behind, which takes its points along."""
    assert change_seats(NAMES[:4], 0, 4, (10, 20)) == ("Cid", "Bob", "Ann", "Dot")
    assert change_seats(NAMES[:4], 1, 8, (20, 10)) == ("Ann", "Dot", "Cid", "Bob")
    for side, deals, sums, why in [
        (0, 4, (20, 10), "behind"),
        (0, 4, (10, 10), "behind"),
        (0, 3, (1, 2), "between fours"),
        (0, 0, (1, 2), "between fours"),
        (2, 4, (1, 2), "0 or 1"),
    ]:
        with pytest.raises(ValueError, match=why):
            change_seats(NAMES[:4], side, deals, sums)


# ----------------------------------------------------------------------------------------------------- writing, reading


@pytest.mark.parametrize("name", GAMES)
def test_record__is_read_as_it_was_written(tmp_path, name):
    """A match of each game: the same standing, the right length, sums that add up (S10, K2, B5)."""
    path = tmp_path / "match.jsonl"
    fours = 1 if GAMES[name].rows else 2
    with Recorder.create(path, head(GAMES[name], fours=fours, info={"round": 3, "table": "blue"})) as recorder:
        fill(recorder, seed=3)
    found = read(path)
    assert found.standing == recorder.standing and found.standing.over and not found.cut
    assert found.header == recorder.standing.header and found.header.info == {"round": 3, "table": "blue"}
    assert len(found.lines) == len(found.played) == found.standing.deals
    total = np.sum([line["raw"]["points"] for line in found.lines], axis=0).tolist()
    assert total == [*found.standing.sums] == found.lines[-1]["sums"]
    assert found.standing.winner == result(total)
    if name == "kozyol":
        assert max(total) >= 101 > max(found.lines[-2]["sums"])
    else:
        assert len(found.lines) == 4 * fours
    if GAMES[name].lead == "rotation":
        assert [line["leader"] for line in found.lines] == [*range(GAMES[name].seats)] * (8 // GAMES[name].seats)
    if not GAMES[name].pairs:
        assert all(sum(line["raw"]["points"]) == 0 for line in found.lines)


def test_record__lines_are_as_the_schema_says(tmp_path):
    """Header, deals and a withdrawal; each line is one of the three and no other."""
    path = tmp_path / "match.jsonl"
    with Recorder.create(path, head(CLUB, judge="club", draw=("0-0", "1-1", "4-4", "2-2"))) as recorder:
        fill(recorder, deals=2)
        recorder.leave(3)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, part in zip(lines, ["header", "deal", "deal", "withdrawal"], strict=True):
        for kind in ("header", "deal", "withdrawal"):
            if kind == part:
                check("match", kind, line)
            else:
                with pytest.raises(ValueError):
                    check("match", kind, line)
    assert lines[1]["shuffle"] == {"by": [3, 0], "draws_last": 0}
    assert lines[3]["withdrawal"]["player"] == "Dot"


def test_schema__has_only_known_keywords_and_closed_objects():
    whole = schema("match")
    seen = set()

    def walk(rule):
        seen.update(rule)
        for key in ("properties", "$defs"):
            for part in rule.get(key, {}).values():
                walk(part)
        for part in rule.get("anyOf", []) + rule.get("oneOf", []):
            walk(part)
        for key in ("items", "additionalProperties"):
            if isinstance(rule.get(key), dict):
                walk(rule[key])
        if rule.get("type") == "object":
            assert "additionalProperties" in rule

    walk(whole)
    assert seen <= KEYWORDS
    assert set(whole["$defs"]["deal"]["required"]) | {"players", "left"} == set(whole["$defs"]["deal"]["properties"])


@pytest.mark.parametrize(
    "value, why",
    [
        ([], "must be object"),
        ({"withdrawal": {"seat": 1, "player": "x"}}, "lacks 'note'"),
        ({"withdrawal": {"seat": True, "player": "x", "note": ""}}, "seat must be integer, not True"),
        ({"withdrawal": {"seat": 9, "player": "x", "note": ""}}, r"0\.\.7"),
        ({"withdrawal": {"seat": 1, "player": 5, "note": ""}}, "must be string"),
        ({"withdrawal": {"seat": 1, "player": "x", "note": "", "why": 1}}, "unknown key 'why'"),
    ],
)
def test_schema__says_where_and_what(value, why):
    with pytest.raises(ValueError, match=why):
        check("match", "withdrawal", value)


def test_record__ends_with_the_match(tmp_path):
    """S10: four deals a four, no fifth."""
    with Recorder.create(tmp_path / "match.jsonl", head()) as recorder:
        fill(recorder)
        assert recorder.standing.deals == 4
        with pytest.raises(ValueError, match="over"):
            recorder.append(played(replace(recorder.standing, deals=0), np.random.default_rng(0)))


def test_record__closed(tmp_path):
    recorder = Recorder.create(tmp_path / "match.jsonl", head())
    recorder.close()
    recorder.close()
    with pytest.raises(ValueError, match="closed"):
        fill(recorder)


def test_record__resumes(tmp_path):
    """A record goes on where it stopped, and is then the record of a match that never stopped."""
    path, whole = tmp_path / "a.jsonl", written(tmp_path / "b.jsonl", seed=9)
    deals = read(whole).played
    with Recorder.create(path, head()) as recorder:
        recorder.append(deals[0])
    for deal in deals[1:]:
        with Recorder.resume(path) as recorder:
            recorder.append(deal)
    assert path.read_bytes() == whole.read_bytes()


def test_record__seats_changed_between_fours(tmp_path):
    """S11: the record names the new seats; the points stay with the pair; anybody else's change is refused."""
    path = tmp_path / "match.jsonl"
    rng = np.random.default_rng(4)
    with Recorder.create(path, head(fours=2)) as recorder:
        with pytest.raises(ValueError, match="between fours"):
            recorder.append(played(recorder.standing, rng, players=("Cid", "Bob", "Ann", "Dot")))
        fill(recorder, deals=4)
        before = recorder.standing
        behind = 0 if before.sums[0] < before.sums[1] else 1
        swapped = change_seats(NAMES[:4], behind, 4, before.sums)
        other = tuple(NAMES[(seat + 2) % 4] if seat % 2 != behind else NAMES[seat] for seat in range(4))
        for wrong in (other, ("Bob", "Ann", "Dot", "Cid"), ("Ann", "Bob", "Cid", "Eve")):
            with pytest.raises(ValueError, match="pair behind"):
                recorder.append(played(before, rng, players=wrong))
        line = recorder.append(played(before, rng, players=swapped))
        assert line["players"] == [*swapped]
        assert "players" not in recorder.append(played(recorder.standing, rng, players=swapped))
    assert read(path).standing.players == swapped


# -------------------------------------------------------------------------------------------------------- refused input


def test_cut__in_the_middle_of_a_line(tmp_path):
    """A last line that was not written to its end is found wherever it is cut, named, and can be left out."""
    path = written(tmp_path / "match.jsonl", deals=2)
    whole = path.read_bytes()
    before = whole[: whole.rindex(b"\n", 0, -1) + 1]
    for length in (1, 5, 200, len(whole) - len(before) - 1):
        path.write_bytes(before + whole[len(before) :][:length])
        with pytest.raises(ValueError, match=r"match\.jsonl: line 3 is cut"):
            read(path)
        with pytest.raises(ValueError, match="line 3 is cut"):
            Recorder.resume(path)
        found = read(path, drop_cut=True)
        assert found.cut and len(found.lines) == 1 and path.read_bytes() != before, "reading changes nothing"
        with Recorder.resume(path, drop_cut=True) as recorder:
            assert recorder.standing == found.standing
        assert path.read_bytes() == before


def test_cut__in_the_header(tmp_path):
    path = tmp_path / "match.jsonl"
    for data in (b"", b'{"record": "dom'):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="line 1"):
            read(path)
        with pytest.raises(ValueError, match="line 1 is missing"):
            read(path, drop_cut=True)


def setter(*path, to):
    """A change of one place of a line."""

    def change(line):
        for key in path[:-1]:
            line = line[key]
        line[path[-1]] = to(line[path[-1]]) if callable(to) else to

    return change


@pytest.mark.parametrize(
    "change, why",
    [
        (setter("raw", "points", to=lambda p: [p[0] + 1, p[1]]), "raw is"),
        (setter("raw", "winner", to=None), "raw is"),
        (setter("raw", "plies", to=lambda n: n + 1), "raw is"),
        (setter("recorded", "points", to=lambda p: p[::-1]), "recorded is"),
        (setter("recorded", "fines", to=[25, 0]), "recorded is"),
        (setter("sums", to=lambda s: [s[0] + 1, s[1]]), "sums is"),
        (setter("deal", to=7), "deal is 7; from the moves follows 1"),
        (setter("shuffle", to=None), "shuffle is None"),
        (setter("leader", to=2), "leader is 2; from the moves follows 1"),
        (setter("moves", to=lambda m: m[:-1]), "not over"),
        (setter("moves", to=lambda m: [*m, "pass"]), "after the end"),
        (setter("moves", to=lambda m: [m[1], m[0], *m[2:]]), "move"),
        (setter("moves", 0, to="pass"), "move 1 of seat 1"),
        (setter("moves", 0, to="3-7L"), r"deal.moves\[0\] must match"),
        (setter("moves", 0, to="0-0L\n"), "move"),
        (setter("text", to=lambda t: t.replace("leader=1", "leader=2")), "led by seat 1, not by seat 2"),
        (setter("text", to=lambda t: t.replace("sport_book", "sport_club")), "the match is of sport_book$"),
        (setter("text", to=lambda t: t.replace("|", "!", 1)), "text: column"),
        (setter("text", to=lambda t: t + " | 0-0L"), "text"),
        (setter("sanctions", to=[{}]), r"deal.sanctions\[0\] lacks 'violation'"),
        (setter("extra", to=1), "extra"),
        (lambda line: line.pop("sums") and None, "lacks 'sums'"),
        (lambda line: [line], "deal must be object"),
        (setter("raw", "winner", to=True), "must be integer or null"),
        (setter("raw", "plies", to=float), "must be integer"),
    ],
)
def test_edited__is_refused_with_its_line(tmp_path, change, why):
    """An edited line does not follow from its moves, or is none: refused, with the number of the line."""
    path = written(tmp_path / "match.jsonl", seed=2)
    assert read(path).standing.deals == 4

    edit(path, 3, change)
    with pytest.raises(ValueError, match=rf"(?s)match\.jsonl: line 3: .*{why}"):
        read(path)
    with pytest.raises(ValueError, match="line 3"):
        Recorder.resume(path)


@pytest.mark.parametrize(
    "change, why",
    [
        (setter("moves", to=lambda m: m[:-1]), "not over"),
        (setter("moves", to=lambda m: [*m, "pass"]), "after the end"),
        (setter("moves", to=lambda m: m[1:]), "move 1|is led with|move"),
        (setter("moves", 0, to="pass"), "move 1 of seat"),
        (setter("moves", to=lambda m: [m[0], "turn", *m[1:]]), "unknown move 'turn'|illegal|raw is|recorded|not over"),
        (setter("leader", to=lambda seat: (seat + 1) % 3), "leader is"),
        (setter("raw", "points", to=lambda p: [*p[:-1], p[-1] + 1]), "raw is"),
        (setter("raw", "by", to=lambda seat: (seat + 1) % 3), "raw is"),
        (setter("recorded", "winner", to=7), "recorded is"),
        (setter("recorded", "fines", 0, to=1), "recorded is"),
        (setter("sums", to=lambda s: [s[0] - 1, *s[1:]]), "sums is"),
        (setter("sums", to=lambda s: s[:-1]), "sums"),
        (setter("shuffle", to={"by": [0], "draws_last": 0}), "shuffle is"),
        (setter("text", to=lambda t: t.rpartition(" ")[0]), "text: column"),
    ],
)
@pytest.mark.parametrize("game", OTHERS)
def test_edited__line_of_another_game(tmp_path, game, change, why):
    """Blitz and the blind games: an edited line is refused, with its number."""
    path = written(tmp_path / "match.jsonl", OTHERS[game], seed=2, deals=2)
    edit(path, 3, change)
    with pytest.raises(ValueError, match=rf"(?s)match\.jsonl: line 3: .*({why})"):
        read(path)


@pytest.mark.parametrize("game", [name for name, rules in OTHERS.items() if rules.lead != "lot"])
def test_edited__leader_that_no_tile_names(tmp_path, game):
    """B2, R3: who leads is not a matter of the record."""
    path = written(tmp_path / "match.jsonl", OTHERS[game], seed=2, deals=2)
    seat = read(path).lines[1]["leader"]
    other = (seat + 1) % OTHERS[game].seats
    edit(path, 3, setter("text", to=lambda text: text.replace(f"leader={seat}", f"leader={other}")))
    with pytest.raises(ValueError, match=f"line 3: deal 1 is led by seat {seat}, not by seat {other}"):
        read(path)


def test_edited__order_of_a_row(tmp_path):
    """R1, R4: the order of a row and of the stock is a part of the deal: another order gives other moves."""
    path = written(tmp_path / "match.jsonl", get_rules("blind", seats=2), seed=4)
    whole = path.read_bytes()
    line = read(path).lines[0]
    rows = [part.split() for part in line["text"].split("|")[1:]]
    for pile, tiles in enumerate(rows):
        # The rightmost tile is turned first; of the stock that which was drawn first came to somebody's row.
        places = (-1, -2) if pile < 2 else (0, 1)
        swapped = [*tiles]
        swapped[places[0]], swapped[places[1]] = tiles[places[1]], tiles[places[0]]
        edit(path, 2, setter("text", to=line["text"].replace(" ".join(tiles), " ".join(swapped))))
        with pytest.raises(ValueError, match=r"line 2: (move|raw|the deal)"):
            read(path)
        path.write_bytes(whole)
    assert len(read(path).lines) == 4


@pytest.mark.parametrize("game", ["sport_book", "blitz of five"])
def test_edited__moves_of_another_game(tmp_path, game):
    """`turn` and `draw` are of the blind games: refused in words, wherever they stand."""
    path = written(tmp_path / "match.jsonl", GAMES[game], deals=1)
    edit(path, 2, setter("moves", 3, to="draw"))
    with pytest.raises(ValueError, match="line 2: unknown move 'draw'; moves are written a-bL, a-bR or pass"):
        read(path)


def test_record__guard_of_the_blind_games(tmp_path, monkeypatch):
    """R8: a deal that the guard broke off stands in the record; nobody scores, and the match goes on."""
    path = tmp_path / "match.jsonl"
    monkeypatch.setattr("domino_env.rows.GUARD_TURNS", 5)
    with Recorder.create(path, head(get_rules("blind"))) as recorder:
        fill(recorder, seed=1)
    found = read(path)
    assert [line["raw"]["outcome"] for line in found.lines] == ["guard"] * 4, "five turns are few"
    assert all(line["recorded"]["points"] == [0] * 4 and line["raw"]["winner"] is None for line in found.lines)
    assert found.standing.over and found.standing.winner is None and summary(found.standing)["tie"]
    monkeypatch.undo()
    with pytest.raises(ValueError, match="line 2: the deal is not over"):
        read(path)


@pytest.mark.parametrize(
    "change, why",
    [
        (setter("record", to="chess"), "header.record must be 'domino match'"),
        (setter("version", to=2), "header.version must be 1"),
        (setter("rules", to="bridge"), "choose from sport_book"),
        (setter("overrides", to={"seats": 5}), "seats=5"),
        (setter("overrides", to={"colour": 1}), "no field 'colour'"),
        (setter("players", to=list("abc")), "4 names"),
        (setter("players", to=list("abcde")), "4 names"),
        (setter("players", 0, to=""), "1 characters"),
        (setter("fours", to=0), r"header.fours"),
        (setter("judge", to="king"), "header.judge"),
        (setter("warnings", to=[0]), "header.warnings"),
        (setter("draw", to=["0-1", "0-0", "1-1", "2-2"]), "S11"),
        (setter("draw", to=["0-1", "3-3", "1-1", "2-2"]), "S11"),
        (setter("draw", to=[2, 1]), "S11"),
        (setter("draw", to=["0-1", 2]), "header.draw"),
        (setter("info", to={"x": []}), "header.info.x"),
    ],
)
def test_header__is_refused(tmp_path, change, why):
    path = written(tmp_path / "match.jsonl", deals=1)
    edit(path, 1, change)
    with pytest.raises(ValueError, match=rf"line 1: .*{why}"):
        read(path)


@pytest.mark.parametrize(
    "data, why",
    [
        (b"\xff\n", "UTF-8"),
        (b"{]\n", "not JSON: .* column 2"),
        (b"\n", "not JSON"),
        (b'{"deal": 1, "deal": 1}\n', "stands twice"),
        (b'{"deal": NaN}\n', "NaN is no number"),
        (b"[" * 100_000 + b"\n", "nested|JSON"),
    ],
)
def test_lines__that_are_no_json(tmp_path, data, why):
    path = written(tmp_path / "match.jsonl", deals=1)
    path.write_bytes(path.read_bytes() + data)
    with pytest.raises(ValueError, match=f"line 3: .*{why}"):
        read(path)


def test_lines__swapped_doubled_or_lost(tmp_path):
    path = written(tmp_path / "match.jsonl", seed=5)
    lines = path.read_text().splitlines(keepends=True)
    for order, number in [((0, 2, 1, 3, 4), 2), ((0, 1, 1, 2, 3), 3), ((0, 1, 3, 4), 3), ((0, 1, 2, 3, 4, 4), 6)]:
        path.write_text("".join(lines[i] for i in order))
        with pytest.raises(ValueError, match=f"line {number}: "):
            read(path)
    path.write_text("".join(lines[1:]))
    with pytest.raises(ValueError, match="line 1: header"):
        read(path)


def test_deal__that_s4_deals_again():
    """S4: a hand that is dealt again stands in no record, unless deals are given (S13) or its holder was fined (J3)."""
    doubles = [0, 7, 13, 18, 22, 1, 2]
    rest = [t for t in range(28) if t not in doubles]
    hands = np.array([mask_of(doubles), *(mask_of(rest[i : i + 7]) for i in (0, 7, 14))], np.uint32)
    rng = np.random.default_rng(0)
    for start in (begin(head()), begin(head(CLUB, judge="club"))):
        with pytest.raises(ValueError, match="S4"):
            advance(start, played(start, rng, deal=hands))
    given = begin(head(given=True))
    assert advance(given, played(given, rng, deal=hands))[0].deals == 1
    start = begin(head(CLUB, judge="club"))
    line = advance(start, played(start, rng, deal=hands, violations=(Violation("redeal_undeclared", 0),)))[1]
    assert line["recorded"]["fines"] == [0, 25] and line["recorded"]["deal"] == "continue"
    with pytest.raises(ValueError, match="could not declare"):
        advance(start, played(start, rng, deal=hands, violations=(Violation("redeal_undeclared", 1),)))


@pytest.mark.parametrize(
    "fields, why",
    [
        ({"judge": "club", "rules": get_rules("sport_club", pairs=False)}, "pairs"),
        ({"judge": "book", "rules": KOZYOL}, "lead"),
        ({"warnings": (0, -1)}, "warnings"),
        ({"players": ("a", "b", "c")}, "4 names"),
    ],
)
def test_header__bad_input(fields, why):
    with pytest.raises(ValueError, match=why):
        Header(**{"rules": BOOK, "players": NAMES[:4], **fields})


# --------------------------------------------------------------------------------------------------------- with a judge


def wrong_pass_ply(standing, rng):
    """A deal, and a ply after the lead at which a seat that could lay will pass."""
    whole = played(standing, rng)
    ply = next(i for i in range(1, len(whole.deal.moves)) if whole.deal.moves[i] != PASS)
    return whole, ply


def finish(deal, moves, rng):
    """Play on at random after some moves of which the last was a wrong pass."""
    engine = make_engine(deal.rules, 1)
    engine.deal(np.array([[mask_of(hand) for hand in deal.hands]], np.uint32), np.array([deal.leader]))
    for move in moves:
        if move == PASS:
            engine.allow_pass(np.zeros(1, np.int64))
        engine.step(np.array([move]), autoreset=False)
    while not engine.over()[0]:
        moves = [*moves, int(engine.sample_legal(rng)[0])]
        engine.step(np.array(moves[-1:]), autoreset=False)
    return replace(deal, moves=moves)


@pytest.fixture
def club(tmp_path):
    with Recorder.create(tmp_path / "club.jsonl", head(CLUB, judge="club")) as recorder:
        yield recorder


def test_judged__wrong_pass_goes_on(club):
    """J3: the pass stands among the moves, the fine is added, the deal is played to its result."""
    rng = np.random.default_rng(8)
    whole, ply = wrong_pass_ply(club.standing, rng)
    deal = finish(whole.deal, [*whole.deal.moves[:ply], PASS], rng)
    one = Violation("wrong_pass", ply % 4, ply)
    line = club.append(Played(deal, (one,)))
    assert line["moves"][ply] == "pass" and line["recorded"]["fines"][1 - ply % 2] == 25
    assert sum(line["sums"]) == sum(line["raw"]["points"]) + 25
    assert read(club.path).standing == club.standing
    with pytest.raises(ValueError, match=f"move {ply + 1} of seat {ply % 4}: .*illegal"):
        advance(begin(club.standing.header), Played(deal))


def test_judged__wrong_pass_ends(club):
    """J5: a block on the tiles then in hand; the moves stop with the pass."""
    rng = np.random.default_rng(8)
    whole, ply = wrong_pass_ply(club.standing, rng)
    deal = replace(whole.deal, moves=[*whole.deal.moves[:ply], PASS])
    line = club.append(Played(deal, (Violation("wrong_pass", ply % 4, ply, "end"),)))
    assert line["raw"]["outcome"] == "block" and line["raw"]["plies"] == ply + 1 and line["recorded"]["deal"] == "end"
    assert line["raw"]["by"] == max(i for i, move in enumerate(deal.moves) if move != PASS) % 4, "who laid last"
    assert sum(line["raw"]["pips_left"]) == 168 - sum(sum(TILES[m % 28]) for m in deal.moves if m != PASS)
    assert read(club.path).standing == club.standing


def test_judged__wrong_pass_corrected(club):
    """J4: the tile that was laid after all stands among the moves."""
    rng = np.random.default_rng(8)
    whole, ply = wrong_pass_ply(club.standing, rng)
    one = Violation("wrong_pass", ply % 4, ply, corrected=True)
    line = club.append(replace(whole, violations=(one,)))
    assert sum(line["recorded"]["fines"]) == 25
    assert read(club.path).standing == club.standing


def test_judged__wrong_pass_that_was_none(club):
    rng = np.random.default_rng(1)
    whole = next(p for p in iter(lambda: played(club.standing, rng), None) if PASS in p.deal.moves)
    ply = whole.deal.moves.index(PASS)
    for one, why in [
        (Violation("wrong_pass", ply % 4, ply), "its pass was right"),
        (Violation("wrong_pass", (ply + 1) % 4, ply), "must hold a pass of that seat"),
        (Violation("wrong_pass", 0, 0), "must hold a pass"),
        (Violation("wrong_pass", ply % 4, ply, corrected=True), "must hold a tile"),
        (Violation("talk", 0, 999), "only"),
    ]:
        with pytest.raises(ValueError, match=why):
            club.append(replace(whole, violations=(one,)))
    assert club.standing.deals == 0 and len(read(club.path).lines) == 0, "nothing was written"


def test_judged__wrong_passes_for_ever(club):
    """J3: no deal has more actions than the rules know, and the record of one that has is refused."""
    deal, most = next_deal(club.standing, 3), CLUB.max_plies
    found = tuple(Violation("wrong_pass", (deal.leader + ply) % 4, ply) for ply in range(most + 1))
    with pytest.raises(ValueError, match=f"{most + 1} moves; no deal of sport_club has more than {most}"):
        club.append(Played(replace(deal, moves=[PASS] * (most + 1)), found))
    assert club.standing.deals == 0 and len(read(club.path).lines) == 0, "nothing was written"


def test_judged__wrong_pass_in_blitz(tmp_path):
    """B3, B6, J3: several actions are one turn, so whose the pass is is asked of the engine, not counted; a stop is
    no pass."""
    rng = np.random.default_rng(5)
    rules = get_rules("blitz", pairs=True)
    with Recorder.create(tmp_path / "blitz.jsonl", head(rules, judge="club")) as recorder:
        start = recorder.standing
        deal = next_deal(start, 3)
        engine = lay_out([start], [deal])
        movers, wrong = [], None
        while not engine.over()[0]:
            ply, seat = int(engine.plies()[0]), int(engine.to_move()[0])
            may_pass = bool(engine.legal_bits()[0] >> np.uint64(PASS) & np.uint64(1))
            if wrong is None and ply > 12 and not may_pass and seat != (deal.leader + ply) % 4:
                wrong = Violation("wrong_pass", seat, ply)
                engine.allow_pass(np.zeros(1, np.int64))
                action = PASS
            else:
                action = int(engine.sample_legal(rng)[0])
            movers.append(seat)
            engine.step(np.array([action]), autoreset=False)
        one = Played(engine.record(0), (wrong,))
        line = recorder.append(one)
        assert line["recorded"]["fines"][1 - wrong.seat % 2] == 25 and line["moves"][wrong.ply] == "pass"
        stop = next(i for i, move in enumerate(one.deal.moves) if move == PASS and movers[i - 1] == movers[i] and i)
        for other, why in [
            (replace(wrong, seat=(deal.leader + wrong.ply) % 4), "must hold a pass of that seat"),
            (Violation("wrong_pass", movers[stop], stop), "had nothing to lay|its pass was right"),
        ]:
            with pytest.raises(ValueError, match=why):
                advance(start, replace(one, violations=(other,)))
        fill(recorder)
    assert read(recorder.path).standing == recorder.standing


def test_judged__replay_has_a_line_and_no_result(club):
    """J5: the deal that is played instead has the same number and leader, and the fines of both."""
    rng = np.random.default_rng(2)
    shown = Violation("show", 1, 3, "replay")
    first = club.append(played(club.standing, rng, stop=5, violations=(shown,)))
    assert first["raw"] is None and first["sums"] == [0, 0] and first["recorded"]["deal"] == "replay"
    assert club.standing.deals == 0 and club.standing.pending
    second = club.append(played(club.standing, rng, violations=(Violation("show", 3),)))
    assert (second["deal"], second["leader"]) == (0, 0) and second["recorded"]["fines"] == [75, 0]
    assert club.append(played(club.standing, rng))["deal"] == 1
    assert read(club.path).standing == club.standing


def test_judged__replayed_twice_keeps_all_sanctions(club):
    """J5: a deal may be replayed again; what was fined in all of them is counted in the one with a result."""
    rng = np.random.default_rng(2)
    for ply in (1, 2):
        line = club.append(played(club.standing, rng, stop=4, violations=(Violation("show", 1, ply, "replay"),)))
        assert line["raw"] is None and line["sums"] == [0, 0]
    last = club.append(played(club.standing, rng))
    assert last["recorded"]["fines"] == [25 + 50, 0]


def test_kozyol__the_first_deal_is_led_with_its_tile(tmp_path):
    """K2: a record in which the holder of 1-1 leads another tile is refused."""
    with Recorder.create(tmp_path / "match.jsonl", head(KOZYOL)) as recorder:
        deal = next_deal(recorder.standing, 1)
        engine = make_engine(KOZYOL, 1, 0)
        deal_out(engine, [deal])
        other = next(tile for tile in deal.hands[deal.leader] if tile != tile_index("1-1"))
        engine.step(np.array([other]), autoreset=False)
        rng = np.random.default_rng(1)
        while not engine.over()[0]:
            engine.step(engine.sample_legal(rng), autoreset=False)
        with pytest.raises(ValueError, match="deal 0 is led with 1-1"):
            recorder.append(Played(engine.record(0)))


def test_judged__tile_that_did_not_match_noticed_later(club):
    """J3: the deal ends on the tiles that the judge found in the hands."""
    rng = np.random.default_rng(3)
    begun = played(club.standing, rng, stop=10)
    engine = make_engine(CLUB, 1)
    engine.deal(np.array([[mask_of(hand) for hand in begun.deal.hands]], np.uint32), np.array([0]))
    for move in begun.deal.moves:
        engine.step(np.array([move]), autoreset=False)
    left = [[tile_name(tile) for tile in tiles_of(hand)][1:] for hand in engine.hands()[0]]
    one = Violation("misfit_later", 2, 10)
    line = club.append(replace(begun, violations=(one,), left=tuple(map(tuple, left))))
    pips = [sum(sum(map(int, tile.split("-"))) for tile in hand) for hand in left]
    assert line["raw"]["pips_left"] == [0 if hand == ["0-0"] else n for n, hand in zip(pips, left)]
    assert line["recorded"]["fines"] == [0, 25] and read(club.path).standing == club.standing
    begun = played(club.standing, rng, stop=10)
    for wrong, why in [(((),) * 4, "still held"), ((("0-0",),) * 4, "still held")]:
        with pytest.raises(ValueError, match=why):
            club.append(replace(begun, violations=(one,), left=wrong))
    with pytest.raises(ValueError, match="misfit_later"):
        club.append(replace(played(club.standing, rng), left=tuple(map(tuple, left))))


def test_judged__redeal_claimed_and_not_shown(club):
    """J3: no move is made, 0:50, and the deal counts."""
    rng = np.random.default_rng(3)
    line = club.append(played(club.standing, rng, stop=0, violations=(Violation("redeal_unshown", 0),)))
    assert line["raw"] is None and line["sums"] == [0, 50] and club.standing.deals == 1
    assert read(club.path).standing == club.standing


def test_judged__withdrawal_ends_the_match(club):
    """J6: the record notes it; what was played counts; nothing follows."""
    fill(club, deals=1)
    sums = club.standing.sums
    club.leave(2)
    assert club.standing.over and club.standing.sums == sums
    found = read(club.path)
    assert found.standing == club.standing and found.standing.withdrawal.seat == 2
    for call in (lambda: club.leave(1), lambda: club.append(found.played[0])):
        with pytest.raises(ValueError, match="over"):
            call()
    edit(club.path, 3, setter("withdrawal", "player", to="Eve"))
    with pytest.raises(ValueError, match="line 3: withdrawal"):
        read(club.path)
    for judge, why in ((None, "names none"), ("book", "J6")):
        with pytest.raises(ValueError, match=why):
            leave(begin(head(judge=judge)), 0)


def test_judged__fifth_warning_ends_the_match(tmp_path):
    """J1: warnings of earlier matches are in the header; the pair is out, its deals count."""
    path = tmp_path / "book.jsonl"
    rng = np.random.default_rng(5)
    with Recorder.create(path, head(judge="book", warnings=(3, 1))) as recorder:
        recorder.append(played(recorder.standing, rng, violations=(Violation("talk", 1),)))
        assert recorder.standing.warnings == (3, 2) and not recorder.standing.over
        line = recorder.append(played(recorder.standing, rng, violations=(Violation("time", 0), Violation("talk", 2))))
        assert line["recorded"] == {"points": [0, 40], "fines": [0, 0], "winner": 1, "deal": "lost", "removed": [0]}
        assert recorder.standing.over and recorder.standing.warnings == (5, 2)
    assert read(path).standing == recorder.standing
    edit(path, 1, setter("warnings", to=[0, 0]))
    with pytest.raises(ValueError, match="line 2: sanctions is"):
        read(path)


def test_judged__a_sanction_struck_out_is_seen(tmp_path):
    """An edited sanction leaves a recorded result that does not follow."""
    path = tmp_path / "club.jsonl"
    with Recorder.create(path, head(CLUB, judge="club")) as recorder:
        recorder.append(played(recorder.standing, np.random.default_rng(0), violations=(Violation("show", 0),)))
    for change in (setter("sanctions", to=[]), setter("sanctions", 0, "fine", to=0)):
        whole = path.read_bytes()
        edit(path, 2, change)
        with pytest.raises(ValueError, match="line 2: "):
            read(path)
        path.write_bytes(whole)
    edit(path, 1, setter("judge", to=None))
    with pytest.raises(ValueError, match=r"line 2: .*names no judge"):
        read(path)


# ------------------------------------------------------------------------------------------------------------- the file


def test_file__is_not_overwritten(tmp_path):
    path = written(tmp_path / "match.jsonl", deals=1)
    with pytest.raises(ValueError, match="there already"):
        Recorder.create(path, head())
    with pytest.raises(FileNotFoundError):
        Recorder.resume(tmp_path / "none.jsonl")


def test_file__has_one_writer(tmp_path):
    """Two writers on one file: the second is refused, here and in another process, until the first is gone."""
    path = tmp_path / "match.jsonl"
    code = f"from domino_env.match import Recorder\nRecorder.resume({str(path)!r}).close()"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def other():
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
        )

    with Recorder.create(path, head()) as recorder:
        for _ in range(2):
            with pytest.raises(ValueError, match=r"match\.jsonl is being written by somebody else"):
                Recorder.resume(path)
        assert "being written by somebody else" in other().stderr
        assert read(path).standing == recorder.standing, "anyone may read"
        fill(recorder, deals=1)
    assert other().returncode == 0
    Recorder.resume(path).close()


def test_file__a_failed_write_leaves_it_as_it_was(tmp_path, monkeypatch):
    """A full disk: the line is taken back whole, and the recorder goes on once there is room."""
    path = tmp_path / "match.jsonl"
    rng = np.random.default_rng(0)
    with Recorder.create(path, head()) as recorder:
        deal, write = played(recorder.standing, rng), os.write
        before = path.read_bytes()
        monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:10]))
        with pytest.raises(OSError, match="in part"):
            recorder.append(deal)
        assert path.read_bytes() == before and recorder.standing.deals == 0
        with pytest.raises(OSError):
            Recorder.create(tmp_path / "other.jsonl", head())
        assert not (tmp_path / "other.jsonl").exists()
        monkeypatch.undo()
        recorder.append(deal)
    assert read(path).standing == recorder.standing


def test_file__every_line_is_synced(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size) or sync(handle))
    path = tmp_path / "match.jsonl"
    with Recorder.create(path, head()) as recorder:
        assert synced[0] == path.stat().st_size
        for _ in range(3):
            fill(recorder, deals=1)
            assert synced[-1] == path.stat().st_size


# ----------------------------------------------------------------------------------------------------------- properties

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(max_examples=15, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_properties__any_judged_match_is_read_back(tmp_path_factory, data):
    """Matches of both rulebooks with any violations that need no move of their own: the record holds, sums are the sums
    of the recorded points, and every header and line survives JSON."""
    rules = data.draw(st.sampled_from((BOOK, CLUB)))
    judge = "book" if rules is BOOK else "club"
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    kinds = ["time", "talk", "show", "signs"] + (["no_rack", "ambiguous", "false_block"] if judge == "club" else [])
    some = st.builds(Violation, st.sampled_from(kinds), st.integers(0, 3))
    some |= st.just(Violation("show", 0, decision="replay"))
    path = tmp_path_factory.mktemp("any") / "match.jsonl"
    carried = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    points = np.zeros(2, int)
    with Recorder.create(path, head(rules, judge=judge, warnings=carried)) as recorder:
        assert header(json.loads(json.dumps(recorder.standing.header.as_dict()))) == recorder.standing.header
        for _ in range(8):
            if recorder.standing.over:
                break
            violations = tuple(data.draw(st.lists(some, max_size=2)))
            line = recorder.append(played(recorder.standing, rng, violations=violations))
            points += line["recorded"]["points"]
            assert line["sums"] == points.tolist()
    found = read(path)
    assert found.standing == recorder.standing and [*found.lines][-1]["sums"] == points.tolist()
    assert found.standing.deals + sum(line["recorded"]["deal"] == "replay" for line in found.lines) == len(found.lines)


@settings(max_examples=30, deadline=None, suppress_health_check=QUIET)
@given(cut=st.floats(0, 1), byte=st.integers(0, 255), game=st.sampled_from(sorted(GAMES)))
def test_properties__damage_is_never_a_crash(tmp_path_factory, cut, byte, game):
    """One byte changed, anywhere: the same match is read, or a ValueError names the line."""
    path = tmp_path_factory.mktemp("damage") / "match.jsonl"
    written(path, GAMES[game], seed=1, deals=1)
    good = read(path)
    data = bytearray(path.read_bytes())
    data[min(int(cut * len(data)), len(data) - 1)] = byte
    path.write_bytes(bytes(data))
    try:
        found = read(path)
    except ValueError as error:
        assert "line " in str(error)
    else:
        assert found.standing.sums == good.standing.sums


def test_text__of_a_line_is_a_deal_for_replay(tmp_path):
    """The text and the moves of a line make a deal in the notation that is played again elsewhere."""
    found = read(written(tmp_path / "match.jsonl", deals=1))
    line = found.lines[0]
    deal = parse_deal(f"{line['text']} | {' '.join(line['moves'])}")
    assert format_deal(deal) == format_deal(found.played[0].deal)
    assert [action_index(move) for move in line["moves"]] == deal.moves
    assert [action_name(move) for move in deal.moves] == line["moves"]


# ----------------------------------------------------------------------------------------------- matches in the envs


def lowest(decisions):
    """An agent that takes the lowest legal action."""
    return decisions.mask.argmax(axis=1)


def lowest_match(rules, seed, fours=1):
    """A match in which every seat takes its lowest legal action: standings, from the first on, and lines."""
    standings, lines = [begin(head(rules, fours=fours))], []
    while not standings[-1].over:
        engine = lay_out(standings[-1:], [next_deal(standings[-1], seed)])
        while not engine.over()[0]:
            engine.step(engine.legal().argmax(axis=1), autoreset=False)
        standing, line = advance(standings[-1], Played(engine.record(0)))
        standings.append(standing)
        lines.append(line)
    return standings, lines


def tied_seed(rules):
    """A seed whose match ends in a tie (S10) if every seat takes its lowest legal action."""
    engine = make_engine(rules, 512, seed=[*range(512)], episode="match")
    going = np.arange(512)
    sums = np.zeros((512, rules.num_sides), int)
    while True:
        _, done = engine.step(engine.legal().argmax(axis=1), autoreset=False)
        np.add.at(sums, going[engine.finished.rows], engine.finished.points)
        for seed in going[done]:
            if result(sums[seed]) is None:
                return int(seed)
        going, engine = going[~done], engine.take(~done)


IN_ENVS = ["sport_book", "sport_club", "kozyol", "blitz", "blind_blitz"]


def ahead(rules, sums, seat):
    """What the observation says of the score: points ahead of the best of the others, at most 150 either way."""
    own = sums[rules.side_of(seat)]
    best = max(points for side, points in enumerate(sums) if side != rules.side_of(seat))
    return [own - best >= step for step in SCORE_STEPS], [best - own >= step for step in SCORE_STEPS]


@pytest.mark.parametrize("game", IN_ENVS)
def test_env__match_in_aec_is_that_of_the_record(game):
    """S2, S9, S10, K2, B2, R3: deals, leaders, results, scores and the end of a match are those that `advance` says."""
    env = raw_aec_env(game, episode="match")
    rules, slices = env.rules, make_engine(game, 1).layout.slices
    rng = np.random.default_rng(7)
    for seed in range(2):
        env.reset(seed=seed)
        standing, total = begin(head(rules)), np.zeros(rules.seats)
        while not standing.over:
            deal = next_deal(standing, seed)
            assert env.agent_selection == f"seat_{deal.leader}"
            for seat, hand in enumerate(deal.hands):
                seen = env.observe(f"seat_{seat}")["observation"]
                if "hand" in slices:
                    assert np.flatnonzero(seen[slices["hand"]]).tolist() == sorted(hand)
                score = ahead(rules, standing.sums, seat)
                assert [seen[slices[name]].tolist() for name in ("score_ahead", "score_behind")] == [*map(list, score)]
                assert np.flatnonzero(seen[slices["deal"]]).tolist() == [standing.deals % 4]
            ended = False
            while not ended:
                mask = env.observe(env.agent_selection)["action_mask"]
                deal.moves.append(int(rng.choice(np.flatnonzero(mask))))
                env.step(deal.moves[-1])
                ended = all(env.infos.values())  # a seat keeps what it is told until its next turn
            total += [env.rewards[agent] for agent in env.possible_agents]
            standing, line = advance(standing, Played(deal))
            assert all(info == {"deal": line["raw"]} for info in env.infos.values())
            assert all(env.terminations.values()) == standing.over and not any(env.truncations.values())
            sums = np.array(standing.sums)
            assert total.tolist() == (sums[[0, 1, 0, 1]] - sums[[1, 0, 1, 0]] if rules.pairs else sums).tolist()


@pytest.mark.parametrize("game", IN_ENVS)
def test_env__matches_in_parallel_single_and_vector(game):
    """S10: the points that a match brings are the same in every env."""
    rules = get_rules(game)
    matches = [lowest_match(rules, seed) for seed in (0, 1)]
    others = (lowest, lowest) if rules.pairs else (None, lowest)
    points = [last.sums if not rules.pairs else np.subtract(last.sums, last.sums[::-1]) for (*_, last), _ in matches]
    env = parallel_env(game, episode="match")
    for seed, (standings, lines) in enumerate(matches[:1]):  # every step shows all seats what they see
        views, _ = env.reset(seed=seed)
        total, told = np.zeros(rules.seats), []
        while env.agents:
            actions = {agent: int(view["action_mask"].argmax()) for agent, view in views.items()}
            views, rewards, ends, cuts, infos = env.step(actions)
            total += list(rewards.values())
            told += [infos["seat_0"]["deal"]] if infos["seat_0"] else []
        assert told == [line["raw"] for line in lines] and len(told) == standings[-1].deals
        assert total.tolist() == np.resize(points[seed], rules.seats).tolist()
        assert all(ends.values()) and not any(cuts.values())
    one = DominoEnv(game, *others, episode="match")
    for seed in range(2):
        view, _ = one.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            view, reward, ended, broken, _ = one.step(int(view["action_mask"].argmax()))
            total += reward
            assert not broken
        assert total == points[seed][0]
    many = make_vec(game, 2, "seat", *others, episode="match")
    view, _ = many.reset(seed=[0, 1])
    total, going = np.zeros(2), np.ones(2, bool)
    while going.any():
        view, rewards, ended, broken, _ = many.step(view["action_mask"].argmax(axis=1))
        total += rewards * going
        going &= ~ended
        assert not broken.any()
    assert total.tolist() == [one[0] for one in points]


@pytest.mark.parametrize("game", ["sport_book", "sport_club", "blitz"])
def test_env__tie(game):
    """S10: equal sums are a draw: nobody has won in the record, and in the env the best have the same points."""
    rules = get_rules(game)
    seed = tied_seed(rules)
    (*_, last), lines = lowest_match(rules, seed)
    assert last.over and last.winner is None and summary(last)["tie"]
    best = [seat for seat in range(rules.seats) if last.sums[rules.side_of(seat)] == max(last.sums)]
    env = parallel_env(game, episode="match")
    views, _ = env.reset(seed=seed)
    total = np.zeros(rules.seats)
    while env.agents:
        views, rewards, *_ = env.step({agent: int(view["action_mask"].argmax()) for agent, view in views.items()})
        total += list(rewards.values())
    assert len(best) > 1 and np.flatnonzero(total == total.max()).tolist() == best
    if rules.pairs:
        assert not total.any() and len(lines) == 4


JUDGED = [("sport_club", "club", decision) for decision in ("continue", "end", "replay")]
JUDGED += [("sport_book", "book", "continue"), ("sport_book", "book", "replay"), ("blitz in pairs", "club", "continue")]


@pytest.mark.parametrize(("game", "judge", "decision"), JUDGED)
def test_env__judged_match_is_a_record(tmp_path, game, judge, decision):
    """J1-J5: what a judged env tells of a match, violations and all, is a record that is read; the points agree."""
    rules, rng = GAMES[game], np.random.default_rng(3)
    env = raw_aec_env(rules, episode="match", judge=judge, decision=decision, history=True)
    env.reset(seed=4)
    sanctioned, pending = 0, []
    with Recorder.create(tmp_path / "match.jsonl", head(rules, judge=judge)) as recorder:
        while not recorder.standing.over:
            deal, found, told, replayed = next_deal(recorder.standing, 4), [], {}, False
            assert env.agent_selection == f"seat_{deal.leader}"
            while not replayed and "deal" not in told and "judge" not in told:
                agent = env.agent_selection
                mask = env.observe(agent)["action_mask"]
                acts = mask.nonzero()[0]
                if rng.random() < 0.04:  # wrong are a pass, the declaration of a block, and a tile on the left end
                    acts = [*np.flatnonzero(mask[: NUM_TILES + 1] == 0), PASS, PASS + 1]
                action = int(rng.choice(acts))
                env.step(action)
                told = env.infos[agent]
                found += [Violation(**one["violation"]) for one in told.get("verdicts", ())]
                replayed = any(one["deal"] == "replay" for one in told.get("verdicts", ()))
                if not replayed and "deal" not in told and "judge" not in told:
                    events = env.observe(agent)["history"]
                    made = int((events >= 0).sum())
                    deal.moves += [int(events[made - 1]) & 63] if made > len(deal.moves) else []
                elif mask[action] or found[-1].kind == "wrong_pass":
                    deal.moves.append(action)
            line = recorder.append(Played(deal, tuple(found)))
            sanctions = [*pending, *line["sanctions"]]
            sanctioned += len(found)
            if replayed:
                assert line["recorded"]["deal"] == "replay" and not any(env.rewards.values())
                pending = sanctions
                continue
            if sanctions:
                assert told["judge"] == {**line["recorded"], "sanctions": sanctions}
            pending = []
            assert told.get("deal") == line["raw"]
            net = np.subtract(line["recorded"]["points"], line["recorded"]["points"][::-1]).tolist()
            assert [env.rewards[agent] for agent in env.possible_agents] == net * 2
        assert sanctioned and all(env.terminations.values())
        assert decision != "replay" or recorder.standing.dealt > recorder.standing.deals
    assert read(recorder.path).standing == recorder.standing


@pytest.mark.slow
@pytest.mark.parametrize("game", ["sport_club", "blind_blitz"])
def test_record__of_a_thousand_deals_is_read_in_seconds(tmp_path, game):
    """CPU seconds of this process for 250 fours."""
    rules = GAMES[game]
    start, rng = begin(head(rules, fours=250)), np.random.default_rng(0)
    befores = [replace(start, deals=d, dealt=d) for d in range(1000)]
    engine = lay_out(befores, [next_deal(before, 5) for before in befores])
    deals, going = {}, np.arange(1000)
    while len(going):
        engine.step(engine.sample_legal(rng), autoreset=False)
        over = engine.over()
        deals |= {int(going[row]): engine.record(int(row)) for row in np.flatnonzero(over)}
        going, engine = going[~over], engine.take(~over) if not over.all() else engine
    path = tmp_path / "long.jsonl"
    standing, lines = start, [start.header.as_dict()]
    for d in range(1000):
        standing, line = advance(standing, Played(deals[d]))
        lines.append(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    begun = time.process_time()
    assert read(path).standing == standing
    assert time.process_time() - begun < 6

"""The match (S2, S10-S13) and its record: what is written is read back, and what does not follow is refused."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from domino_env import get_rules, make_engine
from domino_env.deals import Deal, format_deal, parse_deal, row_keys, shuffle
from domino_env.judge import Violation
from domino_env.match import (
    Header,
    Played,
    Recorder,
    advance,
    begin,
    change_seats,
    draw_numbers,
    draw_tiles,
    header,
    lead,
    leave,
    lowness,
    read,
    result,
    seat_by_numbers,
    seat_by_tiles,
    shuffler,
)
from domino_env.schemas import KEYWORDS, check, schema
from domino_env.tiles import PASS, action_index, action_name, mask_of, tile_name, tiles_of
from tests.reference import TILES

NAMES = ("Ann", "Bob", "Cid", "Dot")
BOOK, CLUB, KOZYOL = get_rules("sport_book"), get_rules("sport_club"), get_rules("kozyol")


def head(rules=BOOK, **fields):
    """A header."""
    return Header(rules, NAMES, **fields)


def played(standing, rng, stop=None, deal=None, **fields):
    """The next deal of a match, played at random, or as far as `stop` moves."""
    rules = standing.header.rules
    if deal is None:
        hands = shuffle(rules, row_keys(int(rng.integers(1 << 30)), np.zeros(1, np.int64)), np.zeros(1, np.int64))[0]
    else:
        hands = deal
    seat, tile = lead(rules, standing.deals, hands, standing.last)
    engine = make_engine(rules, 1)
    engine.deal(hands[None], np.array([seat]))
    moves = [] if tile is None or stop == 0 else [tile]
    if moves:
        engine.step(np.array(moves), autoreset=False)
    while not engine.over()[0] and (stop is None or len(moves) < stop):
        moves.append(int(engine.sample_legal(rng)[0]))
        engine.step(np.array(moves[-1:]), autoreset=False)
    return Played(Deal(rules, seat, [tiles_of(hand) for hand in hands], moves), **fields)


def fill(recorder, seed=0, deals=None):
    """Play a match to its end, or some deals, into a recorder."""
    rng = np.random.default_rng(seed)
    while not recorder.standing.over and deals != 0:
        recorder.append(played(recorder.standing, rng))
        deals = None if deals is None else deals - 1
    return recorder


def written(path, header=None, seed=0, deals=None):
    """A record on the disk."""
    with Recorder.create(path, header or head()) as recorder:
        fill(recorder, seed, deals)
    return path


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
        tile = dict(zip(NAMES, (a, b, c, d)))
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


@pytest.mark.parametrize("rules", ["sport_book", "kozyol", "puerto_rico"])
def test_lead__as_in_the_engine_s_matches(rules):
    """S2, K1, K2: the engine's next deal is led as `lead` says."""
    options = {"lead": "double_six"} if rules == "puerto_rico" else {}
    engine = make_engine(rules, 40, seed=6, episode="match", fours=2, **options)
    rng = np.random.default_rng(0)
    last = [None] * 40
    led = 0
    for _ in range(150):
        leaders, plies, hands = engine.leader(), engine.plies(), engine.hands()
        for i in np.flatnonzero(plies == 0):
            seat, tile = lead(engine.rules, int(engine.deal_index()[i]), hands[i].tolist(), last[i])
            assert seat == leaders[i]
            assert tile is None or tiles_of(int(engine.legal_bits()[i])) == [tile]
            led += 1
        _, done = engine.step(engine.sample_legal(rng))
        for j, row in enumerate(engine.finished.rows):
            last[row] = None if done[row] else (int(leaders[row]), engine.finished.info(j))
    assert led > 150


def test_lead__other_games():
    with pytest.raises(ValueError, match="open line"):
        lead(replace_lead(BOOK, "lot"), 0, [1, 2, 4, 8])


def replace_lead(rules, lead):
    """Rules with a lead that they would not accept."""
    other = replace(rules)
    object.__setattr__(other, "lead", lead)
    return other


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
    assert change_seats(NAMES, 0, 4, (10, 20)) == ("Cid", "Bob", "Ann", "Dot")
    assert change_seats(NAMES, 1, 8, (20, 10)) == ("Ann", "Dot", "Cid", "Bob")
    for side, deals, sums, why in [
        (0, 4, (20, 10), "behind"),
        (0, 4, (10, 10), "behind"),
        (0, 3, (1, 2), "between fours"),
        (0, 0, (1, 2), "between fours"),
        (2, 4, (1, 2), "0 or 1"),
    ]:
        with pytest.raises(ValueError, match=why):
            change_seats(NAMES, side, deals, sums)


# ----------------------------------------------------------------------------------------------------- writing, reading


@pytest.mark.parametrize("name", ["sport_book", "sport_club", "puerto_rico", "kozyol", "tiny_pairs"])
def test_record__is_read_as_it_was_written(tmp_path, name):
    """A match of each game: the same standing, the right length, sums that add up (S10, K2)."""
    path = tmp_path / "match.jsonl"
    with Recorder.create(path, head(get_rules(name), fours=2, info={"round": 3, "table": "blue"})) as recorder:
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
        assert [line["leader"] for line in found.lines] == [0, 1, 2, 3] * 2


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
        swapped = change_seats(NAMES, behind, 4, before.sums)
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
        (setter("text", to=lambda t: t.replace("sport_book", "sport_club")), "the match is of"),
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
        Header(**{"rules": BOOK, "players": NAMES, **fields})


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
            engine._legal[0] |= np.uint64(1 << PASS)
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


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
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


@settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
@given(cut=st.floats(0, 1), byte=st.integers(0, 255))
def test_properties__damage_is_never_a_crash(tmp_path_factory, cut, byte):
    """One byte changed, anywhere: the same match is read, or a ValueError names the line."""
    path = tmp_path_factory.mktemp("damage") / "match.jsonl"
    written(path, seed=1, deals=1)
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

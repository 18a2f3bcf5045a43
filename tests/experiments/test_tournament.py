"""Tournaments: pairings, seats, duplicate tables, standings, the judge (S10-S13, J1-J3, J6); going on after a kill."""

import fcntl
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from agents import base
from agents.base import make_agent
from domino_env import get_rules, match
from domino_env.deals import parse_deal, struck
from domino_env.tiles import PASS, mask_of
from experiments import cli, pairing, tables, tournament
from experiments.pairing import circle, swiss
from experiments.ratings import rate
from experiments.tables import PairError, Sheet, Table
from experiments.tournament import Config, Match, State, crosstable, plan, report, run, standings

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["club", "greedy", "random", "mixed=club+greedy", "double=double_first"]


def files(folder):
    """Everything that stands in a tournament's folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def records(folder):
    """The match records of a tournament, read strictly, by file name."""
    return {path.name: match.read(path) for path in sorted((folder / "records").iterdir())}


def lines(folder):
    """Whole lines in the records, by file."""
    return {path: path.read_bytes().count(b"\n") for path in (folder / "records").glob("*.jsonl")}


def command(*words, cwd):
    """The command as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    code = "import sys; from experiments.cli import main; sys.exit(main())"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *words], cwd=cwd, env=environment, **pipes)


# ------------------------------------------------------------------------------------------------------- who meets whom


@pytest.mark.parametrize("count", [2, 3, 6, 7, 12])
def test_circle__all_meet_once_and_begin_again(count):
    names = [f"p{i}" for i in range(count)]
    length = count - 1 + count % 2
    met, idle = [], []
    for number in range(length):
        pairs = circle(names, number)
        assert sorted(name for pair in pairs for name in pair if name) == sorted(names)
        met += [frozenset(pair) for pair in pairs if None not in pair]
        idle += [a for a, b in pairs if b is None]
        assert [b is None for _, b in pairs] == [False] * (count // 2) + [True] * (count % 2)  # the bye comes last
        assert circle(names, number + length) == pairs
    assert sorted(map(sorted, met)) == sorted(map(list, combinations(sorted(names), 2)))
    assert sorted(idle) == (sorted(names) if count % 2 else [])


def swiss_rounds(count, rounds, seed):
    """Play a Swiss tournament by lots of unequal chances; how often two meet, how many byes each has."""
    rng = random.Random(seed)
    names = [f"p{i}" for i in range(count)]
    points, met = dict.fromkeys(names, 0), {}
    for number in range(rounds):
        ranked = sorted(names, key=lambda name: (-points[name], names.index(name)))
        pairs = swiss(ranked, points, met, rounds - number)
        assert sorted(name for pair in pairs for name in pair if name) == sorted(names)
        for a, b in pairs:
            meeting = frozenset(name for name in (a, b) if name)
            met[meeting] = met.get(meeting, 0) + 1
            points[a if b is None or rng.random() < 0.3 + 0.4 * (a < b) else b] += 2
    return met


@pytest.mark.parametrize("count", [5, 6, 7, 8, 9, 10, 12, 13, 20])
def test_swiss__no_rematch_while_it_can_be_avoided(count):
    """As many rounds as there can be without one, up to seven; of eight pairs seven rounds are a whole round robin."""
    for seed in range(1 if count == 12 else 3):
        met = swiss_rounds(count, min(7, count - 1 + count % 2), seed)
        assert set(met.values()) == {1}


def test_swiss__it_must_look_ahead(monkeypatch):
    """Without looking at the rounds to come, eight pairs come to a round that only rematches can fill."""
    monkeypatch.setattr(pairing, "LOOK_AHEAD", 0)
    assert any(max(swiss_rounds(8, 7, seed).values()) > 1 for seed in range(6))


def test_swiss__rematches_are_as_few_as_can_be():
    """Four pairs, seven rounds: all meet twice, and no two more than once more than others."""
    for seed in range(4):
        met = swiss_rounds(4, 6, seed)
        assert set(met.values()) == {2} and len(met) == 6
        assert sorted(swiss_rounds(4, 7, seed).values()) == [2] * 4 + [3] * 2


@pytest.mark.parametrize("ahead", [0, 12])
def test_swiss__neighbours_meet_and_the_lowest_has_the_bye(ahead, monkeypatch):
    """By the search of all pairings and by Edmonds' algorithm: points first, then ranks; a bye once."""
    monkeypatch.setattr(pairing, "LOOK_AHEAD", ahead)
    points = {"a": 4, "b": 4, "c": 2, "d": 2, "e": 0}
    assert swiss("abcde", points, {}, 1) == [("a", "b"), ("c", "d"), ("e", None)]
    met = {frozenset("ab"): 1, frozenset("e"): 1}
    assert swiss("abcde", points, met, 1) == [("a", "c"), ("b", "e"), ("d", None)] or swiss(
        "abcde", points, met, 1
    ) == [("a", "c"), ("b", "d"), ("e", None)]
    assert swiss("abcde", points, met, 1)[-1][0] == "d"  # not e, which has had one


# ---------------------------------------------------------------------------------------------------- what is asked for


def test_plan__words_and_files(tmp_path):
    """Names, partners, options of agents, teams; a file and words beside it; words on the command line hold."""
    config = plan(["club:cut_opponents=2", "m = club+greedy"])
    assert config.squads == {
        "club:cut_opponents=2": (("club:cut_opponents=2", "club:cut_opponents=2"),),
        "m": (("club", "greedy"),),
    }
    north = plan(["north=club+greedy & random", "south=greedy"], given={"table": "team"}).squads
    assert north == {"north": (("club", "greedy"), ("random", "random")), "south": (("greedy", "greedy"),)}
    file = tmp_path / "spring.yaml"
    file.write_text(
        "pairs:\n  a: club\n  b: [club, greedy]\n  c: [[club, greedy], [random]]\n"
        "table: team\nsystem: swiss\nfours: 3\nrule_overrides: {lone_blank: 3}\n"
    )
    config = plan(["d=random"], file, {"fours": 2, "seed": 5})
    assert list(config.squads) == ["a", "b", "c", "d"]
    assert config.squads["b"] == (("club", "greedy"),) and config.squads["c"][1] == ("random", "random")
    assert (config.fours, config.seed, config.system, config.num_rounds) == (2, 5, "swiss", 7)
    assert config.game == get_rules("sport_book", lone_blank=3)
    file.write_text("pairs: [club, m=greedy]\n")
    assert list(plan((), file).squads) == ["club", "m"]
    assert (plan(["club", "greedy"]).num_rounds, plan(["club", "greedy", "random"]).num_rounds) == (1, 3)


TEAM, CLUB = {"table": "team"}, {"judge": "club"}
REFUSED = [
    ("club", {}, "pairs: a tournament has 2 to 4096, not 1"),
    ("", {}, "pairs: a tournament has 2 to 4096, not 0"),
    ("club m=greedy+nobody", {}, "unknown agent 'nobody'; choose from random, greedy"),
    ("club greedy:depth=3", {}, "depth"),
    ("club club", {}, "pairs: 'club' stands twice; give one another name: NAME=club"),
    ("m=club m=greedy", {}, "pairs: 'm' stands twice"),
    ("club m=club+greedy+random", {}, "pairs: 'm': a pair is an agent or two, AGENT+AGENT, not 'club+greedy+random'"),
    ("club m=club+", {}, "pairs: 'm': a pair is an agent or two, AGENT+AGENT, not 'club+'"),
    ("club =greedy", {}, "pairs: '' is no name"),
    ("club m=club&greedy", {}, "'m' is a team of two pairs; teams play at table=team"),
    ("club m=club&greedy&random", TEAM, "'m' is one pair, or two with & between them, not 3"),
    ("club greedy", {"table": "round"}, 'table: expected one of single, team, got "round"'),
    ("club greedy", {"judge": "henry"}, "judge: expected "),
    ("club greedy", {"fours": 100000}, "fours must be in 1..16384, not 100000"),
    ("club greedy", {"rounds": 0}, "rounds must be in 1..4096, not 0"),
    ("club greedy", {"rules": "sprot"}, "unknown rules 'sprot'; choose from sport_book"),
    ("club greedy", {"rules": "kozyol", **TEAM}, "table: in kozyol results decide who leads"),
    ("club greedy", {"rules": "kozyol", "judge": "book"}, "judge='book': in kozyol the lead goes by results"),
    ("club greedy", {"withdraw": {"club": 1}, "judge": "book"}, "a matter of judge=club (J6), not of judge=book"),
    ("club greedy", {"withdraw": {"club": 2}, **CLUB}, "'club' leaves before one of the rounds 1..1, not 2"),
]


@pytest.mark.parametrize(("words", "given", "says"), REFUSED, ids=[f"{i}-{one[0]}" for i, one in enumerate(REFUSED)])
def test_plan__refuses_what_cannot_be_played(words, given, says):
    with pytest.raises(ValueError, match=re.escape(says)) as error:
        plan(words.split(), given=given)
    assert "\n" not in str(error.value)


BAD = [
    ("club", "pairs: a tournament has 2 to 4096, not 1"),
    ("club nobody", "unknown agent 'nobody'; choose from random, greedy"),
    ("club greedy --system league", 'system: expected one of round_robin, swiss, got "league"'),
    ("club greedy --rounds 0", "'--rounds'"),
    ("club greedy --seed -1", "'--seed'"),
    ("club greedy --workers 0", "'--workers'"),
    ("club greedy --rules sport_book,seats=5", "seats=5"),
    ("club greedy --rules blind", "in blind each seat plays for itself; a tournament is of pairs: sport_book, "),
    ("club greedy --judge club --withdraw nobody=1", "withdraw: pair 'nobody' does not exist; pairs are club, greedy"),
    ("club greedy --judge club --withdraw club", "--withdraw 'club': write NAME=ROUND"),
    ("none.yaml", "none.yaml: No such file or directory"),
    ("bad.yaml", 'bad.yaml: unknown key "sytem"; did you mean "system"?'),
    ("list.yaml", "list.yaml: pairs: expected "),
    ("good.yaml club", "pairs: 'club' stands twice"),
    ("club greedy --out file.txt", "file.txt is a file; a tournament is written to a folder"),
    ("club greedy --out full", "full is not empty and holds no tournament"),
    ("--resume none", "none holds no tournament: there is no tournament.json in it"),
    ("--resume edited", "tournament.json: not JSON"),
    ("--resume other", "tournament.json is no domino tournament of version 1"),
    ("club --resume full", "beside it only --workers and --json"),
    ("club greedy --sytem swiss", "--sytem"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[f"{i}-{words}" for i, (words, _) in enumerate(BAD)])
def test_bad_input__one_line_exit_code_2_nothing_written(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("sytem: swiss\n")
    (tmp_path / "list.yaml").write_text("pairs: 7\n")
    (tmp_path / "good.yaml").write_text("pairs: [club, greedy]\n")
    (tmp_path / "file.txt").write_text("")
    for name in ("full", "edited", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "notes.txt").write_text("")
    (tmp_path / "edited" / "tournament.json").write_text("{")
    (tmp_path / "other" / "tournament.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    code = cli.main(["tournament", *(word.replace(",", " ") for word in words.split())])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("domino: ") and err.count("\n") == 1
    assert says in err
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"


# ----------------------------------------------------------------------------------------------------- the whole of it


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    """A round robin of five pairs and its figures."""
    folder = tmp_path_factory.mktemp("league") / "t"
    return folder, run(plan(NAMES, given={"seed": 3, "fours": 2}), folder)


def test_round_robin__every_match_has_its_record(league):
    """S10-S12: ten matches of two fours; the records are whole, their sums are those of the standings."""
    folder, figures = league
    found = records(folder)
    assert len(found) == 10 and len([name for name in found if name.startswith("round-05")]) == 2
    net = dict.fromkeys(figures["players"], 0)
    met, lowest = set(), {}
    for record in found.values():
        head, standing = record.header, record.standing
        assert standing.over and standing.deals == 8 and not head.given and head.judge is None
        sides = head.info["pair_0"], head.info["pair_1"]
        met.add(frozenset(sides))
        for seat, player in enumerate(head.players):
            assert player.rsplit(" ", 1)[0] == sides[seat % 2]
        net[sides[0]] += standing.sums[0] - standing.sums[1]
        net[sides[1]] += standing.sums[1] - standing.sums[0]
        for side, number in zip(sides, head.draw):  # S11 book: one draw for the whole tournament, the lower leads
            assert lowest.setdefault(side, number) == number
        assert [line["leader"] for line in record.lines] == [0, 1, 2, 3] * 2  # S2
    assert len(met) == 10 and sorted(lowest.values()) == [1, 2, 3, 4, 5]
    table = {row["pair"]: row for row in figures["standings"]}
    assert {name: row["net"] for name, row in table.items()} == net
    assert all(row["played"] == 4 and row["byes"] == 1 and row["deals"] == 32 for row in table.values())
    assert sum(row["match_points"] for row in table.values()) == 20
    assert figures["boards"] == 80 and figures["complete"]
    # Every match has deals of its own.
    assert len({line["text"].partition("|")[2] for record in found.values() for line in record.lines}) == 80


def test_ratings__of_all_boards_and_not_in_the_file(league):
    folder, figures = league
    meetings = []
    for record in records(folder).values():
        sides = record.header.info["pair_0"], record.header.info["pair_1"]
        points = [line["recorded"]["points"] for line in record.lines]
        meetings.append((*sides, [own - other for own, other in points]))
    assert figures["ratings"] == rate(figures["players"][::-1], meetings, shared=False, seed=3)
    assert list(figures["ratings"]) == figures["players"]
    assert sum(one["rating"] for one in figures["ratings"].values()) == pytest.approx(5 * 1500)
    assert b"ratings" not in (folder / "tournament.json").read_bytes()  # it stays what earlier versions wrote


def test_points__row_against_column_with_students_interval(league):
    folder, figures = league
    names = figures["players"]
    assert names == ["club", "greedy", "random", "mixed", "double"]
    for i, j in combinations(range(5), 2):
        assert figures["points"][i][j] == -figures["points"][j][i]
        assert figures["low"][i][j] == -figures["high"][j][i]
        assert figures["counts"][i][j] == 8
    assert all(figures[key][i][i] is None for key in ("points", "low", "high") for i in range(5))
    [record] = [
        r for r in records(folder).values() if {"club", "random"} == {r.header.info[f"pair_{i}"] for i in (0, 1)}
    ]
    sign = 1 if record.header.info["pair_0"] == "club" else -1
    net = np.array([sign * (one["recorded"]["points"][0] - one["recorded"]["points"][1]) for one in record.lines])
    assert figures["points"][0][2] == pytest.approx(net.mean())
    half = 2.364624252 * net.std(ddof=1) / np.sqrt(8)  # t at 7 degrees of freedom
    assert figures["high"][0][2] - figures["points"][0][2] == pytest.approx(half)


def test_file__says_what_follows_from_the_records(league):
    folder, figures = league
    said = json.loads((folder / "tournament.json").read_text())
    assert said["standings"] == figures["standings"] and said["points"] == figures["points"] and said["complete"]
    assert said["tie_breaks"] == figures["tie_breaks"] and said["tie_breaks"][0].startswith("match points (2 for a win")
    listed = [name for one in said["results"] for match in one["matches"] for name in match["records"]]
    assert sorted(listed) == [f"records/{name}" for name in records(folder)]
    assert sorted(one["bye"] for one in said["results"]) == sorted(figures["players"])


def test_seed__decides_the_deals(tmp_path):
    texts = set()
    for seed in (4, 5):
        run(plan(["greedy", "random"], given={"seed": seed}), tmp_path / str(seed))
        texts |= {line["text"] for record in records(tmp_path / str(seed)).values() for line in record.lines}
    assert len(texts) == 8


def test_longer_match__begins_with_the_same_deals(tmp_path):
    """Chance is keyed on (seed, round, match, deal): a longer match begins as the shorter one, move for move."""
    names = ["greedy", "random", "m=random+greedy"]
    for fours in (1, 2):
        run(plan(names, given={"seed": 3, "fours": fours}), tmp_path / str(fours))
    for name, short in records(tmp_path / "1").items():
        assert match.read(tmp_path / "2" / "records" / name).lines[:4] == short.lines


def test_team__same_deals_crossed_and_own_copy_scores_nothing(tmp_path):
    """S13: two tables, the same deals and leaders, the pairs crossed; its own copy ties with a pair on every board."""
    config = plan(["a=club", "b=club", "c=greedy"], given={"table": "team", "seed": 1, "fours": 2})
    figures = run(config, tmp_path)
    found = records(tmp_path)
    assert len(found) == 6
    for name, record in found.items():
        assert record.header.given
        other = found[name.replace("-a.", "-b.") if "-a." in name else name.replace("-b.", "-a.")]
        assert [one["text"] for one in record.lines] == [one["text"] for one in other.lines]
        info, theirs = record.header.info, other.header.info
        assert (info["pair_0"], info["pair_1"]) == (theirs["pair_1"], theirs["pair_0"])
        mine, their = record.header.players, other.header.players
        assert set(mine) == set(their) and all(a.split()[0] != b.split()[0] for a, b in zip(mine, their))
    assert (figures["points"][0][1], figures["low"][0][1], figures["high"][0][1]) == (0, 0, 0)
    assert figures["counts"][0][1] == 8 and figures["points"][0][2] != 0
    table = {row["pair"]: row for row in figures["standings"]}
    assert table["a"]["tied"] >= 1 and table["b"]["tied"] >= 1 and table["a"]["deals"] == 32
    # A board is worth the mean of its two tables.
    a, c = [r for n, r in found.items() if {"a", "c"} == {r.header.info["pair_0"], r.header.info["pair_1"]}]
    values = []
    for one, two in zip(a.lines, c.lines):
        nets = [
            (1 if r.header.info["pair_0"] == "a" else -1)
            * (line["recorded"]["points"][0] - line["recorded"]["points"][1])
            for r, line in ((a, one), (c, two))
        ]
        values.append(sum(nets) / 2)
    assert figures["points"][0][2] == pytest.approx(np.mean(values))


def test_team_of_two_pairs__each_at_its_table(tmp_path):
    """Category I: the first pairs meet at one table, the second at the other, a side once even and once odd."""
    config = plan(["north=club+greedy & random", "south=greedy & club"], given={"table": "team", "rules": "sport_club"})
    run(config, tmp_path)
    a, b = records(tmp_path).values()
    assert set(a.header.players) == {"north 1", "north 2", "south 1", "south 2"}
    assert set(b.header.players) == {"north 3", "north 4", "south 3", "south 4"}
    assert a.header.info["pair_0"] == b.header.info["pair_1"] and a.header.draw is not None


@pytest.mark.parametrize("given", [False, True])
def test_redeal__off_for_given_deals(given):
    """S4 strikes in deals of one table, and is off where both tables play the same (S13)."""
    head = match.Header(get_rules("sport_book"), ("1", "2", "3", "4"), given=given)
    table = Table("x", head, ("club",) * 4, 1 << 28, False, 0, "here")
    assert struck(tables.hands(table, 0, 0, 2000)).sum() == pytest.approx(38 if given else 0, abs=20 if given else 0)


@pytest.mark.parametrize(
    ("rules", "words"),
    [("sport_club", NAMES[:3]), ("puerto_rico", NAMES[:2]), ("kozyol", NAMES[:3]), ("tiny_pairs", NAMES[:2])],
)
def test_games__each_in_pairs(rules, words, tmp_path):
    """S11 club: four tiles are drawn for every match; K1, K2: who leads, and with what, is in the record's rules."""
    figures = run(plan(words, given={"rules": rules, "seed": 2}), tmp_path)
    assert figures["complete"] and figures["rules"] == rules
    for record in records(tmp_path).values():
        assert record.standing.over
        if rules == "sport_club":
            assert len(record.header.draw) == 4
        if rules == "kozyol":
            assert max(record.standing.sums) >= 101 and record.played[0].deal.moves[0] == 7  # 1-1
    if rules == "sport_club":
        assert len({record.header.draw for record in records(tmp_path).values()}) == 3


def test_blitz_in_pairs(tmp_path):
    """B6, where the match knows blitz: as any game in pairs."""
    figures = run(plan(["greedy", "random"], given={"rules": "blitz", "rule_overrides": {"pairs": True}}), tmp_path)
    [record] = records(tmp_path).values()
    assert figures["complete"] and record.standing.deals == 4


# ------------------------------------------------------------------------------------------------------------ standings


def played(number, sides, *points, over=True):
    """A match of one table with these points of its deals."""
    sheet = Sheet(points, over, (0, 0))
    return Match(number, 1, sides, [None], [sheet])


def state(system, names, matches, byes=(), **fields):
    """Where a tournament stands after these matches."""
    config = Config(pairs=dict.fromkeys(names, "club"), system=system, **fields)
    last = max(one.round for one in matches)
    rounds = [[one for one in matches if one.round == number] for number in range(1, last + 1)]
    return State(config, list(names), rounds=rounds, byes=dict(byes))


def four(*last):
    """Points of a four: nothing, and then this deal."""
    return ((0, 0),) * 3 + (last,)


def test_standings__match_points_then_head_to_head_then_net():
    """a, b, d are level on points; b beat a but lost to d, which lost to a: level again, and net points decide."""
    league = [
        played(1, "ab", *four(0, 3)),
        played(1, "cd", *four(0, 9)),
        played(2, "ac", *four(1, 0)),
        played(2, "bd", *four(0, 2)),
        played(3, "ad", *four(7, 0)),
        played(3, "bc", *four(2, 0)),
    ]
    table = standings(state("round_robin", "abcd", league))
    assert [row["pair"] for row in table] == ["a", "d", "b", "c"]
    assert [row["match_points"] for row in table] == [4, 4, 4, 0]
    assert [row["head_to_head"] for row in table] == [2, 2, 2, None]
    assert [row["net"] for row in table] == [5, 4, 3 - 2 + 2, -12]
    assert [row["place"] for row in table] == [1, 2, 3, 4]


def test_standings__head_to_head_goes_before_net():
    """b has beaten a, which won by far more."""
    league = [
        played(1, "ab", *four(0, 1)),
        played(1, "cd", *four(0, 1)),
        played(2, "ac", *four(50, 0)),
        played(2, "bd", *four(0, 1)),
        played(3, "ad", *four(50, 0)),
        played(3, "bc", *four(1, 0)),
        played(4, "bd", *four(0, 0)),
        played(4, "ac", *four(1, 2)),
    ]
    table = {row["pair"]: row for row in standings(state("round_robin", "abcd", league))}
    assert table["b"]["match_points"] == 5 and table["d"]["match_points"] == 5 and table["a"]["match_points"] == 4
    assert (table["d"]["head_to_head"], table["b"]["head_to_head"]) == (3, 1)
    assert table["d"]["place"] == 1 and table["b"]["place"] == 2


def test_standings__the_number_drawn_is_last():
    league = [played(1, "ba", *four(5, 5)), played(1, "cd", *four(5, 5))]
    assert [row["pair"] for row in standings(state("round_robin", "dbca", league))] == ["d", "b", "c", "a"]


def test_standings__buchholz_and_bye():
    """Swiss: a and c have four points each; a met those who have more. A bye is a win, and an opponent like oneself."""
    rounds = [
        played(1, "ab", *four(1, 0)),
        played(1, "cd", *four(9, 0)),
        played(2, "be", *four(1, 0)),
        played(2, "ac", *four(0, 1)),
        played(3, "da", *four(0, 1)),
        played(3, "bc", *four(1, 0)),
    ]
    table = {row["pair"]: row for row in standings(state("swiss", "abcde", rounds, {1: "e", 2: "d", 3: "e"}))}
    assert {name: row["match_points"] for name, row in table.items()} == {"a": 4, "b": 4, "c": 4, "d": 2, "e": 4}
    assert table["a"]["buchholz"] == 4 + 4 + 2  # b, c, d
    assert table["b"]["buchholz"] == 4 + 4 + 4  # a, e, c
    assert table["c"]["buchholz"] == 2 + 4 + 4  # d, a, b
    assert table["e"]["buchholz"] == 4 + 2 * 4  # b, and twice itself
    assert table["d"]["byes"] == 1 and table["d"]["buchholz"] == 4 + 4 + 2
    assert [row["place"] for row in table.values()] == [1, 2, 3, 4, 5]


def test_crosstable__of_one_board_and_of_none():
    league = [played(1, "ab", *four(4, 0)), played(2, "ab", (6, 0), over=False)]
    cross = crosstable(state("round_robin", "abc", league))
    assert cross["points"][0][1] == 2 and cross["counts"][0][1] == 5
    assert cross["points"][0][2] is None and cross["low"][0][2] is None and cross["counts"][0][2] == 0
    single = crosstable(state("round_robin", "ab", [played(1, "ab", (6, 0), over=False)]))
    assert (single["points"][1][0], single["low"][1][0], single["high"][1][0]) == (-6, None, None)


# ------------------------------------------------------------------------------------------------------------ the judge


class Erring:
    """Plays greedily; errs on some decisions, in a way of its own."""

    def __init__(self, name, errs):
        self.name, self.errs = name, errs
        self.calls = []
        self._greedy = make_agent("greedy")

    def act(self, batch):
        actions = self._greedy.act(batch)
        self.calls += batch.key.tolist()
        for i in range(len(batch)):
            actions[i] = self.errs(batch, i, actions[i])
        return actions


def misfit(batch, i, action):
    """A tile that it holds and that does not match, if it has one."""
    held = np.flatnonzero(batch.obs[i, :28])
    wrong = [tile for tile in held if not batch.mask[i, tile] and not batch.mask[i, tile + 28]]
    return wrong[0] if wrong and batch.mask[i, PASS] == 0 else action


def silent(batch, i, action):
    """No answer on every third deal."""
    if batch.key[i] // 2 % 3 == 1:
        raise KeyError("lost my notes")
    return action


@pytest.fixture
def register(monkeypatch):
    """Make agents known for one test."""
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))

    def add(name, errs):
        agent = Erring(name, errs)
        base.register_agent(name, lambda: agent, "errs")
        return agent

    return add


WAYS = {
    "passes": (lambda batch, i, action: PASS if batch.key[i] // 2 % 4 == 1 else action, "answered pass, legal are "),
    "silent": (silent, "KeyError: 'lost my notes'"),
    "far": (lambda batch, i, action: 99, "answered 99, which is no action"),
    "misfit": (misfit, "legal are "),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_judge__an_agent_that_fails_stops_the_tournament(way, register, tmp_path, capsys):
    """Nothing is made up: what was played is kept, and mended it goes on to the result of a pair that never erred."""
    errs, says = WAYS[way]
    agent = register("bad", errs)
    words = ["tournament", "bad", "club", "random", "--seed", "2", "--out", str(tmp_path / "t")]
    assert cli.main(words) == 1
    err = capsys.readouterr().err
    assert err.startswith("domino: agent bad (bad ") and says in err and err.count("\n") == 1
    assert re.search(r"round \d, match 1, deal \d, seat \d, ply \d+: ", err)
    assert f"domino tournament --resume {tmp_path / 't'}" in err
    agent.errs = lambda batch, i, action: action
    assert cli.main(["tournament", "--resume", str(tmp_path / "t"), "--json"]) == 0
    run(plan(["bad", "club", "random"], given={"seed": 2}), tmp_path / "clean")
    assert files(tmp_path / "t") == files(tmp_path / "clean")


def test_wrong_pass__book(register, tmp_path):
    """J2: the deal is lost 0:10 there and then; other deals stand as they were played."""
    register("bad", WAYS["passes"][0])
    config = plan(["bad", "club"], given={"judge": "book", "seed": 1})
    figures = run(config, tmp_path)
    [record] = records(tmp_path).values()
    lost = [one for one in record.lines if one["sanctions"]]
    side = record.header.players.index("bad 1") % 2
    assert lost and len(lost) < len(record.lines)
    for line in lost:
        assert line["recorded"]["points"][1 - side] == 10 and line["recorded"]["points"][side] == 0
        assert line["raw"] is None and line["moves"][-1] == "pass"
        assert [one["clause"] for one in line["sanctions"]] == ["J2"]
    assert figures["standings"][0]["warnings"] == 0


def test_wrong_pass__club(register, tmp_path):
    """J3, J5: 25 to the opponents each time; the first in a deal stands, at the second the judge ends it: a block."""
    register("bad", WAYS["passes"][0])
    run(plan(["bad", "greedy"], given={"judge": "club", "rules": "sport_club", "seed": 1}), tmp_path)
    [record] = records(tmp_path).values()
    side = record.header.players.index("bad 1") % 2
    assert [len(one["sanctions"]) for one in record.lines] == [0, 2, 0, 0]
    line = record.lines[1]
    assert [one["violation"]["decision"] for one in line["sanctions"]] == ["continue", "end"]
    assert line["raw"]["outcome"] == "block" and line["moves"][-1] == "pass"
    assert line["recorded"]["fines"][1 - side] == 50 and line["recorded"]["fines"][side] == 0


def test_no_answer__is_overtime(register, tmp_path):
    """An agent that raises has not answered in time: J3 a warning, then 25, then 50; the first legal is played."""
    register("bad", silent)
    run(plan(["bad", "greedy"], given={"judge": "club", "seed": 1}), tmp_path)
    [record] = records(tmp_path).values()
    said = [one for line in record.lines for one in line["sanctions"]]
    assert {one["violation"]["kind"] for one in said} == {"time"}
    assert [one["fine"] for one in said] == [0, 25, *[50] * (len(said) - 2)] and len(said) > 2


def foreign(batch, i, action):
    """A tile that it does not hold, where it could lay one that it holds."""
    other = [tile for tile in range(28) if not batch.obs[i, tile] and not batch.mask[i, [tile, tile + 28]].any()]
    return other[0] if batch.mask[i, PASS] == 0 else action


@pytest.mark.parametrize(
    ("errs", "kind"),
    [(foreign, "misfit_at_once"), (misfit, "misfit_at_once"), (lambda batch, i, action: 57, "false_block")],
)
def test_wrong_acts__are_called_as_in_the_envs(errs, kind, register, tmp_path):
    """J3: a tile that is not held or does not match, and action 57."""
    register("bad", errs)
    run(plan(["bad", "greedy"], given={"judge": "club", "seed": 1}), tmp_path)
    [record] = records(tmp_path).values()
    assert {one["violation"]["kind"] for line in record.lines for one in line["sanctions"]} == {kind}


@pytest.mark.parametrize("seed", [5, 6])
def test_fifth_warning__the_pair_is_out(seed, register, tmp_path):
    """J1: warnings go along to the next matches; the 5th removes the pair: its match is cut, what remains is void."""
    first = {}

    def once(batch, i, action):  # one tile that does not match in each of its matches' first deals
        deal = int(batch.key[i]) // 2
        wrong = misfit(batch, i, action)
        if deal % (1 << 16) in (0, 1) and wrong != action and first.setdefault(deal, wrong) is wrong:
            return wrong
        return action

    register("bad", once)
    config = plan(
        ["bad", "a=greedy", "b=club", "c=random", "d=greedy", "e=club"], given={"judge": "book", "seed": seed}
    )
    figures = run(config, tmp_path)
    found = [r for r in records(tmp_path).values() if "bad" in (r.header.info["pair_0"], r.header.info["pair_1"])]
    carried = [r.header.warnings[r.header.players.index("bad 1") % 2] for r in found]
    assert carried == [0, 2, 4], "two in each match, so that the 5th comes in the third"
    last = found[-1]
    kinds = {one["violation"]["kind"] for r in found for line in r.lines for one in line["sanctions"]}
    assert kinds == {"misfit_at_once"}
    assert last.standing.over and last.standing.deals == 1 and last.standing.removed
    assert sorted(last.lines[-1]["recorded"]["points"]) == [0, 40]
    said = json.loads((tmp_path / "tournament.json").read_text())
    fates = {
        tuple(sorted(match["pairs"])): match["fate"]
        for one in said["results"]
        for match in one["matches"]
        if "bad" in match["pairs"]
    }
    assert sorted(fates.values()) == ["counted", "counted", "cut", "void", "void"]
    table = {row["pair"]: row for row in figures["standings"]}
    assert figures["standings"][-1]["pair"] == "bad"
    assert table["bad"]["out"] == "removed in round 3 (J1)" and table["bad"]["warnings"] == 5
    assert table["bad"]["played"] == 2 and table["bad"]["deals"] == 9
    [met] = [name for name, fate in fates.items() if fate == "cut"]
    other = next(name for name in met if name != "bad")
    assert table[other]["played"] == 4, "the match that was cut gives nobody match points"
    assert sum(row["match_points"] for row in table.values()) == 2 * 12
    # The same, whatever was on the disk when it was killed.
    path = tmp_path / "records" / "round-03-match-01.jsonl"
    whole = files(tmp_path)
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n{")
    first.clear()
    run(config, tmp_path)
    assert files(tmp_path) == whole


@pytest.mark.parametrize("system", ["round_robin", "swiss"])
def test_withdrawal(system, tmp_path):
    """J6: who leaves before a round plays no more; played matches count, the others are void, the note is kept."""
    given = {"judge": "club", "withdraw": {"greedy": 2}, "system": system, "rounds": 3}
    figures = run(plan(NAMES[:4], given=given), tmp_path)
    table = {row["pair"]: row for row in figures["standings"]}
    assert figures["standings"][-1]["pair"] == "greedy" and table["greedy"]["out"] == "withdrawn in round 2 (J6)"
    assert table["greedy"]["played"] == 1
    said = json.loads((tmp_path / "tournament.json").read_text())
    note = "barred for the season or three entry fees"
    assert said["withdrawals"] == [{"pair": "greedy", "round": 2, "note": note}]
    fates = [match["fate"] for one in said["results"] for match in one["matches"] if "greedy" in match["pairs"]]
    assert fates == (["counted", "void", "void"] if system == "round_robin" else ["counted"])
    if system == "swiss":  # three are left: each round one of them has a bye
        assert [one["bye"] is None for one in said["results"]] == [True, False, False]
        assert sum(row["byes"] for row in table.values()) == 2


@pytest.mark.parametrize(("seat", "seed"), [(0, 0), (1, 1), (1, 2), (3, 3)])
def test_withdrawal__in_a_record(seat, seed, tmp_path):
    """J6: the arbiter enters it in the record of a match; going on, the match is cut and the pair plays no more."""
    names = ["greedy", "random", "double_first"]
    config = plan(names, given={"judge": "club", "rules": "sport_club", "seed": seed})
    run(config, tmp_path)
    path = tmp_path / "records" / "round-01-match-01.jsonl"
    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:4])
    for other in (tmp_path / "records").iterdir():
        other.unlink()
    path.write_bytes(kept)
    with match.Recorder.resume(path) as recorder:
        left = recorder.standing.players[seat].rsplit(" ", 1)[0]
        recorder.leave(seat)
    table = {row["pair"]: row for row in run(config, tmp_path)["standings"]}
    assert (
        table[left]["out"] == "withdrawn in round 1 (J6)" and table[left]["played"] == 0 and table[left]["deals"] == 3
    )
    assert sorted(row["played"] for row in table.values()) == [0, 1, 1]
    assert len(records(tmp_path)) == 2


# ------------------------------------------------------------------------------------ workers, kills, locks, interrupts


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A Swiss tournament of team matches, played at a stretch by one process."""
    folder = tmp_path_factory.mktemp("long") / "t"
    names = ["greedy", "random", "d=double_first", "m=greedy+random", "n=double_first+greedy"]
    words = [*names, "--system", "swiss", "--table", "team", "--rounds", "3", "--fours", "3", "--seed", "11"]
    config = plan(names, given={"system": "swiss", "table": "team", "rounds": 3, "fours": 3, "seed": 11})
    return words, config, folder, run(config, folder)


def test_workers__byte_for_byte_the_same(tmp_path):
    """One process, two, three: the Swiss rounds wait for each other, so standings and pairings are the same too."""
    names = ["greedy", "random", "d=double_first", "m=greedy+random", "n=double_first+greedy"]
    config = plan(names, given={"system": "swiss", "table": "team", "rounds": 3, "seed": 5})
    figures = [run(config, tmp_path / str(workers), workers) for workers in (1, 2, 3)]
    for workers in (2, 3):
        assert figures[workers - 1] == {**figures[0], "folder": str(tmp_path / str(workers))}
        assert files(tmp_path / str(workers)) == files(tmp_path / "1")


def test_killed__goes_on_byte_for_byte(long, tmp_path, capsys):
    """kill -9 in the middle of a real run, twice: nothing that was recorded is played again, nothing is lost."""
    words, _, folder, _ = long
    out = tmp_path / "t"
    kept = {}
    for least in (20, 60):
        process = command("tournament", *words, "--workers", "2", "--out", str(out), cwd=tmp_path)
        deadline = time.monotonic() + 120
        while sum(lines(out).values()) < least and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)  # else it may be through before we ask
        second = cli.main(["tournament", "--resume", str(out)])
        said = capsys.readouterr().err
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was running"
        assert (
            second == 2
            and said == f"domino: {out} is being written by another tournament; wait for it, or write elsewhere\n"
        )
        for path, before in kept.items():
            assert path.read_bytes().startswith(before), "what was recorded stays as it was"
        kept = {path: path.read_bytes().rpartition(b"\n")[0] for path in lines(out)}
    assert cli.main(["tournament", *words, "--out", str(out)]) == 0
    assert files(out) == files(folder)
    capsys.readouterr()


def test_cut_anywhere__goes_on_byte_for_byte(long, tmp_path):
    """Records cut at every kind of place, the head of the tournament alone, leftovers of a write that was killed."""
    _, config, folder, _ = long
    rng = random.Random(4)
    whole = files(folder)
    for trial in range(2):
        out = tmp_path / f"{trial}"
        (out / "records").mkdir(parents=True)
        names = sorted(name for name in whole if name.startswith("records/"))
        upto = rng.choice(names[2:])[:16]  # records/round-NN
        for name in names:
            if name[:16] > upto or (name[:16] == upto and trial and rng.random() < 0.3):
                continue
            cut = name[:16] == upto
            data = whole[name]
            (out / name).write_bytes(
                data[: rng.choice([0, 5, len(data) - 1, rng.randrange(len(data))])] if cut else data
            )
        head = json.loads(whole["tournament.json"]) | {"results": [], "standings": [], "complete": False}
        (out / "tournament.json").write_text(json.dumps(head))
        (out / ".tournament.json.1.part").write_text("{")
        run(config, out)
        assert files(out) == whole


def test_complete__nothing_is_played_again(long, tmp_path, monkeypatch):
    _, config, folder, figures = long
    before = files(folder)
    stamps = {path: path.stat().st_mtime_ns for path in (folder / "records").iterdir()}
    monkeypatch.setattr(tables, "ask", None)
    written = []
    whole = tournament.write_whole
    monkeypatch.setattr(tournament, "write_whole", lambda path, text: written.append(text) or whole(path, text))
    assert run(config, folder) == figures
    assert [json.loads(text)["complete"] for text in written] == [True], "what stood there is never taken back"
    assert files(folder) == before
    assert stamps == {path: path.stat().st_mtime_ns for path in (folder / "records").iterdir()}


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_ctrl_c__says_how_to_go_on(workers, long, tmp_path):
    words, config, folder, _ = long
    process = command("tournament", *words, "--workers", workers, "--out", "t", cwd=tmp_path)
    deadline = time.monotonic() + 120
    while sum(lines(tmp_path / "t").values()) < 15 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "interrupted; go on with: domino tournament --resume t\ndomino: interrupted\n"
    assert all(match.read(path) for path in lines(tmp_path / "t")), "every line is whole"
    assert sum(lines(tmp_path / "t").values()) < sum(lines(folder).values())
    for path in lines(tmp_path / "t"):
        assert (folder / "records" / path.name).read_bytes().startswith(path.read_bytes())
    assert tournament.load(tmp_path / "t").as_dict() == config.as_dict()


@pytest.mark.slow
def test_worker_that_dies__is_one_line(long, tmp_path):
    """The kernel may end a process; what it recorded is kept."""
    words, config, folder, _ = long
    process = command("tournament", *words, "--workers", "2", "--out", "t", cwd=tmp_path)
    deadline = time.monotonic() + 120
    while sum(lines(tmp_path / "t").values()) < 15 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = [
        int(child)
        for child in children.read_text().split()
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    os.kill(workers[0], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err == "domino: a worker process has died; what was recorded is kept: go on with --resume\n"
    run(config, tmp_path / "t")
    assert files(tmp_path / "t") == files(folder)


def test_locked__refused(long):
    _, config, folder, _ = long
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="is being written by another tournament"):
            run(config, folder)
    finally:
        os.close(handle)


def test_another_tournament__is_not_written_into_this_one(long, capsys):
    words, _, folder, _ = long
    before = files(folder)
    assert cli.main(["tournament", *words, "--seed", "12", "--out", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "holds another tournament, with seed=11, not seed=12" in err and err.count("\n") == 1
    assert cli.main(["tournament", *words[1:], "--out", str(folder)]) == 2
    assert "holds another tournament, with pairs=" in capsys.readouterr().err
    assert files(folder) == before


def test_checkpoint_that_trained_on__is_refused(tmp_path, monkeypatch):
    """A run, or its `latest`, may hold another network tomorrow: the tournament does not mix the two."""
    file = tmp_path / "net" / "checkpoints" / "00000001" / "model.safetensors"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    monkeypatch.setattr(base, "load_network", lambda folder, rules: make_agent("greedy"))
    net = str(tmp_path / "net")
    config = plan([f"net={net}", "random"])
    run(config, tmp_path / "t")
    assert list(json.loads((tmp_path / "t" / "tournament.json").read_text())["models"]) == [net]
    before = files(tmp_path / "t")
    assert run(config, tmp_path / "t")["complete"]
    later = tmp_path / "net" / "checkpoints" / "00000002"
    later.mkdir()
    (later / "model.safetensors").write_bytes(b"two")
    with pytest.raises(ValueError, match=f"{net} is not the network that began "):
        run(config, tmp_path / "t")
    assert files(tmp_path / "t") == before


def damage_result(data):
    """Another result of the third deal."""
    rows = data.decode().splitlines(keepends=True)
    line = json.loads(rows[3])
    line["recorded"]["points"][0] += 5
    rows[3] = json.dumps(line, ensure_ascii=False) + "\n"
    return "".join(rows).encode()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (damage_result, r"round-02-match-01-a.jsonl: line 4: recorded is "),
        (
            lambda data: data.replace(b'"seed": 11', b'"seed": 12', 1),
            "line 1: the header is not that of round 2, match 1",
        ),
    ],
)
def test_edited_record__is_refused_with_its_line(damage, says, long, tmp_path):
    _, config, folder, _ = long
    for name, data in files(folder).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(damage(data) if name == "records/round-02-match-01-a.jsonl" else data)
    with pytest.raises(ValueError, match=says):
        run(config, tmp_path)


def test_other_deals__are_refused_with_their_line(tmp_path):
    """A record that holds by the rules, but is of deals that the seed does not deal."""
    run(plan(NAMES[:2], given={"seed": 1}), tmp_path / "a")
    run(plan(NAMES[:2], given={"seed": 2}), tmp_path / "b")
    path = Path("records") / "round-01-match-01.jsonl"
    head = (tmp_path / "a" / path).read_bytes().splitlines(keepends=True)[0]
    rest = (tmp_path / "b" / path).read_bytes().splitlines(keepends=True)[1:]
    (tmp_path / "a" / path).write_bytes(b"".join([head, *rest]))
    with pytest.raises(ValueError, match=r"match-01.jsonl: line 2: deal 0 is not the one that seed 1 deals"):
        run(plan(NAMES[:2], given={"seed": 1}), tmp_path / "a")


def test_workers__errors_reach_the_person(tmp_path, long):
    """What goes wrong in a worker is said as where there is none."""
    _, config, folder, _ = long
    for name, data in files(folder).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(damage_result(data) if name == "records/round-01-match-02-b.jsonl" else data)
    with pytest.raises(ValueError, match=r"round-01-match-02-b.jsonl: line 4: recorded is "):
        run(config, tmp_path, 2)


# ---------------------------------------------------------------------------------------------------------- the command


def test_json__one_object(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main("tournament club greedy --fours 1 --seed 4 --out t --json".split()) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    figures = json.loads(out)
    keys = (
        "players points low high boards counts standings tie_breaks system table rounds fours rules judge seed complete"
    )
    assert list(figures) == [*keys.split(), "ratings", "folder"]
    assert figures["players"] == ["club", "greedy"] and figures["boards"] == 4 and figures["folder"] == "t"
    assert cli.main("tournament --resume t --json".split()) == 0
    assert json.loads(capsys.readouterr().out) == figures
    assert cli.main("tournament --resume t".split()) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "Places go by: match points (2 for a win, 1 for a tie; none for a match that was cut short); then" in page
    assert "4 boards; every deal is in t/records" in page


def test_examples_of_the_help_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["tournament", "--help"]) == 0
    found = re.findall(r"Example: domino ((?:.|\n(?!\s*\n))+)", capsys.readouterr().out)
    assert len(found) == 3
    for example in found:
        words = " ".join(example.split()).replace('"', "").split()
        if "--workers" in words:
            words[words.index("--workers") + 1] = "1"  # processes are tested above
        assert cli.main(words) == 0, example
        assert capsys.readouterr().out
    assert list((tmp_path / "runs").glob("tournament-*/tournament.json"))


def test_report__is_plain_data(long):
    _, config, _, figures = long
    assert json.loads(json.dumps(figures)) == figures
    empty = report(State(config, list(config.squads)))
    assert (
        not empty["complete"] and empty["boards"] == 0 and all(row["match_points"] == 0 for row in empty["standings"])
    )


def test_deal_of_a_record__is_the_keyed_one(league):
    """The text in the record is the deal that (seed, round, match, deal) gives."""
    folder, _ = league
    record = match.read(folder / "records" / "round-02-match-01.jsonl")
    table = Table("", record.header, ("club",) * 4, (2 << 12) << 16, False, 0, "")
    keyed = tables.hands(table, 3, 0, 8).tolist()
    assert [[mask_of(hand) for hand in parse_deal(line["text"]).hands] for line in record.lines] == keyed


def test_pair_error__is_no_fault_of_ours():
    assert issubclass(PairError, RuntimeError) and not issubclass(PairError, ValueError)

"""The report: a page that needs nothing but itself, every part or why not, and the same figures on page and in JSON."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from agents import make_agent
from agents.search.asking import answers
from domino_env import get_rules
from domino_env.tiles import DOUBLES_MASK, tiles_of
from experiments.evaluate import evaluate
from experiments.signaling import report as reporting
from experiments.signaling.consistency import CELLS, agreement, consistency
from experiments.signaling.conventions import CHEAP, conventions, costs
from experiments.signaling.ends import free_channel
from experiments.signaling.information import measure
from experiments.signaling.moves import MOVES
from experiments.signaling.page import Part, Picture, Sheet, drawn, page
from experiments.signaling.players import INNOCENT, Blind, Seats, each_once, game_of, split, tiles_for, without_partner
from experiments.signaling.record import play
from experiments.signaling.report import Sizes, ready, report, states
from experiments.signaling.statistics import clustered
from experiments.signaling.worth import worth
from tests.experiments.signaling.conftest import controls, without_pictures

PARTS = ["header", "scoreboard", "ladder", "information", "listening", "value", "decoding", "conventions", "cross_play"]
PARTS += ["controls", "channel"]
SIZES = Sizes(deals=10, more=36, least=8, boards=20, controls=2, apart=3, draws=40, worth=8, worlds=10)
LOUD = "planted:strength=4,listen=3"


class Reader(HTMLParser):
    """Sees that tags are closed and names stand once; gathers tags with attributes, and text."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


@pytest.fixture(scope="module", autouse=True)
def quickly() -> Any:
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reporting, "validity", lambda *words, **more: controls())
        patch.setattr(reporting.examples, "figure", lambda found: Figure((1, 1)))  # it has tests of its own
        yield


def of_runs(hearing: str, folder: Path) -> Any:
    """A report on a run beside two planted players, and what it wrote."""
    players = [hearing, "planted:strength=2", "planted:strength=8"]
    told: list[tuple[int, int]] = []
    found = report(players, game_of(players), sizes=SIZES, folder=ready(folder), progress=lambda *now: told.append(now))
    assert told == sorted(told) and told[-1][0] == told[-1][1] == told[0][1]
    return found, found.write(folder)


@pytest.fixture(scope="module")
def written(hearing: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return of_runs(hearing, tmp_path_factory.mktemp("report"))


def test_the_page_needs_nothing_but_itself(written: Any) -> None:
    text = written[1][0].read_text()
    assert "http" not in text and "<script" not in text and "<link" not in text and "@import" not in text
    read = Reader(text)
    sources = [value for _, given in read.tags for name, value in given.items() if name in ("src", "xlink:href")]
    assert sources and all(str(one).startswith(("data:image/png;base64,", "#")) for one in sources)
    assert all(one.startswith("url(#") for one in re.findall(r"url\([^)]*", text))
    names = [given["id"] for _, given in read.tags if "id" in given]
    assert len(names) == len(set(names))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
    assert {a or b for a, b in used} <= set(names)
    assert [given["id"] for tag, given in read.tags if tag == "section"] == PARTS
    assert sum(tag == "svg" for tag, _ in read.tags) == 10 and sum(tag == "img" for tag, _ in read.tags) == 1
    assert all(given.get("aria-label") for tag, given in read.tags if tag == "svg")


def test_the_page_shows_the_figures_of_the_json(written: Any) -> None:
    data, words = json.loads(written[1][1].read_text()), "\n".join(Reader(written[1][0].read_text()).words)
    assert list(data["parts"]) == PARTS[1:] and not any("missing" in part for part in data["parts"].values())
    parts, header = data["parts"], data["header"]
    shown = [parts["information"]["observers"][place]["excess"] for place in ("partner", "left", "right")]
    shown += [parts["information"]["secrecy"]["opponents"], parts["value"]["square"]["figures"]["partner_1"]]
    shown += [parts["value"]["against_pool"]["against greedy, less the same of who hears nobody"]]
    shown += [parts["decoding"]["partner"]["targets"]["holds"]["gain"]["rules"]["total"]]
    shown += [
        parts["cross_play"]["methods"][0]["gap"],
        parts["controls"]["controls"][1],
        *parts["scoreboard"]["points"].values(),
    ]
    for one in shown:
        assert f"{one['mean']:+.3f} [{one['low']:.3f}, {one['high']:.3f}]" in words, one
    assert header["how"] == "drawn by its own probabilities" and header["how"] in words
    assert header["reference"] == f"deaf:model={header['player']}" and header["rules_hash"] in words
    assert header["judge"]["critic"] == header["player"] and header["judge"]["why"] in words
    assert header["no_judge"] is None and parts["conventions"]["judge"] == header["judge"]
    assert header["beliefs"] == "exact" and header["least_ess"] is None and not any(header["left_out"].values())
    more = dict(reporting._header_sheet(header | {"least_ess": 512.3, "left_out": {"partner": 0, "left": 7}}).rows)
    assert more["beliefs"].endswith("worth at least 512 worlds")
    assert more["without a figure"].startswith("7 decisions for the left opponent: their beliefs are worth fewer than")
    assert f"deal {parts['conventions']['examples'][0]['number']}, ply " in words
    assert re.fullmatch("[0-9a-f]{64}", header["networks"][header["player"]])
    assert "part 2 shows how well it plays" in " ".join(parts["controls"]["notes"])
    assert len(parts["conventions"]["rows"]) == 18 and all(row["text"] in words for row in parts["conventions"]["rows"])
    found = parts["conventions"]["consistency"]
    assert found["draws"] == SIZES.draws and found["least"] == SIZES.least and found["decisions"] > 40
    best = max((one for one in found["links"] if one["beyond"] is not None), key=lambda one: one["beyond"])
    assert MOVES[best["kind"]].text in words and f"{best['beyond']:+.3f}" in words and f"{best['p']:.4f}" in words
    same = parts["cross_play"]["same_meaning"]
    assert same["references"] == {header["player"]: header["reference"]} | dict.fromkeys(header["others"], INNOCENT)
    assert same["deals"] == SIZES.more and f"mean over pairs: {same['lift']['mean']['mean']:+.3f} [" in words
    notes = parts["cross_play"]["notes"]
    for line in ("3 trainings: intervals over trainings are too narrow", "the interval of the mean over pairs is too"):
        assert sum(line in one for one in notes) == 1 == words.count(line)
    assert "no lifts over the reference: trainings have different ones" in words and "over_reference" not in same
    assert parts["channel"]["player"]["players"][0] == header["player"]
    assert "both teams are the same players" in " ".join(parts["value"]["square"]["notes"])


def test_figures_are_those_of_the_measures(written: Any, hearing: str) -> None:
    data = json.loads(written[1][1].read_text())
    game = game_of([hearing])
    assert game.title == "tiny_pairs labelled_ends=True" == data["header"]["rules"]
    seats = Seats(game)
    one, twin = seats(hearing), seats(f"deaf:model={hearing}")
    assert one.agent.sample and twin.agent.sample and twin.agent.deaf
    record = play(one.agent, game, SIZES.more, 0)
    some = record.moments.take((record.moments.deal < SIZES.deals) & np.isin(record.moments.tiles, tiles_for(game)))
    info = measure(some, record.table, twin.agent, reference_floor=twin.floor)
    assert data["parts"]["information"]["observers"]["partner"]["gap"] == info.estimates()["partner"]["gap"].to_dict()
    won = evaluate(one.agent, "greedy", game, SIZES.boards)
    assert data["parts"]["scoreboard"]["points"][f"{hearing} (sampled) against greedy"]["mean"] == won.points_per_deal
    assert 0 < data["parts"]["scoreboard"]["forced"] < 1
    assert data["parts"]["scoreboard"]["forced"] == 1 - len(record.moments) / record.turns
    shut = evaluate(twin.agent, "greedy", game, SIZES.boards).points_per_deal
    heard = data["parts"]["value"]["against_pool"]["against greedy, less the same of who hears nobody"]
    assert heard["mean"] == pytest.approx(won.points_per_deal - shut) and heard["mean"] != 0
    grounded = []
    for agent in (twin.agent, one.agent):
        line = np.arange(len(record.moments))
        own = answers(record.moments.position, agent, line, record.moments.hand())[0]
        likeliest = own[line, record.moments.action] >= own.max(axis=1) - 1e-9
        grounded.append(clustered(likeliest, record.moments.deal).to_dict())
    assert data["parts"]["scoreboard"]["grounded"] == grounded[0] != grounded[1]
    words = {"tiles": tiles_for(game, every=True)}
    channel = [free_channel(play(agent, game, SIZES.more, 0), **words) for agent in (one.agent, twin.agent)]
    assert [data["parts"]["channel"][who] for who in ("player", "reference")] == [one.to_dict() for one in channel]
    assert channel[0] != channel[1]

    cost = costs(Blind(hearing, game, SIZES.worlds)(record.moments), record.moments)
    free = clustered(cost <= CHEAP, record.moments.deal)
    assert data["parts"]["scoreboard"]["costs_nothing"] == free.to_dict()
    table = data["parts"]["conventions"]
    assert table["rows"][0]["price"]["mean"] is not None and data["parts"]["scoreboard"]["costly_signals"] == {
        name: value for name, value in table["costly"].items() if not name.endswith("_above")
    }
    pool = ["greedy", "club"]
    points = worth(one.side, without_partner(seats.twins(one)).side, pool, game, SIZES.worth, least=SIZES.least)
    assert table["worth"] == points.to_dict() and table["no_worth"] is None
    assert {row["kind"]: row["value"] for row in table["rows"] if row["public"]} == {
        kind: value.to_dict() for kind, value in points.values.items()
    }
    assert {row["value"]["mean"] for row in table["rows"] if not row["public"]} == {None}

    one_table = conventions(record, twin.agent, tiles=tiles_for(game, every=True), least=SIZES.least, floor=1e-6)
    told = consistency(one_table.judged, least=SIZES.least, draws=SIZES.draws)
    assert table["consistency"] == json.loads(json.dumps(told.to_dict()))
    tables, innocent = [one_table], seats(INNOCENT)
    for name in data["header"]["others"]:
        other = play(seats(name).agent, game, SIZES.more, 0)
        tables.append(conventions(other, innocent.agent, tiles=tiles_for(game, every=True), least=SIZES.least, floor=0))
    alike = agreement(tables, [hearing, *data["header"]["others"]], draws=SIZES.draws)
    assert data["parts"]["cross_play"]["same_meaning"]["lift"] == json.loads(json.dumps(alike.to_dict()))

    rows = [json.loads(line) for line in written[1][2].read_text().splitlines()]
    assert len(rows) == len(some) == data["header"]["decisions"]
    assert np.mean([row["partner"]["gap"] for row in rows]) == pytest.approx(np.mean(info.gap[:, 0]))
    assert [row["action"] for row in rows] == some.action.tolist() and [row["ply"] for row in rows] == some.ply.tolist()
    assert all(row["without"] == twin.name and row["listen"] >= 0 and row["legal"] > 1 for row in rows)
    values = Blind(hearing, game, SIZES.worlds)(some)
    assert [row["c"] for row in rows] == costs(values, some).tolist() and max(row["c"] for row in rows) > 0
    assert all(row["said"] <= 0 and row["left"]["foreseen"] <= 0 for row in rows)


def test_the_same_again_is_the_same(
    written: Any, hearing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the date and the seconds; that pictures are is seen below."""
    without_pictures(monkeypatch)
    found, paths = of_runs(hearing, tmp_path / "new" / "again")
    assert found.header == written[0].header and paths[2].read_bytes() == written[1][2].read_bytes()

    def undated(path: Path) -> str:
        changing = r'Made [^<]* s\. |"made": \{[^}]*\}|(<svg.*?</svg>|<img [^>]*>)(?=<figcaption>)'
        return re.sub(changing, "", path.read_text(), flags=re.DOTALL)

    for path, before in zip(paths[:2], written[1]):
        assert undated(path).splitlines() == undated(before).splitlines()


def test_what_cannot_be_had_says_why(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_pictures(monkeypatch)
    found = report([plain], game_of([plain]), sizes=Sizes(4, 8, 2, 4, 2, 2, 2, 2, 3))
    parts = {part.name: part for part in found.parts}
    assert list(parts) == PARTS
    missing = {name: part.missing for name, part in parts.items() if part.missing}
    assert set(missing) == {"listening", "value", "cross_play", "channel"}
    for name in ("listening", "value"):
        assert "deaf=0" in missing[name] and "out of distribution" in missing[name]
    assert "three or more" in missing["cross_play"] and "labelled_ends" in missing["channel"]
    assert found.header["reference"] == "planted:strength=0" and "no deaf twin" in found.header["why_reference"]
    text = found.html()
    assert text.count("Not here: ") == 4 and all(f'<section id="{name}">' in text for name in PARTS)
    assert found.to_dict()["parts"]["channel"] == {"title": "The free channel", "missing": missing["channel"]}
    assert found.decisions[0]["listen"] is None and found.decisions[0]["without"] is None
    table = found.to_dict()["parts"]["conventions"]
    assert found.decisions[0]["c"] >= 0 and table["judge"]["critic"] == plain  # it has a critic, but no deaf twin
    assert table["worth"] is None and "out of distribution" in table["no_worth"]


def test_two_are_compared__and_who_has_no_critic_has_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    without_pictures(monkeypatch)
    both, sizes = ["greedy", "club"], Sizes(4, 20, 4, 4, 2, 2, 2, 4, 2)
    found = report(both, get_rules("tiny_pairs"), sizes=sizes, pool=["greedy"])
    plain = found.to_dict()
    crossed = plain["parts"]["cross_play"]
    assert crossed["same_meaning"]["references"] == dict.fromkeys(both, INNOCENT) and "points" not in crossed
    for figure in ("lift", "over_reference"):
        one = crossed["same_meaning"][figure]
        assert one["players"] == both and one["cells"][0][1] >= CELLS and -1 <= one["matrix"][0][1] <= 1
        assert one["mean"]["mean"] == one["matrix"][0][1] and one["mean"]["low"] is None
    assert "need three or more" in crossed["notes"][-1] and "only beliefs are asked" in crossed["notes"][0]
    assert found.decisions[0]["c"] is None and plain["header"]["judge"] is None
    assert plain["header"]["no_judge"].startswith("greedy has no critic that sees all hands")
    assert plain["parts"]["scoreboard"]["costs_nothing"] is None is plain["parts"]["scoreboard"]["costly_signals"]
    assert (
        "no prices: greedy has no critic" in found.html()
        and "at least one" in plain["parts"]["conventions"]["no_worth"]
    )


def test_cross_play__trainings_are_no_opponents_of_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is without them, and says so; where nobody is left in it, what needs no points is there yet."""
    without_pictures(monkeypatch)
    monkeypatch.setattr(reporting, "_alike", lambda work, share: {**_NO_PART, "notes": ["alike"]})
    names, sizes = ["greedy", "random", "planted:strength=2"], Sizes(2, 4, 2, 4, 2, 2, 5, 2, 2)
    seats = Seats(get_rules("tiny_pairs"))
    for pool in (["greedy", "club"], ["greedy", "random"]):
        work = reporting._Work(seats, names, None, sizes, 0, pool, None, None)
        made = reporting._cross_play(work)
        if "club" in pool:
            assert made["data"]["pool"] == ["club"] and made["data"]["methods"][0]["gap"]["low"] is not None
            assert made["notes"][0] == made["data"]["notes"][0] and "3 trainings: intervals" in made["notes"][0]
            assert made["notes"][-1].endswith("the pool is without greedy") and not made["sheets"][0].notes
        else:
            assert made["notes"] == ["alike", made["notes"][1]] and "opponents that are none" in made["notes"][1]


_NO_PART: dict[str, Any] = {"data": {}, "sheets": [], "pictures": []}


def work_of(player: str, game: Any, **given: Any) -> Any:
    """What the parts of a report on a player share."""
    sizes = given.pop("sizes", SIZES)
    seats = Seats(game, given.pop("greedy", False))
    return reporting._Work(seats, [player], None, sizes, 0, given.pop("pool", ["greedy"]), None, None)


def test_what_opponents_hear_is_compared_with_who_hears_its_partner(monkeypatch: pytest.MonkeyPatch) -> None:
    without_pictures(monkeypatch)
    row = reporting._conventions(work_of(LOUD, get_rules("tiny_pairs")))["data"]["rows"][0]
    assert row["partner"]["mean"] > 0 == row["opponents"]["mean"] == row["opponents"]["error"]


def test_the_free_channel_of_certain_players_is_read_with_a_floor(
    hearing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `domino signal e4` reads them."""
    floors = []

    def noted(record: Any, **given: Any) -> Any:
        floors.append(given.get("floor", 0.0))
        return free_channel(record, **given)

    monkeypatch.setattr(reporting, "free_channel", noted)
    for greedy in (False, True):
        reporting._channel(work_of(hearing, game_of([hearing]), greedy=greedy))
    assert floors == [0.0, 0.0, 0.02, 0.02]


def test_networks_of_the_pool_have_digests(hearing: str) -> None:
    work = work_of("planted:strength=4", game_of([hearing]), pool=["greedy", hearing])
    assert set(reporting._header(work)["networks"]) == {hearing}


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="boards=1 must be at least 2"):
        Sizes(boards=1)
    with pytest.raises(ValueError, match="deals=40 must be at most more=30: they are the first of these"):
        Sizes(deals=40, more=30)


def test_states_are_what_the_rules_need() -> None:
    """Two orders of the same tiles are one state; the ends may be turned round."""
    moments = play("random", "tiny_pairs", 300, tiles=[3]).moments
    hashes, seen = states(moments), dict[str, Any]()
    p = moments.position
    for row, name in enumerate(hashes):
        laid = int(np.bitwise_or.reduce(p.played[row]))
        plain = (laid, *sorted(p.ends[row]), *p.sizes[row], *p.voids[row], p.to_move[row], p.leader[row])
        assert seen.setdefault(name, plain) == plain
    assert 1 < len(seen) == len(set(seen.values())) < len(hashes)


def test_states_know_who_laid_what_where_hands_are_dealt_again() -> None:
    """A seat that laid two doubles may hold two more; where no hand is dealt again, that is nobody's concern."""
    moments = play("random", deals=30, seed=1, tiles=[9]).moments
    played = moments.position.played
    doubles = np.bitwise_count(played & np.uint32(DOUBLES_MASK))
    row = int(np.flatnonzero((doubles[:, 0] > 0) & (played[:, 1] & ~np.uint32(DOUBLES_MASK) != 0))[0])
    double = min(set(tiles_of(int(played[row, 0]))) & set(tiles_of(DOUBLES_MASK)))
    plain = min(set(tiles_of(int(played[row, 1]))) - set(tiles_of(DOUBLES_MASK)))
    other = played.copy()
    other[row, :2] ^= np.uint32(1 << double | 1 << plain)  # the seats exchange the two
    for name, alike in (("sport_book", False), ("puerto_rico", True)):
        rules = get_rules(name)
        assert rules.redeal is not alike
        hashes = [
            states(replace(moments, position=replace(moments.position, rules=rules, played=laid)))[row]
            for laid in (played, other)
        ]
        assert (hashes[0] == hashes[1]) is alike


# -- pages ------------------------------------------------------------------------------------------------------------


def test_pages_escape_and_align() -> None:
    rows = [("<b>", "+0.10 [0.0, 0.2]"), ("–", "12.5%"), ("1,234", "alike 3"), ("+0.1 [0, 0.2]*", "a*")]
    rows += [
        ("+1.340 ±0.050", "×1.20* natural"),
        ("-0.020 ±0.010*", "×0.80 natural"),
        ("2.2e-16", "natural"),
        ("±", "–"),
    ]
    sheet = Sheet("a < b", ("x", "y"), rows, ["so & so"])
    words = sheet.html()
    assert "<td>&lt;b&gt;</td><td class=figure>+0.10 [0.0, 0.2]</td>" in words and "a &lt; b" in words
    assert words.count("class=figure") == 5 + 6 and "<li>so &amp; so</li>" in words
    text = page("T", ["lead"], [Part("one", "One", "what", missing="why & how"), Part("two", "Two", "what", {"a": 1})])
    Reader(text)
    assert "Not here: why &amp; how" in text and '<a href="#two">2. Two</a>' in text
    assert Part("two", "Two", "what", {"a": 1}, notes=["n"]).to_dict() == {"title": "Two", "a": 1, "notes": ["n"]}


def test_pictures_stand_beside_each_other() -> None:
    one = drawn('a "picture"', (2, 1), lambda figure: figure.subplots().plot([0, 1], [0, 1]))
    assert one == drawn('a "picture"', (2, 1), lambda figure: figure.subplots().plot([0, 1], [0, 1]))
    first, second = one.html(1), one.html(2)
    assert 'id="p1-' in first and 'id="p2-' in second and 'id="p1-' not in second
    assert (
        first.startswith("<figure><svg role=") and "http" not in first and 'aria-label="a &quot;picture&quot;"' in first
    )
    Reader(first + second)
    png = Picture("p", b"\x89PNG...")
    assert 'src="data:image/png;base64,' in png.html(1)


# -- players ----------------------------------------------------------------------------------------------------------


def test_players(hearing: str, plain: str) -> None:
    assert split(["planted:strength=4,listen=2,club", "a,b"]) == ["planted:strength=4,listen=2", "club", "a", "b"]
    assert tiles_for(get_rules()) == (8, 10, 12, 14, 16) and tiles_for(get_rules(), every=True) == tuple(range(8, 17))
    assert tiles_for(get_rules("tiny_pairs")) == tuple(range(1, 8))
    assert game_of(["club"]).name == "sport_book" and game_of([f"lookahead:model={plain}"]).title == "tiny_pairs"
    with pytest.raises(ValueError, match="blitz"):
        game_of(["club"], "blitz")

    seats = Seats(game_of([hearing]))
    one = seats(hearing)
    assert (
        seats(hearing) is one
        and one.side is one.agent
        and not one.certain
        and one.reading_floor == 0 < one.floor < 1e-5
    )
    assert {who: twin.name for who, twin in seats.twins(one).items()} == {"all": f"deaf:model={hearing}"}
    with pytest.raises(ValueError, match="is deaf"):
        seats.twins(seats(f"deaf:model={hearing}"))
    club = seats("club")
    assert club.certain and club.floor > 0.01 > club.reading_floor == 0 and club.side == "club" and club.do == "uniform"
    assert seats.reference(club).name == "planted:strength=0" and seats.reference(one, "uniform").model == "uniform"
    with pytest.raises(ValueError, match=r"pimc has no probabilities.*domino signal listen"):
        seats.asked("pimc")

    each_once(["club", "club:listen=2", hearing, plain, f"deaf:model={hearing}", f"pimc:model={hearing}"])
    for twice in (["club", "club"], [f"pimc:worlds=3,model={hearing}", f"pimc:worlds=3,model={hearing}/checkpoints"]):
        with pytest.raises(ValueError, match=f"each run counts once, here; twice: {twice[0]}"):
            each_once(["random", *twice], "run", "here")

    sure = Seats(game_of([hearing]), greedy=True)(hearing)
    assert sure.side == hearing and sure.certain and sure.reading_floor > 0
    moments = play(sure.agent, game_of([hearing]), 5).moments
    assert len(moments) and (play(make_agent(hearing), game_of([hearing]), 5).moments.action == moments.action).all()

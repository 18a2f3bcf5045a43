"""Pictures of blitz and the blind games: runs and their movers, rows that lie face down, what a seat may know."""

import importlib
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import domino_env.render
from domino_env.deals import parse_deal
from domino_env.engine import make_engine
from domino_env.render import line_of, rgb, svg, text
from domino_env.render.line import story_of
from domino_env.render.plain import WIDTH
from domino_env.render.seats import places_of
from domino_env.tiles import NUM_TILES, tile_name

GAMES = {
    **{f"blitz of {seats}": ("blitz", {"seats": seats}) for seats in range(4, 9)},
    "blitz, one end": ("blitz", {"seats": 5, "chain": "one"}),
    "blitz in pairs": ("blitz", {"pairs": True}),
    **{f"blind blitz of {seats}": ("blind_blitz", {"seats": seats}) for seats in (2, 3, 4)},
    **{f"blind of {seats}": ("blind", {"seats": seats}) for seats in (2, 3, 4)},
    "peek": ("blind_blitz", {"seats": 3, "memory": "peek"}),
    "peek, led by the highest": ("blind_blitz", {"memory": "peek", "lead": "high"}),
    "three in a row": ("blind_blitz", {"seats": 2, "hand_size": 3, "max_pip": 3}),
}
ROWS = [name for name, (rules, _) in GAMES.items() if rules != "blitz"]
RENDERERS = {"text": text, "svg": svg, "rgb": lambda s, view=None: rgb(s, view, (480, 360))}


def engine_of(game, seed=0):
    rules, overrides = GAMES[game]
    return make_engine(rules, 1, seed, **overrides)


def positions(game, seed, every=1):
    """The engine of a deal of random legal play, at its first, each `every`-th and its last position."""
    engine, rng = engine_of(game, seed), np.random.default_rng(seed)
    yield engine
    done, ply = False, 0
    while not done:
        done = bool(engine.step(engine.sample_legal(rng), autoreset=False)[1][0])
        ply += 1
        if done or ply % every == 0:
            yield engine


def given(rules, hands, moves, leader=None, stock=None, **overrides):
    """The snapshot of a given deal after some moves, written as in the notation."""
    engine = make_engine(rules, 1, 0, **overrides)
    options = {"hands": [hand.split() for hand in hands]}
    options |= {} if leader is None else {"leader": leader}
    options |= {} if stock is None else {"stock": stock.split()}
    engine.reset(options=options)
    for move in moves.split():
        engine.step(np.array([engine.rules.action_index(move)]), autoreset=False)
    return engine.snapshot(0)


# Runs (B3, R6): the seat of a move is what the snapshot says, and a pass is what it means.

SMALL = {"max_pip": 3}
BLITZ = {"rules": "blitz", "hands": ["0-0 0-1", "1-1 1-2", "2-3 3-3", "0-2 0-3"], "seats": 4, "hand_size": 2, **SMALL}
BLIND = {"rules": "blind", "hands": ["0-1 2-2 3-3 0-0", "0-2 1-3 1-2 1-1"], "stock": "0-3 2-3", "leader": 0}
BLIND |= {"seats": 2, "hand_size": 4, **SMALL}
TURNS = "turn 0-0L pass turn draw 0-1L pass turn"


def said(snapshot):
    """The moves as the pictures understand them: seat, + where its turn goes on, kind, tile."""
    return [
        f"{move.seat}{'' if move.first else '+'} {move.kind}"
        + ("" if move.tile is None else f" {tile_name(move.tile)}")
        for move in story_of(snapshot).moves
    ]


def test_moves__a_stop_is_no_pass_and_tells_no_suits__B3():
    snapshot = given(**BLITZ, moves="0-0L pass pass pass 0-2L")
    assert said(snapshot) == ["0 lay 0-0", "0+ stop", "1 pass", "2 pass", "3 lay 0-2"]
    assert story_of(snapshot).passed_on == [[], [0], [0], []]
    assert story_of(snapshot).laid == snapshot["turn"]["laid"] == 1
    page = text(snapshot)
    assert page.splitlines()[-1] == "last moves  0:0-0L stop 1:pass 2:pass 3:0-2L"
    assert "pass   " in page and "seat_0 · leads\n" in page


def test_moves__turn_draw_and_stop__R4_R5_R6():
    snapshot = given(**BLIND, moves=TURNS)
    assert said(snapshot) == [
        *("0 turn 0-0", "0+ lay 0-0", "0+ stop", "1 turn 1-1", "1+ draw", "0 lay 0-1", "0+ stop", "1 turn 0-3"),
    ]
    assert story_of(snapshot).passed_on == [[], []]


@pytest.mark.parametrize(("stock", "kind"), [("0-3 2-3", "decline"), (None, "pass")])
def test_moves__who_does_not_draw_declines_only_where_there_is_a_stock__R5(stock, kind):
    deal = BLIND | {"stock": stock}
    if stock is None:
        deal |= {"hands": ["2-3 0-1 2-2 3-3 0-0", "0-3 0-2 1-3 1-2 1-1"], "hand_size": 5}
    snapshot = given(**deal, moves="turn 0-0L pass turn pass")
    assert said(snapshot)[-1] == f"1+ {kind}"
    assert ("declined" in text(snapshot)) == (kind == "decline")


@pytest.mark.parametrize("game", GAMES)
def test_moves__seats_ends_and_runs_are_the_engines(game):
    for engine in positions(game, seed=1):
        snapshot = engine.snapshot(0)
        story = story_of(snapshot)
        assert len(story.moves) == len(snapshot["moves"])
        assert story.begins or snapshot["over"] or story.moves[-1].seat == snapshot["to_move"]
        if "turn" in snapshot and not snapshot["over"]:
            assert story.laid == snapshot["turn"]["laid"]
        turned = [move.tile for move in story.moves if move.kind == "turn"]
        events = engine.history(0)[0, : len(story.moves)]
        assert turned == [event >> 6 & 63 for event in events.tolist() if event & 63 == 57]
        assert [move.seat for move in story.moves] == (events >> 12).tolist()


@pytest.mark.parametrize(
    ("deal", "change", "message"),
    [
        (BLITZ, {"movers": [0]}, "has 2 moves; its movers must be as many seats"),
        (BLITZ, {"movers": [0, 4]}, "as many seats, not"),
        (BLITZ, {"moves": ["0-0L", "turn"]}, r"move 1 \(turn\) is of the blind games, not of blitz"),
        (BLIND, {"moves": ["turn", "0-1L"], "ends": [0, 1]}, "move 1 lays 0-1, which does not lie open with seat 0"),
        (BLIND, {"moves": ["turn", "0-0L", "turn"], "movers": [0] * 3}, "move 2 turns a tile, but seat 0 has none"),
        (BLIND, {"moves": ["draw"] * 3, "movers": [0, 1, 0], "ends": None}, "move 2 draws a tile, but the stock is"),
    ],
)
def test_moves__refuse_what_cannot_have_been(deal, change, message):
    moves = "0-0L pass" if deal is BLITZ else "turn 0-0L"
    snapshot = given(**deal, moves=moves)
    assert snapshot["movers"] == [0, 0] and line_of(snapshot)
    with pytest.raises(ValueError, match=message):
        line_of(snapshot | change)


# What a seat may know (R2, R7, R9, B1): no more and no less than its observation holds.


def names_of(layout, bits, part):
    return [tile_name(tile) for tile in np.flatnonzero(bits[layout.slices[part]][:NUM_TILES]).tolist()]


def parts_of(engine, viewer):
    """Names of the seats in the layout, clockwise from the viewer, with the seats."""
    seats = engine.rules.seats
    prefix = "row_" if engine.rules.rows else "size_"
    names = [name.removeprefix(prefix) for name in engine.layout.slices if name.startswith(prefix)]
    return [(name, (viewer + r) % seats) for r, name in enumerate(names)]


def row_in(layout, bits, who):
    """A row from left to right as the observation shows it: names, None where the viewer does not know the tile."""
    row = []
    for place in bits[layout.slices[f"row_{who}"]].reshape(-1, 16):
        if place[14]:
            halves = [*np.flatnonzero(place[:7]).tolist(), *np.flatnonzero(place[7:14]).tolist()]
            row.insert(0, ("-".join(map(str, halves)) or None, bool(place[15])))
    return row


@pytest.mark.parametrize("game", GAMES)
def test_view__shows_what_the_observation_holds__R2_R7_R9_B1(game):
    for engine in positions(game, seed=9):
        layout, snapshot = engine.layout, engine.snapshot(0)
        story = story_of(snapshot)
        for viewer in range(engine.rules.seats):
            bits = engine.observe(viewer)[0]
            around = places_of(snapshot, story, viewer)
            drawn = {place.seat: place for side in around.values() for place in side}
            for who, seat in parts_of(engine, viewer):
                tiles = drawn[seat].tiles
                if engine.rules.rows:
                    assert not drawn[seat].passed_on
                    down = [(held.name, held.seen) for held in tiles if held.down or held.name is None]
                    assert down == row_in(layout, bits, who)
                    shown = [held.name for held in tiles if held.name is not None and not held.down]
                    assert sorted(shown) == names_of(layout, bits, f"shown_{who}")
                    continue
                assert drawn[seat].passed_on == np.flatnonzero(bits[layout.slices[f"passed_{who}"]]).tolist()
                if seat == viewer:
                    assert [held.name for held in tiles] == names_of(layout, bits, "hand")
                else:
                    assert all(held.name is None for held in tiles)
                    assert len(tiles) == bits[layout.slices[f"size_{who}"]].sum()
            if engine.rules.rows:
                turned = [place.turned for place in drawn.values() if place.turned]
                assert turned == names_of(layout, bits, "turned")


def unknown_to(engine, viewer):
    """Tiles whose place the viewer does not know, by its observation alone."""
    layout, bits = engine.layout, engine.observe(viewer)[0]
    known = set()
    for name in layout.slices:
        if name.startswith(("played", "shown", "turned", "hand")):
            known |= set(names_of(layout, bits, name))
        if name.startswith("row_"):
            known |= {tile for tile, _ in row_in(layout, bits, name.removeprefix("row_"))}
    return [tile_name(tile) for tile in engine.rules.tiles if tile_name(tile) not in known]


def renamed(value, names):
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: renamed(part, names) for key, part in value.items()}
    return [renamed(part, names) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("game", GAMES)
def test_view__any_other_deal_of_the_unknown_tiles_is_the_same_picture(game):
    rng, asked = np.random.default_rng(2), 0
    for engine in positions(game, seed=2, every=17):
        snapshot = engine.snapshot(0)
        viewer = int(rng.integers(engine.rules.seats))
        hidden = unknown_to(engine, viewer)
        moved = dict(zip(hidden, np.roll(hidden, 1).tolist(), strict=True))
        other = {key: part if key == "moves" else renamed(part, moved) for key, part in snapshot.items()}
        for name, draw in RENDERERS.items():
            assert np.array_equal(draw(snapshot, viewer), draw(other, viewer)), name
        if len(hidden) > 1 and other["hands"] != snapshot["hands"]:
            asked += 1
            assert text(snapshot) != text(other)
    assert asked or engine.rules.hand_size <= 3  # where all lies open and only the stock is unknown


def test_view__the_looked_at_row_is_drawn_until_it_is_forgotten__R9():
    hands = ["0-0 1-1 2-2 3-3", "0-1 1-2 2-3 1-3"]
    for memory, after in (("perfect", 4), ("peek", 0)):
        deal = {"rules": "blind_blitz", "hands": hands, "seats": 2, "hand_size": 4, "memory": memory, **SMALL}
        before = text(given(**deal, moves="", stock="0-2 0-3"), view=1)
        assert before.count("(") == 4 + 1  # four tiles, and once below what the brackets say
        page = text(given(**deal, moves="0-0L", stock="0-2 0-3"), view=1)
        assert page.count("(") == (after + 1 if after else 0)
        first = text(given(**deal, moves="0-0L pass", stock="0-2 0-3"), view=1)  # asked for the first time
        assert first.count("(") == 4 + 1


# How they look

BLITZ_PAGE = """\
blitz   deal 2   out of play 2   score  0 : 0 : 0 : 0

                               seat_1 · pass · no 0
                                   [░░░][░░░]



                                                                        seat_2
  seat_0                               ╭0╮                              pass
  leads                         L◂[2|0]├─┤▸R                            no 0
  [░░░]                                ╰0╯                              [░░░]
                                                                        [░░░]



                           ▶ seat_3 goes on · laid 1
                                     [0|3]

last moves  0:0-0L stop 1:pass 2:pass 3:0-2L
"""
BLIND_PAGE = """\
blind   deal 2   stock 1   score  0 : 0

                                ▶ seat_1 to move
                              {1|1}(0|2)(1|3)(1|2)
                                    ▴ [0|3]




                                       ╭0╮
                                L◂[1|0]├─┤▸R
                                       ╰0╯




                                  seat_0 · leads
                                   [2|2][3|3]

last moves  0:turn(0-0) 0-0L stop 1:turn(1-1) draw 0:0-1L stop 1:turn(0-3)
(·|·) face down   {·|·} down, seen by all
"""


def test_text__golden_tables():
    assert text(given(**BLITZ, moves="0-0L pass pass pass 0-2L"), view=3) == BLITZ_PAGE
    assert text(given(**BLIND, moves=TURNS)) == BLIND_PAGE


@pytest.mark.parametrize("lang", ["en", "ru"])
@pytest.mark.parametrize("game", GAMES)
def test_text__of_every_game_fits_a_terminal_and_shows_all_tiles(game, lang):
    for engine in positions(game, seed=3, every=9):
        snapshot = engine.snapshot(0)
        page = text(snapshot, lang=lang)
        assert max(map(len, page.splitlines())) <= WIDTH
        assert all(f"seat_{seat}" in page for seat in range(snapshot["seats"]))
        drawn = ["-".join(sorted(pair)) for pair in re.findall(r"[\[({](\d)\|(\d)[\])}]", page)]
        held = [name for hand in snapshot["hands"] for name in hand]
        assert not [name for name in held if drawn.count(name) != 1]
        assert page.count("▶") == (not snapshot["over"])
        if lang == "ru":  # what stays is the game's name, the seats' and the marks of the ends
            assert not set(re.findall("[A-Za-z]+", page)) - {*snapshot["rules"].split("_"), "seat", "L", "R"}


def test_text__says_what_is_bound_and_what_lies_apart():
    deal = {"rules": "blitz", "seats": 4, "hand_size": 3, "max_pip": 4, "chain": "one"}
    deal["hands"] = ["0-0 3-3 4-4", "0-1 1-2 0-2", "0-3 0-4 1-1", "1-3 1-4 2-2"]
    snapshot = given(**deal, moves="0-0L pass 0-1L")
    assert "out of play 3" in text(snapshot) and "вне игры 3" in text(snapshot, lang="ru")
    assert "goes on · left end only · laid 1" in text(snapshot, view=1)
    assert "ходит ещё · только слева · выложено 1" in text(snapshot, view=1, lang="ru")
    for page in (svg(snapshot), svg(snapshot, lang="ru")):
        marks = dict(zip("LR", re.findall(r'fill="(#\w+)"/>\n<text [^>]*>[LR]<', page), strict=True))
        assert marks == {"L": domino_env.render.scene.GOLD, "R": domino_env.render.scene.GREY}
    assert "left end only" in svg(snapshot) and "только слева" in svg(snapshot, lang="ru")
    assert "stock 1" in text(given(**BLIND, moves=TURNS)) and "базар 1" in svg(given(**BLIND, moves=TURNS), lang="ru")


def boxes_of(shapes):
    """Boxes of tiles and chips on the table: (x, y, right, bottom)."""
    scene = domino_env.render.scene
    kinds = [s for s in shapes if isinstance(s, scene.Face | scene.Back) or (isinstance(s, scene.Rect) and s.h == 18)]
    return np.array([(s.x, s.y, s.x + s.w, s.y + s.h) for s in kinds if s.x < scene._PANEL[0]])


def check_apart(snapshot, view, lang):
    scene = domino_env.render.scene
    shapes = scene.scene_of(snapshot, view, lang)
    boxes = boxes_of(shapes)
    assert boxes.min() > 16 and boxes[:, 2].max() < 738 and boxes[:, 3].max() < 704
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    apart = ((low >= boxes[None, :, 2:] - 1e-9) | (boxes[None, :, :2] >= high - 1e-9)).any(axis=2)
    assert (apart | np.eye(len(boxes), dtype=bool)).all()
    words = [s for s in shapes if isinstance(s, scene.Words) and s.x >= scene._PANEL[0]]
    assert all(s.anchor == "end" or s.x + scene.width_of(s.words, s.size) <= scene.WIDTH for s in words)
    lines = sorted({s.y for s in words})
    assert min(below - above for above, below in pairwise(lines)) >= 12 and lines[-1] <= scene.HEIGHT - 8


@pytest.mark.parametrize("game", GAMES)
def test_scene__nothing_overlaps_whoever_looks(game):
    for seed in range(2):
        for engine in positions(game, seed, every=7):
            snapshot = engine.snapshot(0)
            for view, lang in ((None, "en"), (seed, "ru")):
                check_apart(snapshot, view, lang)


@pytest.mark.parametrize("lang", ["en", "ru"])
@pytest.mark.parametrize("game", GAMES)
def test_scene__words_stay_in_their_chips_and_in_the_panel(game, lang):
    scene, font = domino_env.render.scene, domino_env.render.pixels._font
    left, right = scene._PANEL
    for engine in positions(game, seed=6, every=19):
        snapshot = engine.snapshot(0) | {"deal_index": 12345}
        lines = {}
        shapes = scene.scene_of(snapshot, lang=lang)
        for before, shape in pairwise(shapes):
            if isinstance(shape, scene.Words):
                length = font(shape.size, lang).getlength(shape.words)
                if shape.x >= left:
                    lines[shape.y] = lines.get(shape.y, 0) + length
                    assert length <= right - shape.x or shape.anchor == "end"
                else:
                    assert length <= before.w
        assert max(lines.values()) <= right - left
        assert len(lines) >= 4 + len(snapshot["score"])


@pytest.mark.parametrize("game", ROWS)
def test_scene__a_row_of_all_that_can_be_drawn_fits(game):
    engine, rng = engine_of(game), np.random.default_rng(4)
    longest = done = 0
    while not done:  # seat 0 draws whenever it can, the others never: the longest rows there are
        legal = engine.legal()[0]
        draws = legal[58] and engine.to_move()[0] == 0
        action = 58 if draws else 57 if legal[57] else int(rng.choice(np.flatnonzero(legal[:57])))
        done = engine.step(np.array([action]), autoreset=False)[1][0]
        snapshot = engine.snapshot(0)
        if max(map(len, snapshot["hands"])) > longest:
            longest = max(map(len, snapshot["hands"]))
            for view in (None, 0, 1):
                check_apart(snapshot, view, "en")
                assert max(map(len, text(snapshot, view).splitlines())) <= WIDTH
    assert longest >= engine.rules.hand_size


@pytest.mark.parametrize("game", GAMES)
def test_pictures__of_every_game_are_xml_and_pixels_of_one_size(game):
    for engine in positions(game, seed=5, every=45):
        snapshot = engine.snapshot(0)
        for lang in ("en", "ru"):
            root = ElementTree.fromstring(svg(snapshot, lang=lang))
            kinds = [group.get("class") for group in root.iter("{http://www.w3.org/2000/svg}g")]
            seen = sum(map(sum, snapshot["known"])) if "known" in snapshot else 0
            rows = sum(map(len, snapshot.get("rows", [])))
            assert kinds.count("seen") == seen + (seen > 0) and kinds.count("down") == rows - seen + (rows > seen)
            picture = rgb(snapshot, lang=lang)
            assert picture.shape == (720, 960, 3) and picture.dtype == np.uint8


@pytest.mark.parametrize("game", ["blitz", "blind_blitz", "blind"])
def test_docs__the_picture_of_each_game_is_of_the_deal_beside_it(game):
    folder = Path(domino_env.render.__file__).parents[2] / "docs"
    comment, line = (folder / f"{game}.txt").read_text(encoding="utf-8").splitlines()
    ply, plies = map(int, re.search(r"after (\d+) of (\d+) moves", comment).groups())
    deal = parse_deal(line)
    assert deal.rules.name == game and len(deal.moves) == plies
    hands = [" ".join(map(tile_name, hand)) for hand in deal.hands]
    stock = " ".join(map(tile_name, deal.stock)) or None
    moves = [deal.rules.action_name(move) for move in deal.moves]
    overrides = deal.rules.overrides()
    assert given(game, hands, " ".join(moves), deal.leader, stock, **overrides)["over"]
    picture = rgb(given(game, hands, " ".join(moves[:ply]), deal.leader, stock, **overrides))
    kept = np.asarray(importlib.import_module("PIL.Image").open(folder / f"{game}.png"))
    assert kept.shape == picture.shape
    assert np.abs(kept.astype(int) - picture).mean() < 1  # another Pillow may smooth its letters otherwise


def test_svg__a_tile_face_down_shows_its_pips_only_to_who_knows_it():
    snapshot = given(**BLIND, moves=TURNS)
    drawn = {}
    for view in (None, 0, 1):
        root = ElementTree.fromstring(svg(snapshot, view))
        groups = list(root.iter("{http://www.w3.org/2000/svg}g"))
        drawn[view] = [(group.get("class"), group.get("data-halves")) for group in groups]
    below = {("seen", "1-2")}  # what the looks of the tiles say, in the panel
    for view in (0, 1):
        assert {kind for kind in drawn[view] if kind[0] in ("down", "seen")} - below == {("seen", "1-1")}
        assert sum(kind == "back" for kind, _ in drawn[view]) == 3
    assert {kind for kind in drawn[None] if kind[0] == "down"} == {("down", n) for n in ("0-2", "1-3", "1-2")}


def test_rgb__russian_says_what_to_install_for_its_letters(monkeypatch):
    domino_env.render.pixels._font.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape("pip install domino-lab[render]")):
        rgb(given(**BLIND, moves=TURNS), lang="ru")
    assert rgb(given(**BLIND, moves=TURNS)).shape == (720, 960, 3)


@pytest.mark.parametrize("draw", [text, svg, rgb])
def test_pictures__refuse_an_unknown_language(draw):
    with pytest.raises(ValueError, match="lang must be one of en, ru, got 'de'"):
        draw(given(**BLIND, moves=TURNS), lang="de")

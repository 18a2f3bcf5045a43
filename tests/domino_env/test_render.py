"""The pictures of a table: the line (S3), its turns, text, SVG and pixels, and what a seat may not see."""

import ast
import copy
import json
import random
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import domino_env.render
from domino_env.render import Laid, line_of, place, rgb, svg, text
from domino_env.render.plain import _GRID, WIDTH
from domino_env.render.snake import PICTURE, PICTURE_HEIGHT
from domino_env.tiles import HIGH, LOW, NUM_TILES, tile_index, tile_name


def halves(tile):
    return int(LOW[tile]), int(HIGH[tile])


def snapshot_of(hands, moves, leader=0, pairs=True, rules="sport_book", deal=None):
    """Plays the moves of a deal given as text; hands are tiles as dealt."""
    seats = len(hands)
    left = [hand.split() for hand in hands]
    ends, seat, movers = None, leader, []
    for move in moves:
        movers.append(seat)
        if move != "pass":
            left[seat].remove(move[:-1])
            low, high = halves(tile_index(move[:-1]))
            if ends is None:
                ends = [low, high]
            else:
                side = "LR".index(move[-1])
                ends[side] = low + high - ends[side]
        seat = (seat + 1) % seats
    return {
        "rules": rules,
        "overrides": {},
        "seats": seats,
        "pairs": pairs,
        "leader": leader,
        "to_move": seat,
        "hands": left,
        "dealt": [hand.split() for hand in hands],
        "ends": ends,
        "moves": list(moves),
        "movers": movers,
        "over": deal is not None,
        "deal": deal,
        "deal_index": 2,
        "score": [0] * (2 if pairs else seats),
        "stream": {},
    }


def random_snapshot(rng, seats=4, hand_size=7, max_pip=6, pairs=True, plies=None, end="LR"):
    """A random deal after `plies` moves, or to its end. `end`: the ends that are used where there is a choice."""
    tiles = [tile for tile in range(NUM_TILES) if HIGH[tile] <= max_pip]
    rng.shuffle(tiles)
    dealt = [sorted(tiles[seat * hand_size : (seat + 1) * hand_size]) for seat in range(seats)]
    hands = [list(hand) for hand in dealt]
    leader = seat = rng.randrange(seats)
    ends, moves, deal = None, [], None
    while deal is None and (plies is None or len(moves) < plies):
        sides = "L" if ends is None or ends[0] == ends[1] else "LR"
        choices = [(t, e) for t in hands[seat] for e in sides if ends is None or ends["LR".index(e)] in halves(t)]
        if not choices:
            moves.append("pass")
        else:
            tile, side = rng.choice([choice for choice in choices if choice[1] in end] or choices)
            hands[seat].remove(tile)
            moves.append(tile_name(tile) + side)
            if ends is None:
                ends = list(halves(tile))
            else:
                ends["LR".index(side)] = sum(halves(tile)) - ends["LR".index(side)]
            blocked = not any(set(ends) & set(halves(t)) for hand in hands for t in hand)
            if blocked or not hands[seat]:
                pips = [sum(sum(halves(t)) for t in hand) for hand in hands]
                winner = seat % 2 if pairs else seat
                points = [sum(pips) * (side == winner) for side in range(2 if pairs else seats)]
                outcome = "block" if hands[seat] else "out"
                deal = {"outcome": outcome, "winner": winner, "points": points, "pips_left": pips}
                deal |= {"by": seat, "plies": len(moves)}
        seat = (seat + 1) % seats
    names = [" ".join(tile_name(t) for t in hand) for hand in dealt]
    return snapshot_of(names, moves, leader, pairs, deal=deal)


def random_chain(rng):
    """As many tiles of the set as happen to fit, all on one end."""
    end, left, chain = None, list(range(NUM_TILES)), []
    rng.shuffle(left)
    while (tile := next((t for t in left if end is None or end in halves(t)), None)) is not None:
        left.remove(tile)
        low, high = halves(tile)
        low, high = (low, high) if end in (None, low) else (high, low)
        chain.append((tile, low, high))
        end = high
    return chain


TABLES = {
    "pairs": {},
    "three": {"seats": 3, "pairs": False},
    "two": {"seats": 2, "hand_size": 14, "pairs": False},
    "small": {"hand_size": 2, "max_pip": 3},
    "eight": {"seats": 8, "hand_size": 3, "pairs": False},
}


# The line


@pytest.mark.parametrize(
    ("moves", "line"),
    [
        ([], ""),
        (["3-4L"], "3-4"),
        (["4-4L"], "4-4"),
        (["3-4L", "4-5R"], "3-4 4-5"),
        (["3-4L", "3-5L"], "5-3 3-4"),
        (["3-4L", "pass", "3-3L", "4-4R", "0-3L"], "0-3 3-3 3-4 4-4"),
        (["2-2L", "2-5L", "2-6R", "5-5L", "5-6L"], "6-5 5-5 5-2 2-2 2-6"),
        (["1-4L", "1-3L", "3-4L", "4-4L"], "4-4 4-3 3-1 1-4"),
        (["3-6L", "3-5L", "2-5L", "2-6L", "1-6R"], "6-2 2-5 5-3 3-6 6-1"),  # equal ends 6, 6, told apart
    ],
)
def test_line__lies_as_it_was_laid(moves, line):
    hands = [" ".join(move[:-1] for move in moves[seat::4] if move != "pass") for seat in range(4)]
    laid = line_of(snapshot_of(hands, moves))
    assert " ".join(f"{tile.left}-{tile.right}" for tile in laid) == line
    assert all(sorted((tile.left, tile.right)) == list(halves(tile.tile)) for tile in laid)
    assert all(moves[tile.ply][:-1] == tile_name(tile.tile) for tile in laid)


@pytest.mark.parametrize(
    ("moves", "ends", "message"),
    [
        (["3-4L", "3-4R"], [3, 4], "move 1 .* second time"),
        (["3-4L", "2-5R"], [3, 4], "move 1 .* right end 4"),
        (["3-4R"], [3, 4], "leads on the right"),
        (["3-4L", "4-5R"], [3, 4], r"ends \[3, 5\].*says \[3, 4\]"),
        (["3-4L"], None, "says None"),
        ([], [3, 4], "says"),
        (["3-4X"], [3, 4], "unknown move"),
    ],
)
def test_line__refuses_what_makes_none(moves, ends, message):
    snapshot = snapshot_of([""] * 4, []) | {"moves": moves, "movers": list(range(len(moves))), "ends": ends}
    with pytest.raises(ValueError, match=message):
        line_of(snapshot)


def test_line__of_random_deals_fits_the_ends():
    rng = random.Random(5)
    for _ in range(500):
        snapshot = random_snapshot(rng, plies=rng.randrange(40))
        line = line_of(snapshot)
        assert all(one.right == two.left for one, two in pairwise(line))
        assert len({tile.tile for tile in line}) == len(line) == sum(move != "pass" for move in snapshot["moves"])


# The turns


def cells_of(tile):
    return {(x, y) for x in range(tile.x, tile.x + tile.w) for y in range(tile.y, tile.y + tile.h)}


def halves_with(tile, pips):
    """Boxes of the halves that show `pips`; the whole tile for a double, which is met in its middle."""
    if tile.first == tile.second:
        return [(tile.x, tile.y, tile.x + tile.w, tile.y + tile.h)]
    first = tile.first == pips
    if tile.standing:
        cut = tile.h // 2
        return [(tile.x, tile.y + (0 if first else tile.h - cut), tile.x + tile.w, tile.y + (cut if first else tile.h))]
    cut = tile.w // 2
    return [(tile.x + (0 if first else tile.w - cut), tile.y, tile.x + (cut if first else tile.w), tile.y + tile.h)]


def touch(one, two):
    dx = max(one[0], two[0]) - min(one[2], two[2])
    dy = max(one[1], two[1]) - min(one[3], two[3])
    return (dx == 0 and dy < 0) or (dy == 0 and dx < 0)


def check_snake(line, grid, height):
    snake = place(line, grid)
    assert [tile.ply for tile in snake.tiles] == [tile.ply for tile in line]
    cells = [cells_of(tile) for tile in snake.tiles]
    union = set().union(*cells)
    assert len(union) == sum(map(len, cells)), "two tiles lie on one cell"
    assert all(-grid.width // 2 <= x < grid.width // 2 for x, _ in union)
    assert all(abs(y + 0.5 - grid.thick / 2) < height / 2 for _, y in union)
    for tile, laid in zip(snake.tiles, line, strict=True):
        assert sorted((tile.first, tile.second)) == sorted((laid.left, laid.right))
    for one, two, laid in zip(snake.tiles, snake.tiles[1:], line, strict=False):
        meet = laid.right
        assert any(touch(a, b) for a in halves_with(one, meet) for b in halves_with(two, meet)), (one, two)
    return snake


@pytest.mark.parametrize(("grid", "height"), [(PICTURE, PICTURE_HEIGHT), (_GRID, 24)], ids=["picture", "text"])
def test_turns__thousands_of_deals_lie_on_the_board_without_overlap(grid, height):
    rng = random.Random(6)
    for i in range(2000):
        options = [{}, {"end": "L"}, {"end": "R"}, {"seats": 2, "hand_size": 14, "pairs": False}][i % 4]
        check_snake(line_of(random_snapshot(rng, **options)), grid, height)


@pytest.mark.parametrize(
    ("grid", "height"), [(PICTURE, PICTURE_HEIGHT + 2 * PICTURE.pitch), (_GRID, 24)], ids=["picture", "text"]
)
@pytest.mark.parametrize("backwards", [False, True])
def test_turns__one_arm_may_hold_the_whole_set(grid, height, backwards):
    rng = random.Random(7)
    longest = 0
    for _ in range(1000):
        chain = random_chain(rng)
        longest = max(longest, len(chain))
        line = [Laid(tile, left, right, ply) for ply, (tile, left, right) in enumerate(chain)]
        if backwards:
            line = [Laid(t.tile, t.right, t.left, t.ply) for t in reversed(line)]
        check_snake(line, grid, height)
    assert longest == NUM_TILES


def test_turns__what_lies_stays_where_it_is():
    rng = random.Random(8)
    for _ in range(50):
        whole = random_snapshot(rng)
        before = {}
        for plies in range(len(whole["moves"]) + 1):
            hands = [" ".join(hand) for hand in whole["dealt"]]
            snake = place(line_of(snapshot_of(hands, whole["moves"][:plies], whole["leader"])))
            after = {tile.ply: tile for tile in snake.tiles}
            assert before.items() <= after.items()
            before = after


def test_turns__mirror_of_a_line_is_the_picture_turned_by_half_a_circle():
    rng = random.Random(9)
    for _ in range(200):
        line = line_of(random_snapshot(rng))
        mirror = [Laid(tile.tile, tile.right, tile.left, tile.ply) for tile in reversed(line)]
        turned = {
            (t.ply, -t.x - t.w, PICTURE.thick - t.y - t.h, t.w, t.h, t.second, t.first) for t in place(line).tiles
        }
        assert {(t.ply, t.x, t.y, t.w, t.h, t.first, t.second) for t in place(mirror).tiles} == turned


def test_turns__doubles_lie_across_the_row_and_the_lead_in_the_centre():
    snapshot = snapshot_of(["3-4 1-1", "4-4", "1-4", ""], ["3-4L", "4-4R", "1-4R", "pass", "1-1R"])
    tiles = place(line_of(snapshot)).tiles
    assert [(t.x, t.y, t.w, t.h) for t in tiles] == [(-2, 0, 4, 2), (2, -1, 2, 4), (4, 0, 4, 2), (8, -1, 2, 4)]
    assert place([]) == ([], None)


# Text

HANDS = ["3-4 0-0 1-6", "4-4 2-3 5-6", "0-4 1-1 2-2", "0-3 6-6 0-5"]
MOVES = ["3-4L", "4-4R", "0-4R", "0-3L", "pass"]
OPEN = """\
sport_book   deal 3   seats 0+2  0 : 0  seats 1+3

                                      seat_2
                                   [1|1][2|2]




  seat_1                                   ╭4╮                          seat_3
  [2|3]                        L◂[0|3][3|4]├─┤[4|0]▸R                   [6|6]
  [5|6]                                    ╰4╯                          [0|5]




                            ▶ seat_0 to move · leads
                                   [0|0][1|6]

last moves  0:3-4L 1:4-4R 2:0-4R 3:0-3L
"""


def tiles_in(page):
    """All lying tiles of a text, halves in ascending order."""
    return sorted("-".join(sorted(pair)) for pair in re.findall(r"\[(\d)\|(\d)\]", page))


def test_text__golden_table():
    assert text(snapshot_of(HANDS, MOVES[:4])) == OPEN


def test_text__says_who_moves_leads_passes_and_has_none_of_a_suit():
    page = text(snapshot_of(HANDS, [*MOVES[:4], "pass"]))
    assert "seat_0 · leads · pass · no 0" in page
    assert "▶ seat_1" in page and page.count("▶") == 1
    assert page.splitlines()[-1].endswith("3:0-3L 0:pass")


@pytest.mark.parametrize("table", TABLES)
def test_text__shows_every_hand_and_the_ends_within_80_columns(table):
    rng = random.Random(10)
    for _ in range(60):
        snapshot = random_snapshot(rng, **TABLES[table], plies=rng.randrange(40))
        page = text(snapshot)
        assert max(map(len, page.splitlines())) <= WIDTH
        assert all(f"seat_{seat}" in page for seat in range(snapshot["seats"]))
        hands = [name for hand in snapshot["hands"] for name in hand]
        lying = [tile_name(t.tile) for t in place(line_of(snapshot), _GRID).tiles if not t.standing]
        assert tiles_in(page) == sorted(hands + lying)
        marks = re.findall("[LR]◂|[▸▴▾][LR]", page)
        assert sorted(re.sub("[◂▸▴▾]", "", mark) for mark in marks) == (["L", "R"] if snapshot["ends"] else [])
        assert ("to move" in page or page.count("▶") == 1) != snapshot["over"]


def test_text__opens_one_hand_only():
    page = text(snapshot_of(HANDS, MOVES[:4]), view=1)
    assert tiles_in(page) == sorted(["2-3", "5-6", "0-3", "3-4", "0-4"])
    assert page.count("[░░░]") == 6
    assert page.splitlines()[-4].split() == ["seat_1"]  # at the bottom
    assert page == text(snapshot_of(HANDS, MOVES[:4]), view=np.int64(1))


def test_text__result_of_the_deal():
    deal = {"outcome": "out", "winner": 0, "points": [23, 0], "pips_left": [9, 12, 0, 11], "by": 2, "plies": 4}
    snapshot = snapshot_of(HANDS, MOVES[:4], deal=deal)
    assert text(snapshot).splitlines()[-2:] == [
        "seat_2 is out   seats 0+2 win",
        "points 23 : 0   pips left 9 12 0 11",
    ]
    assert "▶" not in text(snapshot)
    deal |= {"outcome": "block", "winner": None, "points": [0, 0], "by": 1}
    assert "blocked by seat_1   nobody wins\npoints 0 : 0" in text(snapshot)
    single = snapshot_of(HANDS, MOVES[:4], pairs=False, deal=deal | {"winner": 3, "points": [-1, -1, -1, 3]})
    assert "seat_3 wins\npoints -1 : -1 : -1 : 3" in text(single)
    guard = deal | {"outcome": "guard", "by": None}
    assert "stopped   nobody wins" in text(snapshot_of(HANDS, MOVES[:4], deal=guard))


def test_text__colours_change_nothing_but_colours():
    rng = random.Random(11)
    for view in (None, 2):
        snapshot = random_snapshot(rng, plies=20)
        coloured = text(snapshot, view, color=True)
        assert "\033[" in coloured and "\033[" not in text(snapshot, view)
        plain = re.sub(r"\033\[[\d;]*m", "", coloured)
        assert [line.rstrip() for line in plain.splitlines()] == text(snapshot, view).splitlines()


def test_text__speaks_two_languages_and_names_them():
    snapshot = snapshot_of(HANDS, MOVES[:4])
    assert "ходит · заход" in text(snapshot, lang="ru")
    with pytest.raises(ValueError, match="lang must be one of en, ru, got 'de'"):
        text(snapshot, lang="de")


# SVG


def shapes_of(page):
    root = ElementTree.fromstring(page)
    space = "{http://www.w3.org/2000/svg}"
    faces = [group for group in root.iter(f"{space}g") if group.get("class") == "tile"]
    backs = [group for group in root.iter(f"{space}g") if group.get("class") == "back"]
    return root, faces, backs, ["".join(node.itertext()) for node in root.iter(f"{space}text")]


@pytest.mark.parametrize("table", TABLES)
def test_svg__is_xml_that_needs_nothing_else_and_shows_all(table):
    rng = random.Random(12)
    for plies in (0, 1, 9, None):
        snapshot = random_snapshot(rng, **TABLES[table], plies=plies)
        page = svg(snapshot)
        root, faces, backs, words = shapes_of(page)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "href" not in page and page.count("http") == 1  # the namespace itself
        assert {f"seat_{seat}" for seat in range(snapshot["seats"])} <= set(words)
        assert "leads" in words
        assert ("L" in words and "R" in words) == bool(snapshot["moves"])
        drawn = ["-".join(sorted(face.get("data-halves").split("-"))) for face in faces]
        for name in [name for hand in snapshot["hands"] for name in hand]:
            assert name in drawn
        assert not backs
        for face in faces:
            pips = sum(map(int, face.get("data-halves").split("-")))
            assert len(face.findall("{*}circle")) == pips


def test_svg__hidden_hands_are_backs_and_not_in_the_document():
    snapshot = snapshot_of(HANDS, MOVES[:4])
    _, faces, backs, _ = shapes_of(svg(snapshot, view=1))
    names = {"-".join(sorted(face.get("data-halves").split("-"))) for face in faces}
    assert names == {"2-3", "5-6", "3-4", "4-4", "0-4", "0-3"}
    assert len(backs) == 6


def boxes_of(snapshot):
    """Boxes of all tiles on the table, those of the panel left out."""
    scene = domino_env.render.scene
    shapes = [shape for shape in scene.scene_of(snapshot) if isinstance(shape, scene.Face | scene.Back)]
    return [(s.x, s.y, s.x + s.w, s.y + s.h) for s in shapes if s.x < scene._PANEL[0]]


def test_scene__tiles_never_overlap_and_stay_on_the_table():
    rng = random.Random(13)
    for i in range(400):
        options = list(TABLES.values())[i % len(TABLES)]
        snapshot = random_snapshot(rng, **options, end=("LR", "L", "R")[i % 3], plies=rng.choice([0, 5, 20, None]))
        boxes = np.array(boxes_of(snapshot))
        assert boxes.min() > 16 and boxes[:, 2].max() < 738 and boxes[:, 3].max() < 704
        low, high = boxes[:, None, :2], boxes[:, None, 2:]
        apart = ((low >= boxes[None, :, 2:] - 1e-9) | (boxes[None, :, :2] >= high - 1e-9)).any(axis=2)
        assert (apart | np.eye(len(boxes), dtype=bool)).all()


def test_scene__a_line_on_one_arm_is_drawn_smaller_rather_than_over_a_hand():
    rng = random.Random(14)
    chain = next(chain for chain in iter(lambda: random_chain(rng), None) if len(chain) == NUM_TILES)
    low_first = chain[0][1] <= chain[0][2]
    moves = [tile_name(tile) + ("R" if i and low_first else "L") for i, (tile, _, _) in enumerate(chain)]
    hands = [" ".join(move[:-1] for move in moves[seat::2]) for seat in range(2)]
    boxes = np.array(boxes_of(snapshot_of(hands, moves, pairs=False)))
    assert boxes.shape == (NUM_TILES, 4)
    assert boxes[:, 1].min() >= 136 and boxes[:, 3].max() <= 584


# Pixels


@pytest.mark.parametrize("table", TABLES)
def test_rgb__one_shape_for_every_state_and_another_picture_for_each(table):
    rng = random.Random(15)
    whole = random_snapshot(rng, **TABLES[table])
    hands = [" ".join(hand) for hand in whole["dealt"]]
    seen = set()
    for plies in range(len(whole["moves"]) + 1):
        picture = rgb(snapshot_of(hands, whole["moves"][:plies], whole["leader"], whole["pairs"]))
        assert picture.shape == (720, 960, 3) and picture.dtype == np.uint8
        assert picture.flags.writeable and picture.flags.c_contiguous
        seen.add(picture.tobytes())
    assert len(seen) == len(whole["moves"]) + 1
    assert rgb(whole).shape == (720, 960, 3)


@pytest.mark.parametrize("size", [(960, 720), (320, 240), (333, 777), (1920, 1080), (16, 16)])
def test_rgb__any_size(size):
    assert rgb(snapshot_of(HANDS, MOVES[:4]), size=size).shape == (size[1], size[0], 3)


@pytest.mark.parametrize("size", [(0, 720), (960, -1), (960.0, 720), (960,), 960, (15, 16)])
def test_rgb__refuses_a_size_that_is_none(size):
    with pytest.raises(ValueError, match="size must be"):
        rgb(snapshot_of(HANDS, MOVES[:4]), size=size)


def test_rgb__writing_into_a_picture_changes_no_other():
    snapshot = snapshot_of(HANDS, MOVES[:4])
    first = rgb(snapshot)
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(rgb(snapshot), kept)


def test_rgb__says_what_to_install_without_pillow(monkeypatch):
    for name in ("PIL", "PIL.Image", "PIL.ImageDraw", "PIL.ImageFont"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=re.escape("pip install domino-lab[render]")):
        rgb(snapshot_of(HANDS, MOVES[:4]))
    assert svg(snapshot_of(HANDS, MOVES[:4])).startswith("<svg")


# All of them

RENDERERS = {"text": text, "colour": lambda s, view=None: text(s, view, color=True), "svg": svg, "rgb": rgb}


def same(one, two):
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two


@pytest.mark.parametrize("name", RENDERERS)
@pytest.mark.parametrize("table", TABLES)
def test_hidden_hands__do_not_leak(name, table):
    """Any other deal of the hidden tiles, same sizes, gives the very same picture."""
    draw, rng = RENDERERS[name], random.Random(16)
    for _ in range(6):
        snapshot = random_snapshot(rng, **TABLES[table], plies=rng.randrange(9))
        view = rng.randrange(snapshot["seats"])
        other = copy.deepcopy(snapshot)
        pool = [t for t in map(tile_name, range(NUM_TILES)) if t not in snapshot["hands"][view]]
        rng.shuffle(pool)
        for seat in range(snapshot["seats"]):
            if seat != view:
                other["hands"][seat] = [pool.pop() for _ in other["hands"][seat]]
                other["dealt"][seat] = ["6-6"] * len(other["dealt"][seat])
        other["stream"] = {"key": 1}
        assert same(draw(snapshot, view), draw(other, view))
        if len(snapshot["hands"][view]) and snapshot["hands"] != other["hands"]:
            assert not same(draw(snapshot, "all"), draw(other, "all"))


@pytest.mark.parametrize("name", RENDERERS)
def test_pictures__same_snapshot_same_picture_and_the_snapshot_stays(name):
    draw, rng = RENDERERS[name], random.Random(17)
    for _ in range(5):
        snapshot = random_snapshot(rng)
        kept = copy.deepcopy(snapshot)
        for view in (None, "all", 0, 3):
            assert same(draw(snapshot, view), draw(json.loads(json.dumps(snapshot)), view))
        assert same(draw(snapshot, None), draw(snapshot, "all"))
        assert snapshot == kept


@pytest.mark.parametrize("name", RENDERERS)
@pytest.mark.parametrize("view", [4, -1, True, "seat_0", 1.0])
def test_pictures__refuse_an_unknown_view(name, view):
    with pytest.raises(ValueError, match=r'view must be None, "all" or a seat 0\.\.3'):
        RENDERERS[name](snapshot_of(HANDS, MOVES[:4]), view)


def test_pictures__refuse_a_table_of_nine():
    with pytest.raises(ValueError, match="9 seats"):
        text(snapshot_of([""] * 9, [], pairs=False))


# The room


def test_room__knows_snapshots_and_tiles_and_needs_pillow_only_to_draw():
    folder = Path(domino_env.render.__file__).parent
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in names:
                assert not module.startswith(("PIL", "agents", "experiments"))
                if module.startswith("domino_env"):
                    assert module.startswith(("domino_env.render", "domino_env.tiles"))
    code = "import sys, domino_env.render; sys.exit('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=folder.parents[1], check=False).returncode == 0

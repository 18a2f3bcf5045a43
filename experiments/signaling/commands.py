"""`domino signal …`: what moves tell, to whom, who listens, and what it is worth.

Networks are measured as they play when they draw their moves by their own probabilities: then beliefs that read these
are exact. `--greedy` measures the player that always makes the likeliest move.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.console import asked_rules, output, print_json, progress_bar, stdout_kept
from experiments.files import check_place, locked
from experiments.signals import undisturbed

if TYPE_CHECKING:
    from domino_env.rules import Rules
    from experiments.signaling.page import Sheet
    from experiments.signaling.players import Seats

app = typer.Typer(
    help="What moves tell, to whom, who listens, and what it is worth: implicit signals, by exact beliefs.",
    epilog="docs/signals.md says what each figure is. A player is an agent's name or a run. Commands have examples.",
    rich_markup_mode="rich",
)

SCATTER = 14.0  # points by which boards of a double-six set scatter, about: standard deviation of a difference

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all chance in the command.")]
Greedy = Annotated[
    bool,
    typer.Option("--greedy", help="Networks always make their likeliest move; left out: they draw by probabilities."),
]
RulesName = Annotated[
    str | None,
    typer.Option("--rules", help="The game; left out: that of the first run, else sport_book."),
]
Player = Annotated[str, typer.Argument(metavar="PLAYER", help="A run, a checkpoint, or an agent's name.")]
ReferenceName = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="PLAYER",
        help="An innocent player, or uniform; left out: the run's deaf twin if it has one, else planted:strength=0.",
    ),
]
TilesList = Annotated[
    str | None,
    typer.Option("--tiles", metavar="N,N,…", help="Tiles on the line before the decisions; left out: 8, 10, … 16."),
]


@contextlib.contextmanager
def _working(as_json: bool, what: str, folder: Path | None = None) -> Iterator[Any]:
    """Progress on standard error; a player that fails is exit code 1, and Ctrl-C says how to go on."""
    from experiments.evaluate import AgentError

    with stdout_kept(as_json), progress_bar(what) as show:
        try:
            yield show
        except AgentError as error:
            raise typer.TyperException(str(error)) from error
        except KeyboardInterrupt:
            if folder is not None:
                print(f"interrupted; the same command goes on with the matches in {folder}", file=sys.stderr)
            raise


def _answer(result: dict[str, Any], sheets: Sequence[Sheet], as_json: bool, lines: Sequence[str] = ()) -> None:
    """Print one JSON object, or tables and lines."""
    if as_json:
        print_json(result)
        return
    from rich.markup import escape
    from rich.table import Table

    out = output()
    for sheet in sheets:
        table = Table(title=escape(sheet.title), title_justify="left")
        for number, name in enumerate(sheet.head):
            table.add_column(escape(name), justify="left" if number == 0 else "right", overflow="fold")
        for row in sheet.rows:
            table.add_row(*map(escape, row))
        out.print(table)
        lines = [*lines, *sheet.notes]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _game(rules: str | None, players: Sequence[str]) -> Rules:
    from experiments.signaling.players import game_of

    return game_of(players, None if rules is None else asked_rules(rules))


def _tiles(text: str | None, game: Rules, every: bool = False) -> tuple[int, ...]:
    from experiments.signaling.players import tiles_for

    if text is None:
        return tiles_for(game, every)
    most = game.num_tiles - game.leftover - 1
    found = [int(word) if word.strip().isdecimal() else -1 for word in text.split(",")]
    if not all(0 <= number <= most for number in found):
        raise ValueError(f"--tiles {text!r} must be numbers of 0..{most} with commas between them, such as 10,12,14")
    return tuple(sorted(set(found)))


def _recorded(seats: Seats, player: str, deals: int, seed: int, tiles: Sequence[int] | None) -> Any:
    """The player that can be asked, and deals that it plays against itself."""
    one = seats.asked(player)
    return one, _record(one, seats.rules, deals, seed, tiles)


def _record(player: Any, game: Rules, deals: int, seed: int, tiles: Sequence[int] | None, progress: Any = None) -> Any:
    """Deals that a player plays against itself, with decisions in them."""
    from experiments.signaling.record import play

    record = play(player.agent, game, deals, seed, tiles=tiles, progress=progress)
    if not len(record.moments):
        raise ValueError(f"no decision with so many tiles on the line in {deals:,} deals: take more, or other --tiles")
    return record


def _opponents(pool: str) -> list[str]:
    """The names in --pool."""
    from experiments.signaling.players import each_once, split

    names = split([pool])
    if not names:
        raise ValueError("--pool is an empty list: name opponents, such as greedy,club")
    each_once(names, "opponent", "for all count alike")
    return names


def _seats(game: Rules, greedy: bool) -> Seats:
    from experiments.signaling.players import Seats

    return Seats(game, greedy)


def _part(show: Any, number: int, parts: int) -> Any:
    """Progress of one of several parts, in thousandths of all; None where nobody looks."""
    if show is None:
        return None
    return lambda done, total: show(round(1000 * (number + done / max(total, 1)) / parts), 1000)


def _head(experiment: str, game: Rules, seed: int, **more: Any) -> dict[str, Any]:
    return {"experiment": experiment, "rules": game.title, "seed": seed, **more}


# -- experiments ------------------------------------------------------------------------------------------------------


@app.command()
def e0(
    deals: Annotated[int, typer.Option(min=2, help="Of each table.")] = 300,
    quick: Annotated[
        bool, typer.Option("--quick", help="Of the small game only the deals of one hand, not all of them.")
    ] = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Whether the measures measure: players whose signals are known. Exit code 1 unless all controls hold.

    Example: domino signal e0 --deals 300

    Example: domino signal e0 --quick --deals 150 --json
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.players import tiles_for
        from experiments.signaling.validity import TILES, validity
    game = _game(rules, ())
    if not set(TILES) <= set(tiles_for(game, every=True)):
        raise ValueError(
            f"controls look at decisions with {TILES[0]} tiles on the line of a double-six set; in {game.title} too "
            "few have anything to tell. They are of the measures: those of sport_book hold for it, too"
        )
    with _working(as_json, "parts") as show:
        found = validity(game, deals=deals, seed=seed, whole=not quick, progress=show)
    plain = found.to_dict()
    result = _head("e0", game, seed, deals=deals, holds=found.holds, rows=found.rows(), doses=plain["doses"])
    _answer(result, sheets.of_validity(found), as_json)
    if not found.holds:
        raise typer.Exit(1)


@app.command()
def e1(
    players: Annotated[
        list[str] | None, typer.Argument(metavar="PLAYER...", help="Left out: random greedy club.")
    ] = None,
    reference: ReferenceName = None,
    deals: Annotated[int, typer.Option(min=2, help="That each plays against itself.")] = 300,
    of: Annotated[int, typer.Option(min=1, help="Whose hand: 1 left opponent, 2 partner, 3 right.")] = 2,
    tiles: TilesList = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """How much is known of a hand, step by step: by the rules, by legal moves, by a reference, by the players' own way.

    Example: domino signal e1 random greedy club --reference greedy --deals 50

    Example: domino signal e1 runs/hearing-1-20261130-120000 --deals 50 --tiles 10,12,14
    """
    with undisturbed():
        from experiments.signaling import ladder, sheets
    names = list(players or ladder.PLAYERS)
    game = _game(rules, names)
    chosen, found, called, seats = _tiles(tiles, game), [], {}, _seats(game, greedy)
    recorded = [_recorded(seats, name, deals, seed, chosen) for name in names]
    with _working(as_json, "positions") as show:
        total, before = sum(len(record.moments) for _, record in recorded), 0
        for one, record in recorded:
            other = seats.reference(one, reference)
            called[one.name] = other.name

            def told(done: int, _: int, before: int = before) -> None:
                if show is not None:
                    show(before + done, total)

            options: dict[str, Any] = {"of": of, "floor": one.reading_floor, "reference_floor": other.floor}
            options |= {"player": one.name, "progress": told}
            found.append(ladder.climb(record.moments, record.table, other.model, **options))
            before += len(record.moments)
    result = _head("e1", game, seed, deals=deals, references=called, ladders=[one.to_dict() for one in found])
    _answer(result, sheets.of_ladders(found), as_json, [f"references: {', '.join(dict.fromkeys(called.values()))}"])


@app.command()
def e2(
    hearing: Annotated[
        str | None,
        typer.Argument(metavar="[HEARING]", help="A run trained with deaf seats, or a search player."),
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="OTHER", help="Who is team B; left out: the same player.")
    ] = None,
    retrained: Annotated[
        list[str] | None,
        typer.Option("--retrained", metavar="RUN,RUN…", help="Trainings in which all hear, in place of HEARING."),
    ] = None,
    deaf: Annotated[
        list[str] | None,
        typer.Option("--deaf", metavar="RUN,RUN…", help="As many trainings in which nobody hears."),
    ] = None,
    boards: Annotated[int, typer.Option(min=2, help="Duplicate boards of each of the four cells.")] = 4000,
    claim: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Points a deal that shall be seen: too few boards of a double-six set are refused before they are "
            "played, and where they turn out too few in any game, a line says so.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep the matches there, and go on from those in it.")
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw the figures, as a PNG picture.")] = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What reading is worth in points, and being read: four matches on the same boards, with ears and without.

    Of a network that was trained with deaf seats the ears are shut to all others at once; search players
    (champion-search, lookahead:model=RUN), planted and club stop reading seat by seat.

    Example: domino signal e2 runs/hearing-1-20261130-120000 --against club --boards 200

    Example: domino signal e2 planted:strength=4,listen=3 --boards 200
    """
    if png is not None:
        check_place(png)
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.players import each_once, split, without_opponents, without_partner
        from experiments.signaling.report import ready
        from experiments.signaling.value import draw_values, square, worlds
    trained, shut = split(retrained or []), split(deaf or [])
    if (hearing is None) == (not trained):
        raise ValueError("name HEARING, one player with ears that can be shut; or --retrained RUN,RUN --deaf RUN,RUN")
    if bool(trained) != bool(shut) or len(trained) != len(shut):
        raise ValueError(f"--retrained has {len(trained)} runs and --deaf {len(shut)}; they go together one by one")
    if trained and claim is not None:
        raise ValueError("--claim is of HEARING on its boards; of --retrained trainings are the units, so leave it out")
    each_once([*trained, *shut])
    game = _game(rules, [hearing] if hearing is not None else trained)
    _check_claim(claim, boards, game)

    seats = _seats(game, greedy)

    def pair(name: str, partner: bool) -> tuple[Any, Any]:
        """A player, and the same without ears for its partner, or for its opponents."""
        one = seats(name)
        twins = seats.twins(one)
        return one.side, (without_partner if partner else without_opponents)(twins).side

    if hearing is not None:
        hear_a, deaf_a = pair(hearing, True)
        hear_b, deaf_b = pair(against or hearing, False)
        folder = None if out is None else ready(out)
        with _working(as_json, "boards", folder) as show:
            found: Any = square(
                hear_a, deaf_a, hear_b, deaf_b, game, boards, seed, claim=claim, folder=folder, progress=show
            )
    else:
        hear, without = ([seats(name).side for name in names] for names in (trained, shut))
        team_b: tuple[list[Any], list[Any]] = (hear, without)
        if against is not None:
            one, other = pair(against, False)
            team_b = ([one] * len(hear), [other] * len(hear))
        folder = None if out is None else ready(out)
        with _working(as_json, "boards", folder) as show:
            found = worlds(hear, without, *team_b, game, boards, seed, folder=folder, progress=show)
    if png is not None:
        draw_values(found, png)
    result = _head("e2", game, seed) | found.to_dict()
    _answer(result, sheets.of_square(found), as_json)


def _check_claim(claim: float | None, boards: int, game: Rules) -> None:
    """Refuse boards that will not bear a claim, before they are played."""
    from experiments.signaling.statistics import boards_needed

    if claim is None:
        return
    if not 0 < claim < float("inf"):
        raise ValueError(f"--claim {claim:g} must be points above 0")
    needed = boards_needed(SCATTER, claim)
    if game.num_tiles == 28 and boards < needed:
        raise ValueError(
            f"--boards {boards} are too few for a claim of {claim:g} points a deal: it needs about {needed:,}, for "
            f"boards scatter by some {SCATTER:g} points"
        )


@app.command()
def e3(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Trainings of one method.")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", metavar="NAME=RUN,RUN,…", help="Trainings of a method; may be given again."),
    ] = None,
    pool: Annotated[str, typer.Option(metavar="PLAYER,…", help="Fixed opponents.")] = "greedy,club",
    boards: Annotated[int, typer.Option(min=2, help="Duplicate boards of each match.")] = 2000,
    deals: Annotated[int, typer.Option(min=0, help="Of each training, for the distances; 0: no distances.")] = 60,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep the matches there, and go on from those in it.")
    ] = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Whether trainings understand each other: partners of different trainings, the gap, and how far apart they mean.

    Example: domino signal e3 planted:strength=2 planted:strength=4 planted:strength=8 --boards 100 --deals 5

    Example: domino signal e3 --method a=random,double_first --method b=planted,planted:listen=2 --boards 99 --deals 0
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.cross_play import cross_play
        from experiments.signaling.players import each_once, split
        from experiments.signaling.report import apart, ready
    methods: dict[str, list[str]] = {"all": list(runs)} if runs else {}
    for word in method or []:
        name, sign, rest = word.partition("=")
        if not sign or not name or name in methods:
            raise ValueError(f"--method {word!r}: write NAME=RUN,RUN,…, each name once")
        methods[name] = split([rest])
    if not methods:
        raise ValueError("which trainings? name RUN RUN …, or --method NAME=RUN,RUN,…")
    for name, group in methods.items():
        if len(group) < 2:
            raise ValueError(f"cross-play needs two trainings or more of a method, and {name} has {len(group)}")
    every, against = [one for group in methods.values() for one in group], _opponents(pool)
    game = _game(rules, every)
    each_once(every)
    seats = _seats(game, greedy)
    found_one = seats.asked if deals else seats
    seated = {name: [found_one(one) for one in group] for name, group in methods.items()}
    opponents = [seats(name).side for name in against]
    far = apart(seats, [one for group in seated.values() for one in group], deals, seed) if deals else None
    sides = {name: [one.side for one in group] for name, group in seated.items()}
    folder = None if out is None else ready(out)
    with _working(as_json, "cross-play", folder) as show:
        found = cross_play(sides, opponents, game, boards, seed, distances=far, folder=folder, progress=show)
    result = _head("e3", game, seed) | found.to_dict()
    _answer(result, sheets.of_cross_play(found), as_json)


@app.command()
def e4(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run with labelled_ends=true, or an agent's name.")],
    control: Annotated[str, typer.Option(metavar="RUN", help="Whom to hold beside it.")] = "planted:strength=0",
    deals: Annotated[int, typer.Option(min=2, help="That each plays against itself.")] = 500,
    tiles: TilesList = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Whether the free channel is used: what the side tells where both ends are the same suit.

    Example: domino signal e4 planted:strength=4 --rules "sport_book labelled_ends=true" --deals 30
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.ends import free_channel
    game = _game(rules, [run])
    if not game.labelled_ends:
        raise ValueError(
            f"{run} plays {game.title}, where left and right are one move if both ends are alike; train it with "
            "labelled_ends=true (domino train labelled), or for an agent by name give --rules "
            '"sport_book labelled_ends=true"'
        )
    chosen, found, seats = _tiles(tiles, game, every=True), [], _seats(game, greedy)
    with _working(as_json, "decisions") as show:
        for one, record in [_recorded(seats, name, deals, seed, None) for name in (run, control)]:
            found.append(free_channel(record, tiles=chosen, floor=one.reading_floor, seed=seed, progress=show))
    result = _head("e4", game, seed, player=found[0].to_dict(), control=found[1].to_dict())
    _answer(result, sheets.of_channel(*found), as_json)


@app.command()
def e9(
    player: Annotated[
        str | None, typer.Argument(metavar="[PLAYER]", help="Who is asked whether it follows the maxims.")
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(metavar="PLAYER,…", help="Whom it is compared with; left out: its deaf twin, greedy, uniform."),
    ] = None,
    base: Annotated[str, typer.Option(metavar="PLAYER", help="Who is made to follow them, for their points.")] = "club",
    boards: Annotated[int, typer.Option(min=2, help="Duplicate boards of each match.")] = 1000,
    deals: Annotated[int, typer.Option(min=2, help="That PLAYER plays against itself.")] = 2000,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The maxims that people teach: what each is worth in points, and whether a player follows it.

    Example: domino signal e9 club --boards 50 --deals 100
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.maxims import maxims
        from experiments.signaling.players import split
    if others and player is None:
        raise ValueError("--others are whom PLAYER is compared with: name PLAYER, too, or leave them out")
    named = [player] if player is not None else []
    game = _game(rules, [*named, base])
    record, compared, seats = None, dict[str, Any](), _seats(game, greedy)
    if player is not None:
        one, record = _recorded(seats, player, deals, seed, None)
        for name in split(others or []):
            compared[name] = seats.reference(one, name).model
        if not compared:
            twin = seats.reference(one)
            compared = {twin.name: twin.model, "greedy": seats("greedy").agent, "uniform": "uniform"}
    options: dict[str, Any] = {"base": seats(base).agent, "record": record, "others": compared or None}
    with _working(as_json, "matches") as show:
        found = maxims(game, boards, seed, **options, progress=show)
    _answer(_head("e9", game, seed) | found.to_dict(), sheets.of_maxims(found), as_json)


# -- measures ---------------------------------------------------------------------------------------------------------


@app.command()
def measure(
    player: Player,
    reference: ReferenceName = None,
    deals: Annotated[int, typer.Option(min=2, help="That it plays against itself.")] = 120,
    tiles: TilesList = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What its moves tell of its hand, to the partner and either opponent: I, floor, reference, ΔI, secrecy S, G.

    Example: domino signal measure runs/hearing-1-20261130-120000 --deals 60

    Example: domino signal measure planted:strength=4 --reference planted:strength=0 --tiles 12,14 --deals 60
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.information import measure as told
    game = _game(rules, [player])
    seats = _seats(game, greedy)
    one, record = _recorded(seats, player, deals, seed, _tiles(tiles, game))
    other = seats.reference(one, reference)
    with _working(as_json, "decisions") as show:
        floors = {"floor": one.reading_floor, "reference_floor": other.floor}
        found = told(record.moments, record.table, other.model, **floors, seed=seed, progress=show)
        result = _head("measure", game, seed) | _who(one, other) | found.to_dict()
    _answer(result, sheets.of_information(found), as_json, _said(one, other))


def _who(player: Any, reference: Any) -> dict[str, Any]:
    return {"player": player.name, "how": player.how, "reference": reference.name, "why_reference": reference.why}


def _said(player: Any, reference: Any) -> list[str]:
    return [
        f"{player.name}: its moves are {player.how}" if player.network is not None else f"player: {player.name}",
        f"reference: {reference.name}, {reference.why}",
    ]


@app.command()
def listen(
    player: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run trained with deaf seats, a search player, planted, club."),
    ],
    deals: Annotated[int, typer.Option(min=2, help="That it plays against itself.")] = 300,
    tiles: TilesList = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Whether a player listens: what changes in its play when what others chose is taken away and the board stays.

    Example: domino signal listen runs/hearing-1-20261130-120000 --deals 50

    Example: domino signal listen planted:strength=4,listen=3 --deals 50
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.listening import listening
    game = _game(rules, [player])
    seats = _seats(game, greedy)
    one = seats(player)
    twins = seats.twins(one)
    chosen = _tiles(tiles, game, every=True)
    found, parts = {}, 1 + len(twins)
    with _working(as_json, "listen") as show:
        record = _record(one, game, deals, seed, chosen, _part(show, 0, parts))
        options: dict[str, Any] = {"do": one.do, "floor": one.floor, "places": (1, 2, 3)}
        for number, (who, twin) in enumerate(twins.items(), 1):
            progress = _part(show, number, parts)
            found[who] = listening(record, one.agent, twin.agent, **options, progress=progress)
    heard = {who: one.to_dict() for who, one in found.items()}
    result = _head("listen", game, seed, player=one.name, how=one.how, deals=deals, without=heard)
    _answer(result, sheets.of_listening(found), as_json)


@app.command()
def decode(
    player: Player,
    reference: ReferenceName = None,
    of: Annotated[int, typer.Option(min=1, help="Whose hand: 1 left neighbour, 2 partner, 3 right.")] = 2,
    target: Annotated[
        list[str] | None, typer.Option(metavar="QUESTION", help="holds, double, void, count, longest; left out: all.")
    ] = None,
    deals: Annotated[int, typer.Option(min=2, help="That it plays against itself.")] = 120,
    tiles: TilesList = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What of another hand can be told from the moves: gain in log loss over the rules, and whether it comes true.

    Example: domino signal decode planted:strength=4 --deals 30 --target holds
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.decoding import TARGETS, decode as ask
    game = _game(rules, [player])
    seats = _seats(game, greedy)
    one, record = _recorded(seats, player, deals, seed, _tiles(tiles, game))
    other = seats.reference(one, reference)
    options: dict[str, Any] = {"of": of, "targets": target or TARGETS, "seed": seed}
    options |= {"floor": one.reading_floor, "reference_floor": other.floor}
    with _working(as_json, "decisions") as show:
        reference_model: Any = other.model
        found = ask(record.moments, list(record.table), reference_model, **options, progress=show)
    result = _head("decode", game, seed) | _who(one, other) | found.to_dict()
    _answer(result, sheets.of_decoding(found), as_json, _said(one, other))


@app.command()
def probe(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Deals in text, or the record of a match.")],
    target: Annotated[str, typer.Option(metavar="holds|double", help="A tile, or the double, of each suit.")] = "holds",
    of: Annotated[int, typer.Option(min=1, help="Whose hand: 1 left neighbour, 2 partner, 3 right.")] = 2,
    player: Annotated[
        str | None, typer.Option(metavar="PLAYER", help="Who played them, if known: the exact answer stands beside.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What the moves of people and foreign programs tell: a small network learns it from deals that were written down.

    500 deals at least; 20,000 and more are good.

    Example: domino signal probe deals.txt --target holds
    """
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.probe import check_deals, probe as learn
        from experiments.signaling.replayed import read_deals, replayed
    deals = read_deals(file)
    check_deals(len(deals))
    moments = replayed(deals)
    table, floor = None, 0.0
    if player is not None:
        from experiments.signaling.players import FLOOR

        # Whether it drew its moves by its probabilities is not known.
        table, floor = _seats(deals[0].rules, False).asked(player).agent, FLOOR
    with _working(as_json, "decisions") as show:
        found = learn(moments, target=target, of=of, table=table, floor=floor, seed=seed, progress=show)
    result = _head("probe", deals[0].rules, seed, file=str(file), decisions=len(moments)) | found.to_dict()
    _answer(result, sheets.of_probe(found), as_json)


@app.command()
def conventions(
    player: Player,
    reference: ReferenceName = None,
    deals: Annotated[int, typer.Option(min=2, help="That it plays against itself.")] = 300,
    least: Annotated[int, typer.Option(min=2, help="Decisions of a kind below which there is no figure.")] = 200,
    examples: Annotated[int, typer.Option(min=0, help="Deals that are shown with what the partner believes.")] = 3,
    boards: Annotated[
        int, typer.Option(min=0, help="Duplicate boards of each match for the points of a kind; 0: no points.")
    ] = 4000,
    pool: Annotated[str, typer.Option(metavar="PLAYER,…", help="Fixed opponents in these.")] = "greedy,club",
    worlds: Annotated[int, typer.Option(min=0, help="Worlds that judge the price of a move; 0: no price.")] = 200,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep the matches there, and go on from those in it.")
    ] = None,
    tiles: TilesList = None,
    png: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw these deals, as a PNG picture.")] = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The table of conventions: what each kind of move says of the hidden hand, who hears it, and a verdict.

    Beside it what choices of kinds tell by counts, and whether they say the same in all contexts.

    Points are what a team loses whose ears are closed to the kind; the price is by a critic, so of runs alone.

    Example: domino signal conventions planted:strength=4 --deals 20 --least 20 --examples 1 --boards 200
    """
    if png is not None:
        check_place(png)
    with undisturbed():
        from experiments.signaling import sheets
        from experiments.signaling.consistency import consistency
        from experiments.signaling.conventions import conventions as judge
        from experiments.signaling.examples import draw_examples
        from experiments.signaling.players import blind, deaf_to_mover, others, without_partner
        from experiments.signaling.report import ready
        from experiments.signaling.worth import worth
    game, against = _game(rules, [player]), _opponents(pool)
    seats = _seats(game, greedy)
    one, record = _recorded(seats, player, deals, seed, None)
    other = seats.reference(one, reference)
    lines, twins = _said(one, other), dict[str, Any]()
    try:
        twins = seats.twins(one)
    except ValueError as error:
        lines.append(f"who listens, and what that is worth, is not known: {error}")
    options: dict[str, Any] = {"tiles": _tiles(tiles, game, every=True), "least": least, "seed": seed}
    options["floor"] = max(one.reading_floor, one.floor, other.floor)
    options["deaf"] = deaf_to_mover(twins) if twins else None
    judged, points = None, None
    if worlds:
        try:
            options["price"] = judged = blind(one, other, game, worlds, seed)
            lines.append(f"prices: by the critic {judged.critic}, {judged.why}")
        except ValueError as error:
            lines.append(f"no prices: {error}")
    if boards and twins:
        opponents = [sitter.side for sitter in others(one, [seats(name) for name in against])]
        if not opponents:
            raise ValueError(
                f"--pool {pool} has nobody but {player}, which is left out of its own opponents: against itself a team "
                "wins 0 whatever it hears; name others"
            )
        if len(opponents) < len(against):
            lines.append(f"{player} is left out of its own opponents: against itself a team wins 0 whatever it hears")
        folder = None if out is None else ready(out)
        with _working(as_json, "boards", folder) as show:
            team = one.side, without_partner(twins).side
            points = worth(*team, opponents, game, boards, seed, least=least, folder=folder, progress=show)
        options["value"] = points.values
    with _working(as_json, "decisions") as show:
        found = judge(record, other.model, examples=examples, **options, progress=show)
        assert found.judged is not None
        told = consistency(found.judged, least=least, seed=seed)
    if png is not None:
        draw_examples(found.examples, png)
    result = _head("conventions", game, seed) | _who(one, other) | found.to_dict()
    result["consistency"] = told.to_dict()
    result["worth"] = None if points is None else points.to_dict()
    result["judge"] = None if judged is None else judged.to_dict()
    pages = sheets.of_conventions(found, brief=True) + sheets.of_consistency(told, brief=True)
    _answer(result, pages + ([] if points is None else sheets.of_worth(points)), as_json, lines)
    if not as_json:
        for example in found.examples:
            print(example.text(color=sys.stdout.isatty()))


# -- all of it --------------------------------------------------------------------------------------------------------


@app.command()
def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Runs or agents; the first is looked at, two are compared, three or more meet in cross-play.",
        ),
    ],
    reference: ReferenceName = None,
    deals: Annotated[int | None, typer.Option(min=2, help="For what a move tells; left out: 120.")] = None,
    boards: Annotated[int | None, typer.Option(min=2, help="Duplicate boards of each match; left out: 10,000.")] = None,
    pool: Annotated[str, typer.Option(metavar="PLAYER,…", help="Fixed opponents.")] = "greedy,club",
    worth: Annotated[
        int | None, typer.Option(min=2, help="Boards of each match for the points of a kind; left out: 4,000.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute: few deals, wide intervals.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where it is written; left out: runs/signals-RUN.")
    ] = None,
    greedy: Greedy = False,
    rules: RulesName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """All of it on one page: report.html needs no network; report.json and decisions.jsonl have every figure.

    Matches are kept in the folder: the same command again does not play them again.

    Example: domino signal report runs/hearing-1-20261130-120000 --out signals

    Example: domino signal report planted:strength=4,listen=3 --quick --out signals
    """
    with undisturbed():
        from experiments.signaling import report as reporting
        from experiments.signaling.players import each_once
    game = _game(rules, runs)
    seats, opponents = _seats(game, greedy), _opponents(pool)
    seated = [seats.asked(name) for name in runs]  # all that can be wrong is, before anything is written
    seats.reference(seated[0], reference)
    each_once(runs)
    for name in opponents:
        seats(name)
    sizes = reporting.QUICK if quick else reporting.USUAL
    if deals is not None:
        sizes = dataclasses.replace(sizes, deals=deals, more=max(deals, sizes.more))
    if boards is not None:
        sizes = dataclasses.replace(sizes, boards=boards)
    if worth is not None:
        sizes = dataclasses.replace(sizes, worth=worth)
    folder = out or reporting.default_out(runs[0])
    reporting.claim(folder)
    reporting.ready(folder)
    options: dict[str, Any] = {"reference": reference, "sizes": sizes, "seed": seed, "greedy": greedy}
    with (
        locked(folder, "another report; wait for it, or write elsewhere by --out"),
        _working(as_json, "report", folder) as show,
    ):
        found = reporting.report(runs, game, **options, pool=opponents, folder=folder, progress=show)
        written = found.write(folder)
    if as_json:
        print_json({"experiment": "report", "written": [str(path) for path in written], **found.to_dict()})
        return
    missing = [f'"{part.title}" is not in it: {part.missing}' for part in found.parts if part.missing]
    _answer({}, (), False, [*missing, f"Written: {', '.join(map(str, written))}"])

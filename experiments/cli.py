"""The `domino` command: train, sweep, compare, evaluate, benchmark, replay, play, tournament, solve, advise and more.

A user's mistake (an unknown name, a wrong type, a missing file, a folder that is no run) is one line on standard error
and exit code 2; an agent that fails is exit code 1, Ctrl-C is 130. With `--json` standard output holds one JSON object
and nothing else. What a command needs is imported when it runs, so that `domino rules` does not wait for torch.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from experiments.signals import undisturbed

#: Which extra brings which package; what is missing is named with its extra.
EXTRAS = {
    package: extra
    for extra, packages in {
        "train": "torch tensorboard safetensors yaml rich typer scipy networkx matplotlib choix",
        "search": "numba llvmlite",
        "export": "pyarrow",
        "render": "PIL pygame",
        "openspiel": "pyspiel open_spiel",
        "peers": "dominoes rlcard sb3_contrib stable_baselines3",
    }.items()
    for package in packages.split()
}


def _missing(error: ImportError) -> str | None:
    """The line that says which extra is missing; None where it is no package of an extra, and so a fault of ours."""
    if error.name is None:  # raised in words of our own
        return str(error)
    package = error.name.partition(".")[0]
    if package not in EXTRAS:
        return None
    extra = EXTRAS[package]
    return f"this needs {package}, which is not installed; install the extra {extra}: pip install 'domino-lab[{extra}]'"


@contextlib.contextmanager
def _heard() -> Iterator[None]:
    """A Ctrl-C that falls into a call back from C, where Python drops what is raised, comes again a moment later.

    Numba calls back so while it loads compiled code.
    """
    before = sys.unraisablehook

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            before(unraisable)
            return
        again = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = lost
    try:
        yield
    finally:
        sys.unraisablehook = before


try:
    with undisturbed():
        import typer
        from rich.table import Table

        from experiments.console import asked_rules, output, print_json, progress_bar, status_line, stdout_kept
        from experiments.files import check_place
        from experiments.signaling.commands import app as signal_app
except ModuleNotFoundError as error:
    if (hint := _missing(error)) is None:
        raise
    print(f"domino: {hint}", file=sys.stderr)
    raise SystemExit(2) from None
except KeyboardInterrupt:  # nobody is there yet to catch it
    print("domino: interrupted", file=sys.stderr)
    raise SystemExit(130) from None

if TYPE_CHECKING:
    from experiments.replay import MatchReplay, Replay

app = typer.Typer(
    name="domino",
    help="Partnership dominoes: train pairs, measure them on duplicate boards, replay deals.",
    epilog="Every command has an example: domino train --help. DOMINO_TRACEBACK=1 shows where an error arose.",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
benchmark_app = typer.Typer(
    help="How fast the engine and the trainer are, beside a yardstick and other people's programs.",
    rich_markup_mode="rich",
)
app.add_typer(benchmark_app, name="benchmark")
app.add_typer(signal_app, name="signal")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all chance in the command.")]
RulesName = Annotated[str, typer.Option("--rules", help="A preset's name; `domino rules` lists them.")]


def _version(wanted: bool) -> None:
    if not wanted:
        return
    import importlib.metadata  # it brings half the library along, and `domino rules` shall not wait for it

    try:
        print(f"domino-lab {importlib.metadata.version('domino-lab')}")
    except importlib.metadata.PackageNotFoundError:
        print("domino-lab, not installed: run from its source")
    raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


@app.command()
def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONFIG] [KEY=VALUE]...", help="A YAML file or the name of a shipped config, then values over it."
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with a run: its folder, or one of its checkpoints.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same as seed=N.")] = None,
    as_json: Json = False,
) -> None:
    """Train a player of any game by self-play and say what it wins.

    Example: domino train configs/quick.yaml seed=2 total_minutes=1

    Example: domino train --resume runs/quick-1-20261130-120000 total_minutes=6
    """
    from experiments import config

    words = list(words or [])
    if resume is not None:
        for word in words:
            if "=" not in word:
                raise ValueError(
                    f'"{word}": a resumed run keeps its own config; beside --resume only key=value is allowed'
                )
    named = resume is None and words and ("=" not in words[0] or Path(words[0]).is_file())
    path = config.find(words.pop(0)) if named else None
    for word in words:
        if "=" not in word:
            raise ValueError(f'"{word}" is neither the config (one file, named first) nor key=value')
    if path is None and resume is None:
        raise ValueError(
            f"which config? name a YAML file or one of {', '.join(config.shipped())}; see domino train --help"
        )
    if seed is not None:
        words.append(f"seed={seed}")
    with undisturbed():
        from experiments.train import train as run
    with stdout_kept(as_json):
        result = run(path, words, resume, json=as_json)
    if as_json:
        print_json(result)


@app.command()
def sweep(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A YAML of variants and seeds, or the name of a shipped sweep.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Over the file: a key of it (seeds=[1,2]), or one of every run's config."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=1024, help="Runs at a time, each a process; they change no result.")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where it is written; left out: runs/sweep-FILE.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same as seeds=[N].")] = None,
    as_json: Json = False,
) -> None:
    """Train several settings with several seeds, measure them alike, and print one table with intervals over seeds.

    The same command again goes on: finished runs stay, broken-off ones are resumed, failed ones are tried again.

    Example: domino sweep configs/sweeps/seeds.yaml total_minutes=1 --jobs 2

    Example: domino sweep algorithms seeds=[1,2,3] evaluate.boards=200 --out runs/algorithms
    """
    with undisturbed():
        from experiments import sweep as sweeps
    path = sweeps.find(file)
    given = [*(words or []), *([] if seed is None else [f"seeds=[{seed}]"])]
    folder = out or Path("runs") / f"sweep-{path.stem}"
    with stdout_kept(as_json):
        plan = sweeps.plan(path, given)
        try:
            table = sweeps.run(plan, folder, jobs, lambda line: print(line, file=sys.stderr, flush=True), progress_bar)
        except KeyboardInterrupt:
            print(f"interrupted; the same command goes on with {folder}", file=sys.stderr)
            raise
    if as_json:
        print_json(table)
    else:
        _show_sweep(table)
    if failed := len(table["failures"]):
        raise typer.TyperException(f"failed: {'; '.join(table['failures'])} ({failed}); the same command tries again")


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs, or of sweeps.")],
    by: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Group by this key of the configs; left out: by the config's name."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png", help="The picture; left out: compare.png, in the sweep's folder if it is one."
        ),
    ] = None,
    x: Annotated[str, typer.Option("--x", metavar="decisions|minutes", help="What the curves go along.")] = "decisions",
    as_json: Json = False,
) -> None:
    """Draw the learning curves of several runs, grouped, with bands over runs; beside it lie the same for TensorBoard.

    Example: domino compare runs/quick-1-20261130-120000 runs/quick-2-20261130-120500 --by learning_rate --out rates.png
    """
    with undisturbed():
        from experiments import compare as comparing
        from experiments.sweep import is_sweep
    place = out or (Path(runs[0]) if len(runs) == 1 and is_sweep(runs[0]) else Path()) / "compare.png"
    comparing.check_axis(x)
    check_place(place)
    with stdout_kept(as_json), status_line() as say:
        say("reading the logs")
        found = comparing.read_runs(runs, by)
        comparing.draw(found, place, x)
        scalars = comparing.write_scalars(found, place.with_suffix(".tensorboard"))
    if as_json:
        print_json({**found.to_dict(x), "out": place, "tensorboard": scalars})
    else:
        _show_comparison(found.to_dict(x), place, scalars)


@app.command()
def evaluate(
    a: Annotated[str, typer.Argument(metavar="A", help="An agent's name (`domino agents`) or a checkpoint folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The agent to measure it against.")],
    boards: Annotated[
        int, typer.Option(min=2, help="Duplicate boards: deals, each played twice with the sides crossed.")
    ] = 2000,
    seed: Seed = 0,
    rules: Annotated[
        str,
        typer.Option(help='A preset\'s name, then what differs: "sport_book lone_blank=3"; `domino rules` lists all.'),
    ] = "sport_book",
    batch: Annotated[int, typer.Option(min=1, help="Boards at a time; changes the speed, never the result.")] = 4096,
    time_limit: Annotated[float | None, typer.Option(help="Seconds a decision may take; left out: no limit.")] = None,
    forfeit: Annotated[bool, typer.Option("--forfeit", help="A deal in which an agent fails is lost 0:10.")] = False,
    words: Annotated[
        bool, typer.Option("--words", help="Also how often the words of the game came up: rolls, ends on, long ends …")
    ] = False,
    losses: Annotated[
        int | None,
        typer.Option(
            min=2, metavar="N", help="Also what the moves of the first N boards lost against double-dummy play."
        ),
    ] = None,
    losses_png: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Draw where the losses of --losses sit, as a PNG picture.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play duplicate boards between two agents and print A's points a deal with a 95 % interval.

    Without pairs (blitz, the blind games) A has every seat once at the two tables, and the points are those of a seat.

    Example: domino evaluate greedy random --boards 2000 --seed 7

    Example: domino evaluate runs/quick-1-20261130-120000/checkpoints/latest greedy --json

    Example: domino evaluate greedy random --rules blitz --boards 500 --words

    Example: domino evaluate club greedy --losses 256 --losses-png losses.png
    """
    if losses_png is not None:
        if losses is None:
            raise ValueError(f"--losses-png {losses_png} needs --losses N, the boards whose moves are solved")
        check_place(losses_png)
    with undisturbed():
        from experiments.evaluate import AgentError, evaluate as play
    policy, game = "forfeit" if forfeit else "raise", asked_rules(rules)
    options: dict[str, Any] = {"on_error": policy, "time_limit": time_limit, "words": words, "losses": losses or 0}
    with stdout_kept(as_json), progress_bar("boards") as show:
        try:
            result = play(a, b, game, boards, seed, batch, show, **options)
        except AgentError as error:
            raise typer.TyperException(str(error)) from error
    if losses_png is not None and result.losses is not None:
        from experiments.losses import draw_losses

        draw_losses(result.losses, (result.a, result.b), losses_png)
    if as_json:
        print_json(result.to_dict())
    else:
        _show_evaluation(result.to_dict())


@app.command()
def exploit(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Whom to win from: a run, a checkpoint, an agent's name.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Over the settings of the training, as in domino train."),
    ] = None,
    boards: Annotated[int, typer.Option(min=2, help="Duplicate boards on which the responses are measured.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of the boards, and of the training.")] = 1,
    search: Annotated[
        str | None,
        typer.Option(metavar="PLAYER", help='Who searches; "{}" in it stands for RUN. Left out: the sharpest known.'),
    ] = None,
    minutes: Annotated[float, typer.Option(help="CPU time of the training, all threads together.")] = 5.0,
    updates: Annotated[int | None, typer.Option(min=1, help="Updates of the training, in place of minutes.")] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="frozen|scratch", help="First weights of the training: RUN's, or chance.")
    ] = "frozen",
    no_train: Annotated[bool, typer.Option("--no-train", help="Without the pair that learns.")] = False,
    no_search: Annotated[bool, typer.Option("--no-search", help="Without the player that searches.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of the training and the answer; left out: runs/exploit-RUN-SEED."),
    ] = None,
    rules: Annotated[
        str | None, typer.Option(help="The game; left out: the one RUN was trained for, else sport_book.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Small games, as tiny_pairs: walk every deal for the exact figures instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find players that win from a frozen one: what they win is a lower bound on how exploitable it is.

    Two ways: a pair that learns by playing against it alone, and a player that searches and knows how it plays. The
    same command again goes on with the training. With --exact, in games of few deals, no bound: what one seat wins at
    most, and between what lies the most that a pair wins.

    Example: domino exploit runs/quick-1-20261130-120000 --boards 500 --minutes 5

    Example: domino exploit club --no-train --search pimc:model={},known=true
    """
    with undisturbed():
        from experiments import exploit as exploiting
        from experiments.evaluate import AgentError
    game = None if rules is None else asked_rules(rules)
    if exact:
        from experiments.enumerate import exact_exploitability

        with stdout_kept(as_json), status_line() as say:
            say("walking every deal")
            figures = exact_exploitability(run, exploiting.rules_of(run, game))
        if as_json:
            print_json(figures)
        else:
            _show_exact(figures)
        return
    kept = out or exploiting.default_out(run, seed)
    training: dict[str, Any] = {"minutes": minutes, "updates": updates, "start": start, "overrides": words or []}
    which: dict[str, Any] = {"trains": not no_train, "searches": not no_search, "search": search, "out": out}
    with stdout_kept(as_json), progress_bar("boards") as show:
        try:
            result = exploiting.exploit(run, game, boards=boards, seed=seed, progress=show, **which, **training)
        except AgentError as error:
            raise typer.TyperException(str(error)) from error
        except KeyboardInterrupt:
            if not no_train:
                print(f"interrupted; the same command goes on with {kept}", file=sys.stderr)
            raise
    if as_json:
        print_json(result)
    else:
        _show_exploit(result)


@benchmark_app.command("engine")
def benchmark_engine(
    rows: Annotated[int | None, typer.Option(min=1, help="Rows of the batch; left out: 1024, 4096 and 16384.")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, max=3600, help="How long to measure.")] = 8.0,
    peers: Annotated[bool, typer.Option("--peers", help="Also run the peers that are installed.")] = False,
    games: Annotated[bool, typer.Option("--games", help="Also hold blitz and the blind games against sport.")] = False,
    seed: Seed = 0,
    rules: RulesName = "sport_book",
    as_json: Json = False,
) -> None:
    """Moves a second of random play on one core: pick, step, mask, observations, auto-reset.

    Example: domino benchmark engine --rows 4096 --seconds 4 --peers
    """
    from experiments import benchmark

    with stdout_kept(as_json), status_line() as say:
        result = benchmark.engine(rules, rows, seconds, seed, peers, say, games)
    if as_json:
        print_json(result)
        return
    table = Table(
        "rows", "moves/s", "per CPU second", "yardstick/s", "of the yardstick", title=f"engine, {rules}, one core"
    )
    for row in result["by_rows"]:
        table.add_row(
            *(
                f"{row[key]:,}"
                for key in ("rows", "moves_per_second", "moves_per_cpu_second", "yardstick_moves_per_second")
            ),
            f"{row['ratio']:.0%}",
        )
    memory = result["megabytes"]
    out = output()
    out.print(table)
    out.print(
        f"An engine of {memory['rows']:,} rows holds {memory['held']} MB, {memory['peak']} MB at most with its answers."
    )
    _show_peers(result, "moves/s")
    if games:
        table = Table("game", "rows", "moves/s", "per CPU second", "times slower than sport", "goal")
        for row in result["games"]:
            goal = result["game_goals"].get(row["rules"])
            speeds = (f"{row[key]:,}" for key in ("rows", "moves_per_second", "moves_per_cpu_second"))
            table.add_row(row["rules"], *speeds, f"{row['times_slower']:.2f}", f"{goal:g} at most" if goal else "")
        out.print(table)


@benchmark_app.command("train")
def benchmark_train(
    updates: Annotated[int, typer.Option(min=1, help="Updates of the trainer, of about 30,000 decisions each.")] = 2,
    peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Also train sb3-contrib's MaskablePPO where it is installed.")
    ] = True,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learned decisions a second of the default trainer: playing, learning and logging.

    Example: domino benchmark train --updates 10 --no-peers
    """
    from experiments import benchmark

    with stdout_kept(as_json), status_line() as say:
        result = benchmark.trainer(updates, seed, peers, say)
    if as_json:
        print_json(result)
        return
    out = output()
    out.print(f"{result['decisions_per_second']:,} learned decisions a second, {result['threads']} threads")
    out.print(f"{result['decisions']:,} decisions in {result['seconds']:.1f} s: playing, learning and logging")
    _show_peers(result, "decisions/s")


@benchmark_app.command("solver")
def benchmark_solver(
    deals: Annotated[int, typer.Option(min=1, help="Deals whose leads are all solved.")] = 300,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also dominoes' alpha-beta search, where it is installed; takes minutes.")
    ] = False,
    seed: Seed = 0,
    rules: RulesName = "sport_book",
    as_json: Json = False,
) -> None:
    """Milliseconds that the double-dummy solver takes for all moves of a position, on one core.

    Example: domino benchmark solver --deals 100 --peers
    """
    from experiments import exact

    with stdout_kept(as_json), status_line() as say:
        result = exact.solver(deals, seed, rules, peers, say)
    if as_json:
        print_json(result)
        return
    columns = ("tiles on the line", "positions", "median ms", "90 %", "worst", "mean in a batch")
    table = Table(*columns, title=f"solver, {rules}, CPU time")
    for row in [result, *result["after"]]:
        keys = ("after_tiles", "deals", "ms_median", "ms_p90", "ms_max", "ms_in_batch")
        table.add_row(*(f"{row[key]:,}" for key in keys))
    sign = result["sign_only"]
    table.add_row(
        "0, sign only", f"{result['deals']:,}", *(f"{sign[key]:,}" for key in ("ms_median", "ms_p90", "ms_max"))
    )
    out = output()
    out.print(table)
    goals = result["goals"]
    out.print(f"Goals for all leads: median {goals['ms_median']:g} ms, worst {goals['ms_max']:g} ms.")
    out.print(f"{result['threads']} threads solve all leads {result['threads_speedup']:g} times as fast as one.")
    for name, peer in result["peers"].items():
        limit = f", {peer['unfinished']} broken off after {peer['limit_s']:g} s" if peer["unfinished"] else ""
        out.print(
            f"{name}: {peer['ms_median']:,} ms, ours {peer['ours_ms_median']:,} ms on the same {peer['deals']} "
            f"positions, {peer['ratio']:,} times faster (goal {peer['goal']:g}){limit}"
        )
    _show_missing(result)


@benchmark_app.command("beliefs")
def benchmark_beliefs(
    deals: Annotated[int, typer.Option(min=1, help="Deals, each looked at with 4, 8, 12 and 16 tiles laid.")] = 50,
    model: Annotated[str, typer.Option(help="Who reads the others' moves: an agent with probabilities.")] = "club",
    peers: Annotated[
        bool, typer.Option("--peers", help="Also plain rejection sampling: shuffle until the passes are respected.")
    ] = False,
    seed: Seed = 0,
    rules: RulesName = "sport_book",
    as_json: Json = False,
) -> None:
    """Milliseconds that exact and sampled beliefs over the hidden hands take, on one core.

    Example: domino benchmark beliefs --model runs/quick-1-20261130-120000/checkpoints/latest
    """
    from experiments import exact

    with stdout_kept(as_json), status_line() as say:
        result = exact.beliefs(deals, seed, rules, model, peers, say)
    if as_json:
        print_json(result)
        return
    columns = {
        "after_tiles": "tiles on the line", "positions": "positions", "rules_ms": "rules only, exact",
        "sample_1000_ms": "1,000 worlds", "exact_ms": f"{model}, exact", "sampled_500_ms": f"{model}, 500 candidates",
    }  # fmt: skip
    if peers:
        columns |= {"rejection_1000_ms": "1,000 worlds by rejection", "rejection_accepts": "share that fits"}
    table = Table(*columns.values(), title=f"beliefs, {rules}, median CPU ms a position")
    for row in result["by_tiles"]:
        table.add_row(*(f"{row[key]:,}" if row.get(key) is not None else "" for key in columns))
    output().print(table)


@benchmark_app.command("search")
def benchmark_search(
    players: Annotated[
        list[str] | None, typer.Argument(help="Two agents or more; left out: the search players, greedy and club.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="RUN", help="A trained pair: it plays too, and so do players that read it.")
    ] = None,
    boards: Annotated[int, typer.Option(min=2, help="Duplicate boards of each match.")] = 200,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the matches here (JSON) and go on from those in it.")
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also dominoes' probabilistic_alphabeta at equal time under puerto_rico.")
    ] = False,
    seed: Seed = 0,
    rules: RulesName = "sport_book",
    as_json: Json = False,
) -> None:
    """Strength of the search players against each other, in points a deal, and what a move of theirs costs.

    Example: domino benchmark search greedy pimc-10 pimc-30 --boards 100 --out strength.json

    Example: domino benchmark search --model runs/quick-1-20261130-120000/checkpoints/latest --out strength.json
    """
    from experiments import strength

    with stdout_kept(as_json), status_line() as say:
        result = strength.search(players or (), model, rules, boards, seed, out, peers, say)
    if as_json:
        print_json(result)
        return
    from rich.markup import escape

    names = result["players"]
    screen = output()
    screen.print(f"{boards:,} duplicate boards a match, {escape(rules)}, seed {seed}")
    table = Table("", "player", "CPU ms a move")
    for i, name in enumerate(names, 1):
        table.add_row(str(i), escape(name), f"{result['cpu_ms_per_move'][name]:,.2f}")
    screen.print(table)
    screen.print("points a deal of the row over the column, with the half width of the 95 % interval:")
    table = Table("", *(str(i + 1) for i in range(len(names))))
    for i, row in enumerate(zip(result["points"], result["low"], result["high"]), 1):
        cells = ["" if x is None else f"{x:+.1f}\n±{(high - low) / 2:.1f}" for x, low, high in zip(*row)]
        table.add_row(str(i), *cells)
    screen.print(table)
    for name, peer in result["peers"].items():
        screen.print(
            f"pimc over {name}: {peer['points']:+.2f} [{peer['low']:+.2f}, {peer['high']:+.2f}] points a deal, "
            f"{peer['boards']} boards from {peer['after_tiles']} tiles on, puerto_rico; "
            f"{peer['ours_ms_per_move']:,} against {peer['ms_per_move']:,} ms a move"
        )
    _show_missing(result)


@app.command()
def export(
    agents: Annotated[
        list[str],
        typer.Argument(metavar="AGENT", help="Who plays: one for all seats, two as pairs, or one for each seat."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New, empty, or to go on with after a kill.")],
    decisions: Annotated[int, typer.Option(min=1, help="Rows at least; the last deal is whole.")] = 1_000_000,
    rules: Annotated[str, typer.Option(help='A preset\'s name, then what differs: "sport_book lone_blank=3".')] = (
        "sport_book"
    ),
    seed: Seed = 0,
    values: Annotated[
        bool, typer.Option("--values", help="Also what every move is worth with all hands open (double-dummy).")
    ] = False,
    forced: Annotated[bool, typer.Option("--forced", help="Also decisions with one legal move.")] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Networks play by their probabilities, not the likeliest move.")
    ] = False,
    part_deals: Annotated[
        int | None, typer.Option(min=1, help="Deals of a part file; a kill costs the part that was being made.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play deals and write every decision to Parquet files: what was seen, legal, played and won, and all hands.

    docs/export.md says what each column means. The same command again goes on where a kill or Ctrl-C stopped it.

    Example: domino export greedy --decisions 1000000 --out decisions

    Example: domino export club greedy --decisions 100000 --values --seed 7 --out solved
    """
    with undisturbed():
        from experiments.export import PlayError, export as run
    options: dict[str, Any] = {"values": values, "forced": forced, "sample": sample, "part_deals": part_deals}
    with stdout_kept(as_json), progress_bar("decisions") as show:
        try:
            result = run(agents, out, decisions, asked_rules(rules), seed, **options, progress=show)
        except PlayError as error:
            raise typer.TyperException(str(error)) from error
        except KeyboardInterrupt:
            print(f"interrupted; whole parts are in {out}; the same command goes on", file=sys.stderr)
            raise
    if as_json:
        print_json(result)
        return
    speed = f", {result['decisions_per_second']:,.0f} a second" if result["new_rows"] else ", all there already"
    parts = f"{result['parts']} part{'s' if result['parts'] > 1 else ''}"
    output().print(
        f"{result['rows']:,} decisions of {result['deals']:,} deals of {result['rules']} in {parts}, "
        f"{result['bytes'] / 1e6:,.1f} MB{speed}: {result['folder']}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def replay(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Deals in text, one a line, # begins a comment; or the record of a match."),
    ],
    deal: Annotated[
        int | None, typer.Option("--deal", min=1, metavar="N", help="Only the N-th deal of the file.")
    ] = None,
    move: Annotated[
        int | None, typer.Option("--move", min=0, metavar="M", help="The position after M moves; left out: the last.")
    ] = None,
    step: Annotated[
        bool, typer.Option("--step", help="Every position from the deal on; at a terminal, Enter goes on and q leaves.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="OUT", help="Write the position as an SVG picture.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="OUT", help="Write the position as a PNG picture.")
    ] = None,
    drop_cut: Annotated[
        bool, typer.Option("--drop-cut", help="Leave out the last line of a record if it was cut while it was written.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print deals from a file, or a match from its record, or step through them.

    Example: domino replay deals.txt --deal 1 --step

    Example: domino replay match.jsonl --deal 3 --move 5 --png table.png
    """
    from experiments.replay import MatchReplay, read

    found = read(file, drop_cut=drop_cut)
    match, replays = (found, found.deals) if isinstance(found, MatchReplay) else (None, found)
    if deal is not None:
        if deal > len(replays):
            raise ValueError(f"--deal {deal}: {file} holds {f'deals 1 to {len(replays)}' if replays else 'no deals'}")
        replays = replays[deal - 1 : deal]
    if step and move is not None:
        raise ValueError("--step shows every position and --move shows one: choose")
    if move is not None:
        for one in replays:
            if move > len(one.deal.moves):
                raise ValueError(f"--move {move}: the deal of line {one.line} has moves 0 to {len(one.deal.moves)}")
    if svg or png:
        if len(replays) != 1:
            which = f"choose with --deal 1 to --deal {len(replays)}" if replays else f"{file} holds none"
            raise ValueError(f"a picture shows one deal: {which}")
        if step:
            raise ValueError("a picture shows one position: choose with --move, not --step")
        _draw(replays[0].position(move), svg, png)
    if as_json:
        shown = []
        for one in replays:
            plain = one.as_dict() if match is None else match.deal_dict(one)
            shown.append(plain if move is None else {**plain, "position": one.position(move)})
        print_json({"file": str(file), **({} if match is None else match.as_dict()), "deals": shown})
    elif match is None:
        for one in replays:
            heading = (
                f"line {one.line}: {one.deal.rules.name}, seat {one.deal.leader} leads, {len(one.deal.moves)} moves"
            )
            if not _show_replay(one, heading, move, step):
                break
    else:
        _show_match(match, replays, deal is not None, move, step)


@app.command()
def play(
    seat: Annotated[str, typer.Option("--as", metavar="SEAT", help="Your seat: seat_0, seat_1, …")] = "seat_0",
    partner: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT", help="Who faces you, in pairs: an agent or a checkpoint; left out: a strong one."
        ),
    ] = None,
    opponents: Annotated[
        str | None, typer.Option(metavar="AGENT", help="Who sits at the other seats; left out: a strong one.")
    ] = None,
    rules: Annotated[
        str, typer.Option(help='A preset\'s name, then what differs: "blitz seats=6"; `domino rules` lists all.')
    ] = "sport_book",
    episode: Annotated[str, typer.Option(metavar="deal|match", help="One deal, or a match of fours.")] = "deal",
    fours: Annotated[int | None, typer.Option(min=1, help="Length of a match, four deals each; left out: one.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all chance; left out: another at every call.")] = None,
    lang: Annotated[str, typer.Option(metavar="en|ru", help="Language of the table.")] = "en",
    hint: Annotated[
        str | None, typer.Option(metavar="AGENT", help="Who is asked when you type hint; left out: a strong one.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the match record to this new file, a deal a line.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Your name in the record.")] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="book|club", help="Wrong acts are judged by this rulebook, not refused.")
    ] = None,
) -> None:
    """Play a deal or a match in the terminal. Type help at the table to see what you may type.

    Example: domino play --as seat_0 --partner club --opponents greedy

    Example: domino play --rules sport_club --episode match --fours 1 --record match.jsonl --lang ru
    """
    with undisturbed():
        from experiments.play import PlayerError, play as sit_down
    options: dict[str, Any] = {"episode": episode, "fours": fours, "seed": seed, "lang": lang, "judge": judge}
    try:
        sit_down(seat, partner, opponents, asked_rules(rules), record=record, hint=hint, name=name, **options)
    except PlayerError as error:
        raise typer.TyperException(str(error)) from error


@app.command()
def tournament(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [PAIR]...",
            help="Pairs: club, mixed=club+greedy (two partners), north=club&greedy (a team of two pairs). A YAML file "
            "may name them, and whatever else is asked for.",
        ),
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="round_robin|swiss", help="Left out: round_robin.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Left out: seven of swiss; of a round robin until all have met.")
    ] = None,
    fours: Annotated[int | None, typer.Option(min=1, help="Length of a match, four deals each; left out: one.")] = None,
    table: Annotated[
        str | None, typer.Option(metavar="single|team", help="team: the same deals at two tables, the pairs crossed.")
    ] = None,
    rules: Annotated[str | None, typer.Option(help="A preset's name, then what differs; left out: sport_book.")] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="book|club", help="Who judges a pair that errs; left out: it is an error.")
    ] = None,
    withdraw: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=ROUND", help="The pair leaves before this round (J6); may be given again."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of all chance in the tournament; left out: 0.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Processes; they change the speed, never the result. Left out: one."),
    ] = None,
    duplicate: Annotated[
        bool,
        typer.Option(
            "--duplicate",
            help="Instead of matches of fours, every two on the same duplicate boards: points a deal, ratings, and the "
            "mixture that nobody beats, as tables and a picture.",
        ),
    ] = False,
    boards: Annotated[
        int | None, typer.Option(min=2, help="Boards of each match of --duplicate; left out: 1,000.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the records go; left out: a new one in runs.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Go on with a tournament.")] = None,
    as_json: Json = False,
) -> None:
    """Play a tournament of pairs, every deal in the record, and print the standings.

    Example: domino tournament club greedy "mixed=club+greedy" --fours 2 --seed 7 --out spring

    Example: domino tournament a=club b=greedy c=random --system swiss --rounds 3 --table team --workers 2 --json

    Example: domino tournament --duplicate random greedy double_first club --boards 400 --out strength
    """
    if duplicate or (resume is not None and (resume / "duplicate.json").is_file()):
        options: dict[str, Any] = {"--system": system, "--rounds": rounds, "--fours": fours, "--table": table}
        options |= {"--judge": judge, "--withdraw": withdraw, "--workers": workers}
        if ours := [name for name, value in options.items() if value is not None]:
            raise ValueError(f"{ours[0]} is of matches of fours; --duplicate has --boards, --rules and --seed")
        _duplicate(list(words or []), rules, boards, seed, out, resume, as_json)
        return
    if boards is not None:
        raise ValueError(f"--boards {boards} is of --duplicate; a match of fours is as long as --fours says")
    with undisturbed():
        from experiments import tournament as play
        from experiments.tables import PairError
    words = list(words or [])
    if resume is not None:
        given = (system, rounds, fours, table, rules, judge, withdraw, seed, out)
        if words or any(value is not None for value in given):
            raise ValueError(f"--resume {resume} goes on with what was asked for; beside it only --workers and --json")
        config, folder = play.load(resume), resume
    else:
        fields = {
            **{"system": system, "rounds": rounds, "fours": fours, "table": table, "judge": judge, "seed": seed},
            **(
                {}
                if rules is None
                else {"rules": (game := asked_rules(rules)).name, "rule_overrides": game.overrides()}
            ),
            **({} if withdraw is None else {"withdraw": dict(map(_leaves, withdraw))}),
        }
        file = words.pop(0) if words and words[0].endswith((".yaml", ".yml")) else None
        config = play.plan(words, file, {key: value for key, value in fields.items() if value is not None})
        folder = out or Path("runs") / time.strftime("tournament-%Y%m%d-%H%M%S")
    with stdout_kept(as_json), _resumable(folder, PairError), progress_bar("deals") as show:
        result = play.run(config, folder, workers or 1, show)
    if as_json:
        print_json(result)
    else:
        _show_tournament(result)


def _duplicate(
    words: list[str],
    rules: str | None,
    boards: int | None,
    seed: int | None,
    out: Path | None,
    resume: Path | None,
    as_json: bool,
) -> None:
    """`domino tournament --duplicate`."""
    with undisturbed():
        from experiments import duplicate as play
        from experiments.evaluate import AgentError
    if resume is not None:
        if words or any(value is not None for value in (rules, boards, seed, out)):
            raise ValueError(f"--resume {resume} goes on with what was asked for; beside it only --json")
        asked, folder = play.load(resume), resume
    else:
        if words and words[0].endswith((".yaml", ".yml")):
            raise ValueError(f"{words[0]}: --duplicate is told who plays in words, not by a file")
        asked = play.plan(words, asked_rules(rules or "sport_book"), boards or play.BOARDS, seed or 0)
        folder = out or Path("runs") / time.strftime("duplicate-%Y%m%d-%H%M%S")
    with stdout_kept(as_json), _resumable(folder, AgentError), progress_bar("boards") as show:
        result = play.run(asked, folder, show)
    if as_json:
        print_json(result)
    else:
        _show_duplicate(result)


@contextlib.contextmanager
def _resumable(folder: Path, failure: type[Exception]) -> Iterator[None]:
    """Says how to go on with a tournament that a player's failure or a Ctrl-C breaks off."""
    try:
        yield
    except failure as error:
        raise typer.TyperException(f"{error}; once it is mended: domino tournament --resume {folder}") from error
    except KeyboardInterrupt:
        print(f"interrupted; go on with: domino tournament --resume {folder}", file=sys.stderr)
        raise


def _leaves(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not re.fullmatch("[0-9]{1,9}", number):
        raise ValueError(f"--withdraw {text!r}: write NAME=ROUND, the round before which the pair leaves")
    return name, int(number)


@app.command()
def solve(
    deal: Annotated[
        str,
        typer.Argument(
            metavar="DEAL", help="A deal in text; a file of deals, or the record of a match; - for standard input."
        ),
    ],
    number: Annotated[
        int | None,
        typer.Option("--deal", min=1, metavar="N", help="The N-th deal of the file; needed where it has more."),
    ] = None,
    move: Annotated[
        int | None, typer.Option("--move", min=0, metavar="M", help="The position after M moves; left out: the last.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve a deal with all hands open: the worth of every move, the best line, what each played move lost.

    Points are net, of the mover's side, if all play their best from there and see all hands.

    Example: domino solve "tiny_pairs leader=0 | 0-1 1-2 | 2-2 0-3 | 0-0 1-3 | 0-2 2-3 | 0-1L 0-3L"

    Example: domino solve match.jsonl --deal 3 --json
    """
    from experiments.solve import find, report, solve as work_out

    with stdout_kept(as_json):
        one = find(deal, number)
        result = work_out(one, move)
    if as_json:
        print_json(result)
    else:
        print("\n".join(report(result, one.deal.rules)))


@app.command()
def advise(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE",
            help='What you know, in text: "sport_book leader=0 seat=2 | your hand | the moves"; or a deal with all '
            "hands, of which only yours is looked at; a file of such lines; a match record; - for standard input.",
        ),
    ] = None,
    rules: Annotated[str | None, typer.Option(help="A preset's name, then what differs; left out: sport_book.")] = None,
    hand: Annotated[
        str | None,
        typer.Option(metavar="TILES", help='Your tiles, "0-1 2-2 …": as they were dealt, or those left now.'),
    ] = None,
    seat: Annotated[
        int | None, typer.Option(min=0, help="Your seat; of a deal with all hands: left out, whose turn it is.")
    ] = None,
    leader: Annotated[int | None, typer.Option(min=0, help="The seat that led.")] = None,
    moves: Annotated[
        str | None,
        typer.Option(
            metavar="MOVES", help='The moves so far, "3-4L 4-4R pass …", L and R the ends; "1:pass" also says whose.'
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--deal", min=1, metavar="N", help="The N-th line or deal; needed where there are more."),
    ] = None,
    move: Annotated[
        int | None, typer.Option("--move", min=0, metavar="M", help="The position after M moves; left out: the last.")
    ] = None,
    worlds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Deals to imagine and solve; all, if no more fit. Left out: 200, or what --ms allows."
        ),
    ] = None,
    ms: Annotated[int | None, typer.Option(min=1, help="Milliseconds for solving them; left out: no clock.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="Read the others' moves as those of this agent or checkpoint; left out: the rules alone.",
        ),
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=1, help="Deals that the model weighs, where there are too many to weigh all.")
    ] = 4000,
    floor: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the others' moves that the model takes to be random.")
    ] = 0.02,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Advise a person at a table: what each legal move is worth, and who probably holds what.

    Hands that fit are imagined and solved with all hands open. A move's points are the mean over these worlds; the mean
    over all deals that fit lies in the interval with a probability of 95 %. Where all that fit are solved it is exact.

    Example: domino advise --hand "0-1 1-1 2-2 3-4 3-5 4-6 6-6" --seat 1 --leader 0 --moves "2-4L"

    Example: domino advise "sport_club leader=3 seat=0 | 0-0 0-2 1-5 2-2 3-3 4-5 5-6 | 0-5L" --worlds 50 --model greedy

    Example: domino advise match.jsonl --deal 3 --move 7 --ms 500 --json
    """
    from experiments import advise as adviser

    if table is not None:
        given = {"--rules": rules, "--hand": hand, "--leader": leader, "--moves": moves}
        if twice := [name for name, value in given.items() if value is not None]:
            raise ValueError(f"{twice[0]} {given[twice[0]]}: the table is given in text, which says that too")
    else:
        needed = {"--hand": hand, "--seat": seat, "--leader": leader}
        if missing := [name for name, value in needed.items() if value is None]:
            raise ValueError(f"missing: {', '.join(missing)}; or name a table in text or a file of such")
    if table is not None:
        told = adviser.find(table, number, seat)
    else:
        assert hand is not None and seat is not None and leader is not None
        told = adviser.from_words(asked_rules(rules or "sport_book"), seat, leader, hand, moves or "")
    position = told.position(move)
    options: dict[str, Any] = {"worlds": worlds, "ms": ms, "model": model, "candidates": candidates, "floor": floor}
    with stdout_kept(as_json), progress_bar("worlds") as show:
        result = adviser.advise(position, **options, seed=seed, show=show)
    if as_json:
        print_json(result.to_dict())
    else:
        print(adviser.report(result, color=sys.stdout.isatty()), end="")


@app.command()
def agents(as_json: Json = False) -> None:
    """List the agents that can be named.

    Example: domino agents
    """
    from agents import list_agents

    known = list_agents()
    if as_json:
        print_json({"agents": [{"name": name, "plays": text} for name, text in known]})
        return
    table = Table("name", "plays")
    for name, text in known:
        table.add_row(name, text)
    out = output()
    out.print(table)
    out.print("A checkpoint folder is an agent too: runs/…/checkpoints/latest. Options follow a colon, name=value.")


@app.command()
def rules(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help='A preset, or "blitz seats=6"; left out: all of them.')
    ] = None,
    as_json: Json = False,
) -> None:
    """List the games, or every field of one.

    Example: domino rules sport_club
    """
    import dataclasses

    from domino_env import PRESETS

    chosen = [asked_rules(name)] if name else list(PRESETS.values())
    if as_json:
        plain = {one.name: dataclasses.asdict(one) for one in chosen}
        print_json({"rules": plain})
        return
    fields = [field.name for field in dataclasses.fields(chosen[0]) if field.name != "name"]
    table = Table("field", *(one.name for one in chosen))
    for field in fields:
        table.add_row(field, *(_word(getattr(one, field)) for one in chosen))
    output().print(table)


def _word(value: Any) -> str:
    if value is None:
        return "-"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _show_evaluation(figures: dict[str, Any]) -> None:
    out = output()
    interval = f"({figures['low']:+.2f} to {figures['high']:+.2f}, 95 %)"
    boards = f"{figures['boards']:,} duplicate boards of {figures['rules']}, seed {figures['seed']}"
    shares = ("win", "tie", "loss", "out_rate", "block_rate", "guard_rate")
    out.print(
        f"{figures['a']} over {figures['b']}: {figures['points_per_deal']:+.2f} points a deal {interval}, {boards}",
        markup=False,  # a folder may be called [x]
        soft_wrap=True,
    )
    out.print("  ".join(f"{key} {figures[key]:.1%}" for key in shares if key in figures))
    if "words" in figures:
        out.print("  ".join(f"{key} {value:.3g}" for key, value in figures["words"].items()))
    if "dd_losses" in figures:
        _show_losses(figures)
    if figures.get("errors"):
        out.print(
            f"{figures['errors']} deals forfeited because an agent failed; the first: {figures['faults'][0]}",
            markup=False,
        )


def _show_sweep(result: dict[str, Any]) -> None:
    from rich.markup import escape

    from experiments import summary

    out = output()
    for number, (head, rows) in enumerate((summary.rows(result), summary.differences(result))):
        if rows:
            table = Table(
                title=escape(f"sweep {result['sweep']}") if number == 0 else "seed by seed, on the same boards"
            )
            for i, name in enumerate(head):
                table.add_column(escape(name), justify="left" if i == 0 else "right", overflow="fold")
            for row in rows:
                table.add_row(*map(escape, row))
            out.print(table)
    for note in result["notes"]:
        out.print(f"{note}.", markup=False, highlight=False, soft_wrap=True)
    out.print(f"Written: {result['folder']}/table.md, table.csv, table.json", markup=False, soft_wrap=True)


def _show_comparison(result: dict[str, Any], picture: Path, scalars: Path) -> None:
    from rich.markup import escape

    out = output()
    table = Table("group", "runs", *(f"over {escape(name)}" for name in result["opponents"]), title="where curves end")
    for group in result["groups"]:
        cells = []
        for name in result["opponents"]:
            curve = group["curves"].get(name)
            cells.append(
                f"{curve['mean'][-1]:+.2f} ({curve['low'][-1]:+.2f} to {curve['high'][-1]:+.2f})" if curve else "-"
            )
        table.add_row(escape(group["name"]), str(len(group["runs"])), *cells)
    out.print(table)
    for note in result["notes"]:
        out.print(f"{note}.", markup=False, highlight=False, soft_wrap=True)
    out.print(f"Drawn: {picture}; for TensorBoard: {scalars}", markup=False, soft_wrap=True)


def _show_exploit(figures: dict[str, Any]) -> None:
    from rich.markup import escape

    out = output()
    columns = ("response", "points a deal won", "95 %", "CPU s", "boards", "seed")
    table = Table(*columns, title=escape(f"from {figures['frozen']}, {figures['rules']}"))
    table.columns[0].overflow = "fold"
    for one in figures["responses"]:
        interval = f"{one['low']:+.2f} to {one['high']:+.2f}"
        name = one["response"]
        if "training" in one:
            updates = one["training"]["updates"]
            name += f" ({updates} update{'s' if updates > 1 else ''})"
        cells = (f"{one['cpu_seconds']:,.0f}", f"{one['boards']:,}", f"{one['seed']}")
        table.add_row(escape(f"{one['kind']}: {name}"), f"{one['points_per_deal']:+.2f}", interval, *cells)
    out.print(table)
    for kind, why in figures["skipped"].items():
        out.print(f"no {kind}: {why}", markup=False, highlight=False, soft_wrap=True)
    best = figures["bound"]
    out.print(
        f"The bound found: {best['points_per_deal']:+.2f} ({best['low']:+.2f} to {best['high']:+.2f}), {best['kind']}. "
        f"It is {figures['note']}.",
        markup=False,
        soft_wrap=True,
    )
    if best["low"] < 0:
        out.print(f"That is no proof of a loss: a copy of {figures['frozen']} wins 0.", markup=False, soft_wrap=True)


def _show_exact(figures: dict[str, Any]) -> None:
    from rich.markup import escape

    out = output()
    table = Table("", *(f"place {place}" for place in range(len(figures["value"]))))
    table.title = escape(f"{figures['agent']}, {figures['rules']}: points a deal; place 0 leads")
    for name, key in (("all play it", "value"), ("that seat plays its best", "best_response"), ("gain", "gain")):
        table.add_row(name, *(f"{value:+.4f}" for value in figures[key]))
    out.print(table)
    out.print(
        f"exact, {figures['deals']:,} deals: one seat gains {figures['exploitability']:.4f} a deal at most, "
        f"mean of the places; NashConv {figures['nash_conv']:.4f}",
        soft_wrap=True,
    )
    if "pair_value" in figures:
        below, above = figures["pair_exploitability_below"], figures["pair_exploitability_above"]
        out.print(
            f"a pair gains at least {below:.4f} (partners who answer in turn) "
            f"and at most {above:.4f} (they see both hands)",
            soft_wrap=True,
        )


def _show_losses(figures: dict[str, Any]) -> None:
    from rich.markup import escape

    losses, out = figures["dd_losses"], output()
    if not losses["boards"]:
        out.print("no losses against double-dummy: every board has a forfeited deal")
        return
    table = Table("", *(escape(figures[side]) for side in "ab"))
    for column in table.columns[1:]:
        column.overflow = "fold"
    table.add_row("in all", *(f"{losses[side]['per_deal']:.2f}" for side in "ab"))
    table.add_row("95 %", *(f"{losses[side]['low']:.2f} to {losses[side]['high']:.2f}" for side in "ab"))
    for part in list(losses["a"])[3:]:
        table.add_row(part, *(f"{losses[side][part]:.2f}" for side in "ab"))
    out.print(f"points lost a deal against double-dummy, {losses['boards']:,} boards:")
    out.print(table)


def _show_tournament(figures: dict[str, Any]) -> None:
    from rich.markup import escape

    out = output()
    heads = {
        **{"place": "", "pair": "pair", "match_points": "points", "played": "matches", "won": "won", "tied": "tied"},
        **{"lost": "lost", "byes": "byes", "buchholz": "Buchholz", "head_to_head": "head-to-head", "net": "net"},
        **{"deals": "deals", "warnings": "warnings", "out": "out"},
    }
    rows = figures["standings"]
    optional = {"byes": 0, "warnings": 0, "out": None, "head_to_head": None}  # left out where they say nothing
    shown = [key for key in rows[0] if key not in optional or any(row[key] != optional[key] for row in rows)]
    rounds = f"{figures['rounds']} round{'' if figures['rounds'] == 1 else 's'}"
    title = f"{figures['system'].replace('_', ' ')}, {rounds} of {figures['rules']}"
    table = Table(title=escape(f"{title}, seed {figures['seed']}"))
    for key in shown:
        table.add_column(heads[key], justify="left" if key in ("pair", "out") else "right")
    table.add_column("rating (95 %)", justify="right")
    for row in rows:
        plain = (escape("-" if row[key] is None else f"{row[key]}") for key in shown)
        table.add_row(*plain, _rating(figures["ratings"][row["pair"]]))
    out.print(table)
    out.print("Places go by: " + "; then ".join(figures["tie_breaks"]) + ".", markup=False, highlight=False)
    cross = Table("points a deal (95 %)", *(escape(name) for name in figures["players"]))
    for i, name in enumerate(figures["players"]):
        cells = ["-" if point is None else f"{point:+.2f}" for point in figures["points"][i]]
        for j, (low, high) in enumerate(zip(figures["low"][i], figures["high"][i])):
            if low is not None and high is not None:
                cells[j] += f" ({low:+.2f} to {high:+.2f})"
        cross.add_row(escape(name), *cells)
    out.print(cross)
    out.print(
        f"{figures['boards']:,} boards; every deal is in {figures['folder']}/records", markup=False, soft_wrap=True
    )


def _rating(one: dict[str, float | None]) -> str:
    """A rating with its interval, as far as there are any."""
    if one["rating"] is None:
        return "-"
    within = "" if one["low"] is None else f" ({one['low']:.0f} to {one['high']:.0f})"
    return f"{one['rating']:.0f}{within}"


def _show_duplicate(figures: dict[str, Any]) -> None:
    from rich.markup import escape

    out, nash = output(), figures["nash"]
    title = f"{figures['boards']:,} duplicate boards a match, {figures['rules']}, seed {figures['seed']}"
    table = Table(title=escape(title))
    for head in ("", "player", "rating (95 %)", "over the others", "in the mixture", "against it", "CPU ms a move"):
        table.add_column(head, justify="left" if head == "player" else "right")
    table.columns[1].overflow = "fold"
    for place, name in enumerate(figures["ranking"], 1):
        share, over = nash["mixture"][name], nash["against"][name]
        table.add_row(
            *(str(place), escape(name), _rating(figures["ratings"][name]), f"{figures['means'][name]:+.2f}"),
            *(f"{share:.1%}" if share else "-", "0" if share else f"{over:+.2f}"),
            f"{figures['cpu_ms_per_move'][name]:.3g}",
        )
    out.print(table)
    order = [figures["players"].index(name) for name in figures["ranking"]]
    out.print("points a deal of the row over the column, with the half width of the 95 % interval:")
    for begin in range(0, len(order), 12):  # as many columns as fit
        columns = range(begin, min(begin + 12, len(order)))
        table = Table("", *(f"over {j + 1}" for j in columns))
        for place, i in enumerate(order, 1):
            cells = ((figures[key][i][order[j]] for key in ("points", "low", "high")) for j in columns)
            table.add_row(
                str(place), *("" if x is None else f"{x:+.2f}\n±{(high - low) / 2:.2f}" for x, low, high in cells)
            )
        out.print(table)
    unique = "" if nash["unique"] else "; there are others, and this is the one of greatest entropy"
    text = (
        f"Ratings: Bradley-Terry over boards won, tied and lost, 400 points for odds of ten to one, mean 1500.\n"
        f"The mixture is the Nash equilibrium of choosing a player: nobody wins points against it{unique}.\n"
        f"All of it is in {figures['folder']}: table.json, table.csv, matrix.png, and events for TensorBoard."
    )
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def _show_peers(result: dict[str, Any], unit: str) -> None:
    out = output()
    if result["peers"]:
        table = Table("peer", unit, "ours", "ours / theirs", "goal")
        for name, speed in result["peers"].items():
            table.add_row(
                name,
                f"{speed:,}",
                f"{result['ours'][name]:,}",
                f"{result['ratios'][name]:,}",
                f"{result['goals'][name]:g}",
            )
        out.print(table)
    _show_missing(result)


def _show_missing(result: dict[str, Any]) -> None:
    if result.get("peers_missing"):
        output().print(
            f"Not installed, so not compared: {', '.join(result['peers_missing'])} (pip install 'domino-lab\\[peers]')"
        )


def _show_replay(one: Replay, heading: str, move: int | None, step: bool) -> bool:
    """Prints the asked positions of a deal; False where the person at the terminal has had enough."""
    from domino_env import render

    positions = one.positions if step else [one.position(move)]
    asks = step and sys.stdin.isatty() and sys.stdout.isatty()
    print(heading)
    for number, position in enumerate(positions):
        print(render.text(position, color=sys.stdout.isatty()))
        if asks and number + 1 < len(positions) and input("Enter: on, q: leave ").strip().lower() == "q":
            return False
    return True


def _show_match(match: MatchReplay, replays: Sequence[Replay], chosen: bool, move: int | None, step: bool) -> None:
    """Prints a match, or one deal of it: what the record says, and the positions that are asked for."""
    print("\n".join(match.heading()))
    for one in replays:
        print()
        heading = "\n".join(match.opening(one))
        if not (chosen or step or move is not None):
            print(heading)
        elif not _show_replay(one, heading, move, step):
            return
        if move is None:  # what comes after the position is not told
            print("\n".join(match.outcome(one)))
    if not chosen:
        print("", *match.ending(), sep="\n")


def _draw(position: dict[str, Any], svg: Path | None, png: Path | None) -> None:
    """Writes the pictures; both are drawn before the first is written."""
    from domino_env import render
    from experiments.files import write_whole

    pictures: list[tuple[Path, bytes]] = []
    if svg:
        pictures.append((svg, render.svg(position).encode()))
    if png:
        from PIL import Image

        buffer = io.BytesIO()
        Image.fromarray(render.rgb(position)).save(buffer, "PNG")
        pictures.append((png, buffer.getvalue()))
    for path, _ in pictures:  # both can be written, or neither is
        check_place(path)
    for path, content in pictures:
        write_whole(path, content)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with these words (default: those of the process) and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who called us: nobody wants to read it
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w")))
    try:
        with _heard():
            code = typer.main.get_command(app).main(words or ["--help"], prog_name="domino", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads us has had enough; Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (typer.TyperException, ValueError, OSError) as error:
        if os.environ.get("DOMINO_TRACEBACK"):
            raise
        return _fail(_one_line(error), error.exit_code if isinstance(error, typer.TyperException) else 2)
    except MemoryError as error:
        if os.environ.get("DOMINO_TRACEBACK"):
            raise
        return _fail(f"not enough memory: {_one_line(error)}")
    except ImportError as error:
        if os.environ.get("DOMINO_TRACEBACK") or (hint := _missing(error)) is None:
            raise
        return _fail(hint)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    if code == 130:
        print("domino: interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _one_line(error: Exception) -> str:
    if isinstance(error, typer.TyperException):
        text = error.format_message()
        if callable(errors := getattr(error.__cause__, "errors", None)):  # pydantic's; the text lacks what was given
            text += f"; got {errors()[0]['input']!r}"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def _fail(text: str, code: int = 2) -> int:
    print(f"domino: {text}", file=sys.stderr)
    return code


def command() -> int:
    """`domino` itself: the same, and a second Ctrl-C while the process ends, which takes a second, changes nothing."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(command())

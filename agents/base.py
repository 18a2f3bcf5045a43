"""What an agent is, and how to get one by name.

An agent answers whole batches: `act(decisions) -> actions (N,) int64`. It draws chance only from `decisions.rng`, one
number a row at a time, and never looks from one row at another: then what it plays does not depend on the batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from domino_env.decisions import Decisions, Table, Uniforms, table_of
from domino_env.engine import Engine
from domino_env.rules import Rules, get_rules

__all__ = [
    "Agent",
    "Decisions",
    "Table",
    "decide",
    "has_probabilities",
    "list_agents",
    "make_agent",
    "need_probabilities",
    "one_hot",
    "options_of",
    "register_agent",
]


@runtime_checkable
class Agent(Protocol):
    """A player. Two attributes may be left out and are then False.

    `sees_everything`: it is handed `batch.table`, all hands open; others get None there.
    `needs_history`: it is handed `batch.history`, the public events of the deal; others may get None there.
    An agent that remembers keys what it remembers on (`batch.key`, `batch.seat`).
    A method `check(rules)` may be there: it raises a ValueError for a game that the agent cannot play.
    A method `probabilities(batch) -> (N, A) float` may be there: how likely the agent is to choose each action, by the
    decision alone (observation, mask, history, rules; no chance, and nothing that the agent remembers). Rows add up to
    1 and are 0 where an action is illegal. Beliefs ask it what hands a seat's moves speak for. Players that draw worlds
    or remember have none; see `has_probabilities`.
    """

    name: str

    def act(self, batch: Decisions, /) -> npt.NDArray[np.int64]:
        """(N,) int64 legal actions, one for each row of the batch."""
        ...


def has_probabilities(agent: Agent) -> bool:
    """Whether an agent can say how likely it is to choose each action."""
    return callable(getattr(agent, "probabilities", None))


def need_probabilities(agent: Agent) -> None:
    """Refuse an agent that cannot say how likely it is to choose each action, by a ValueError."""
    if not has_probabilities(agent):
        raise ValueError(
            f"agent {agent.name} has no probabilities: its moves hang on more than the decision it is asked; "
            "choose a rule player or a network"
        )


def one_hot(actions: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.float64]:
    """The probabilities of a player whose action is certain: (N,) actions -> (N, count) float64 of 0 and 1."""
    return (actions[:, None] == np.arange(count)).astype(np.float64)


Factory = Callable[..., Agent]

_REGISTRY: dict[str, tuple[Factory, str]] = {}
_NUMBER: dict[str, str] = {}  # name -> the option that a number after a dash gives: "pimc-30" is "pimc:worlds=30"


def register_agent(name: str, factory: Factory, description: str | None = None, *, number: str | None = None) -> None:
    """Make an agent known by a name.

    Args:
        name: without ":", "," and "/".
        factory: called with the options of the name as keywords; raises ValueError for what it cannot use.
        description: one line; left out, the first line of the factory's docstring.
        number: the option that a number after a dash gives: "pimc-30" is "pimc:worlds=30".

    Raises:
        ValueError: a name that is taken or cannot be written.
    """
    if not name or set(name) & set(":,/\\= "):
        raise ValueError(f"agent name {name!r} must be a word without spaces and ':,/\\='")
    if name in _REGISTRY:
        raise ValueError(f"agent {name!r} is already registered")
    text = description or inspect.getdoc(factory) or ""
    _REGISTRY[name] = factory, text.split("\n")[0].strip()
    if number is not None:
        _NUMBER[name] = number


def list_agents() -> list[tuple[str, str]]:
    """Name and one-line description of every registered agent, in the order of registration."""
    return [(name, description) for name, (_, description) in _REGISTRY.items()]


def make_agent(agent: str | Agent, rules: str | Rules | None = None) -> Agent:
    """An agent by its name, from a checkpoint, or as given.

    Args:
        agent: a registered name, with options after a colon ("club:repeat_partner=0,cut_opponents=2"); the folder of a
            checkpoint ("runs/x/checkpoints/latest"); or an agent, which is handed back.
        rules: the game it is to play; a checkpoint of other rules is refused, and so is a player of other games.

    Raises:
        ValueError: an unknown name, option or folder, or an object that is no agent; it names the choices. An agent
            that cannot play the game.
        ImportError: a checkpoint where torch is not installed.
    """
    if not isinstance(agent, str):
        if isinstance(agent, type) or not isinstance(agent, Agent):
            raise ValueError(f"{agent!r} is no agent: it needs a name and act(batch); or give one of {_choices()}")
        return _checked(agent, rules)
    name, options = _parts(agent)
    if name in _REGISTRY:
        return _checked(_build(name, options), rules)
    if (folder := folder_of(agent)) is not None:
        return cast(Agent, load_network(folder, None if rules is None else get_rules(rules)))
    raise ValueError(f"unknown agent {agent!r}; choose from {_choices()}, or give the folder of a checkpoint")


def folder_of(agent: str | Path | Agent) -> Path | None:
    """The folder of the checkpoint that `make_agent` would load; None for an agent, or the name of a registered one.

    A registered name goes first, whatever lies in the working folder under that name.
    """
    if not isinstance(agent, str | Path) or not str(agent) or _parts(str(agent))[0] in _REGISTRY:
        return None
    return Path(agent) if Path(agent).is_dir() else None


def _parts(agent: str) -> tuple[str, str]:
    """Name and options: "pimc-30" is pimc with worlds=30."""
    name, _, options = agent.partition(":")
    stem, _, count = name.rpartition("-")
    if name not in _REGISTRY and stem in _NUMBER and count.isdecimal():
        return stem, ",".join([f"{_NUMBER[stem]}={count}", *([options] if options else [])])
    return name, options


def _checked(agent: Agent, rules: str | Rules | None) -> Agent:
    """The agent, if it plays the game."""
    check = getattr(agent, "check", None)
    if rules is not None and check is not None:
        check(get_rules(rules))
    return agent


def _choices() -> str:
    return ", ".join(_REGISTRY)


def _build(name: str, text: str) -> Agent:
    return call_factory(name, _REGISTRY[name][0], options_of(f"{name}:{text}"))


def options_of(word: str) -> dict[str, Any]:
    """The options in the name of an agent: "club:cut_opponents=2,repeat_partner=0" or "club".

    Raises:
        ValueError: they are not written so.
    """
    name, _, text = word.partition(":")
    options: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key or not equals or not value or key in options:
            raise ValueError(
                f"options of an agent are written {name}:option=value,option=value, each once; not {part!r}"
            )
        options[key] = _value(value)
    return options


def call_factory(name: str, factory: Factory, options: dict[str, Any]) -> Agent:
    """The agent that a factory makes; a ValueError names the options there are where one is unknown."""
    parameters = inspect.signature(factory).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for key in options:
            if key not in parameters:
                raise ValueError(f"agent {name} has no option {key!r}; it has {', '.join(parameters) or 'none'}")
    return factory(**options)


def _value(text: str) -> int | float | bool | str:
    """An option's value: a whole number, a number, true or false, or the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def load_network(folder: str | Path, rules: Rules | None = None, **settings: Any) -> Any:
    """The agent of a checkpoint, with settings as of `agents.checkpoint.load_policy`.

    Raises:
        CheckpointError: it cannot be used; ImportError: torch is not installed.
    """
    try:
        from agents.checkpoint import load_policy  # torch is only needed here
    except ModuleNotFoundError as error:
        raise ImportError(f"to load the checkpoint {folder} install torch: pip install 'domino-lab[train]'") from error
    return load_policy(folder, rules, **settings)


def decide(
    engine: Engine,
    agent: Agent | None = None,
    rng: Uniforms | None = None,
    rows: npt.NDArray[Any] | None = None,
    key: npt.NDArray[np.int64] | None = None,
) -> Decisions:
    """The question that an engine's movers are asked, holding no more than the agent may see.

    Args:
        engine: N rows.
        agent: who is asked; with None the batch has history, but not the table.
        rng: chance for the agent; `Streams` of all N rows, or a NumPy `Generator`.
        rows: (n,) row numbers or (N,) bool, which rows to ask about; None: all.
        key: (N,) int64 identities of the deals.

    Returns:
        A batch of n decisions.
    """
    chosen: Any = slice(None) if rows is None else rows
    table = None
    if getattr(agent, "sees_everything", False):
        table = table_of(engine).take(chosen)
    history = engine.history()[chosen] if agent is None or getattr(agent, "needs_history", False) else None
    if rows is not None and hasattr(rng, "take"):
        rng = cast(Any, rng).take(rows)
    return Decisions(
        obs=engine.observe()[chosen],
        mask=engine.legal()[chosen],
        seat=engine.to_move()[chosen],
        history=history,
        rng=rng,
        table=table,
        rules=engine.rules,
        key=None if key is None else key[chosen],
    )

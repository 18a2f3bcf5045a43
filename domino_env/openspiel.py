"""The games on an open line as a game of OpenSpiel: `pyspiel.load_game("python_domino(rules=tiny_pairs)")`.

Importing this module registers `python_domino`; `load_game` makes one from the rules' own fields. Seats are players,
action ids are ours (57, K4), a pass is an action, returns are the points of one deal (S9). Chance is explicit: who
leads where the lead rotates, then the deal, by whole hands in small sets and tile by tile in large ones
(`domino_env.tree`). S4 is off. Blind games are refused. `AgentPolicy` lets our agents play there.

Parameters of `python_domino`, -1 or "" for what the preset has: rules (a preset), leader, seats, hand_size, max_pip,
lone_blank, pairs and labelled_ends (0 or 1), lead, chain, block_score, equal_block, out_score.

API: Lanctot et al. 2019, "OpenSpiel: A Framework for Reinforcement Learning in Games", arXiv 1908.09453.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from domino_env.decisions import Decisions
from domino_env.observation import layout_of
from domino_env.rules import Rules, get_rules
from domino_env.solo import ChainSolo, Solo
from domino_env.tiles import NUM_ACTIONS, NUM_TILES, action_name
from domino_env.tree import CHANCE, OVER, Position, Setup

try:
    import pyspiel
    from open_spiel.python import policy as spiel_policy
except ModuleNotFoundError as error:
    if error.name not in ("pyspiel", "open_spiel"):
        raise
    raise ImportError(
        "this needs open_spiel; install the extra openspiel: pip install 'domino-lab[openspiel]'"
    ) from None

__all__ = ["AgentPolicy", "DominoGame", "DominoState", "load_game", "question"]

_NUMBERS = ("seats", "hand_size", "max_pip", "lone_blank")
_FLAGS = ("pairs", "labelled_ends")
_WORDS = ("lead", "chain", "block_score", "equal_block", "out_score")
_NAME = "python_domino"

_TYPE = pyspiel.GameType(
    short_name=_NAME,
    long_name="Dominoes on an open line, in pairs or each for itself",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=8,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={
        "rules": "sport_book",
        "leader": -1,
        **dict.fromkeys((*_NUMBERS, *_FLAGS), -1),
        **dict.fromkeys(_WORDS, ""),
    },
)


class DominoGame(pyspiel.Game):
    """A game of `python_domino`; `setup` says which. Errors are ValueErrors of one line."""

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given = params or {}
        asked: dict[str, Any] = {key: given[key] for key in _NUMBERS if given.get(key, -1) != -1}
        asked |= {key: bool(given[key]) for key in _FLAGS if given.get(key, -1) != -1}
        asked |= {key: given[key] for key in _WORDS if given.get(key, "")}
        self.setup = Setup(get_rules(given.get("rules", "sport_book"), **asked), given.get("leader", -1))
        rules = self.setup.rules
        super().__init__(
            _TYPE,
            pyspiel.GameInfo(
                num_distinct_actions=NUM_ACTIONS,
                max_chance_outcomes=self.setup.most_outcomes,
                num_players=rules.seats,
                min_utility=-float(self.setup.most_points),
                max_utility=float(self.setup.most_points),
                utility_sum=0.0,
                max_game_length=rules.max_plies,
            ),
            given,
        )

    @property
    def rules(self) -> Rules:
        """What is played."""
        return self.setup.rules

    def max_chance_nodes_in_history(self) -> int:
        """Chance nodes of a deal."""
        return self.setup.chance_nodes

    def new_initial_state(self) -> DominoState:
        """The state before anything is dealt."""
        return DominoState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> _Observer:
        """What observes its states."""
        return _Observer(self.setup, iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False), params)


class DominoState(pyspiel.State):
    """A state of `python_domino`: a `Position` in OpenSpiel's words."""

    def __init__(self, game: DominoGame) -> None:
        super().__init__(game)
        self.position: Position = game.setup.start()

    def current_player(self) -> int:
        """Seat to move, or OpenSpiel's number for chance or the end."""
        mover = self.position.mover
        return int({CHANCE: pyspiel.PlayerId.CHANCE, OVER: pyspiel.PlayerId.TERMINAL}.get(mover, mover))

    def _legal_actions(self, player: int) -> list[int]:
        return self.position.legal_actions() if player == self.position.mover else []

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Outcomes of a chance node and their probabilities."""
        return self.position.outcomes()

    def _apply_action(self, action: int) -> None:
        self.position = self.position.after(action)

    def _action_to_string(self, player: int, action: int) -> str:
        return self.position.outcome_name(action) if player == pyspiel.PlayerId.CHANCE else action_name(action)

    def is_terminal(self) -> bool:
        """Whether the deal is over."""
        return self.position.mover == OVER

    def returns(self) -> list[float]:
        """Points of each seat."""
        return list(self.position.returns())

    def __str__(self) -> str:
        """Each seat's knowledge, which together is all there is."""
        return "\n".join(self.position.key(seat) for seat in range(len(self.position.hands)))


class _Observer:
    """Tensors and strings of what a seat knows (perfect recall) or sees now.

    Perfect recall: `player` and `leader` one-hot by seat, `hand` (28) the tiles it was dealt, `moves` (plies, 57)
    one-hot. Else `observation`, our observation vector as `layout_of(rules)` says, and `action_mask` (57), off turn
    with a pass alone. Before the deal is whole both hold no more than the hand.
    """

    def __init__(self, setup: Setup, kind: Any, params: Any) -> None:
        if params:
            raise ValueError(f"observers of {_NAME} have no parameters; got {params}")
        if not kind.public_info or kind.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            raise ValueError(f"observers of {_NAME} show what one seat knows: public information and its own")
        rules = setup.rules
        self._recall = kind.perfect_recall
        self._asked = _Asked(rules)
        self._hand = layout_of(rules).slices["hand"]
        shapes = (
            {
                "player": (rules.seats,),
                "leader": (rules.seats,),
                "hand": (NUM_TILES,),
                "moves": (rules.max_plies, NUM_ACTIONS),
            }
            if self._recall
            else {"observation": (layout_of(rules).size,), "action_mask": (NUM_ACTIONS,)}
        )
        self.tensor = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()), np.float32)
        self.dict: dict[str, npt.NDArray[np.float32]] = {}
        at = 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            self.dict[name] = self.tensor[at : at + size].reshape(shape)
            at += size

    def set_from(self, state: DominoState, player: int) -> None:
        """Make `tensor` and `dict` what a seat knows or sees."""
        position = state.position
        self.tensor.fill(0)
        if self._recall:
            self.dict["player"][player] = 1
            if position.leader >= 0:
                self.dict["leader"][position.leader] = 1
            hand = (position.dealt or position.hands)[player]
            self.dict["hand"][:] = hand >> np.arange(NUM_TILES) & 1
            self.dict["moves"][np.arange(len(position.moves)), list(position.moves)] = 1
        elif position.dealt:
            self.dict["observation"][:] = self._asked.table(position).see(player)[0]
            self.dict["action_mask"][:] = position.may(player) >> np.arange(NUM_ACTIONS) & 1
        else:
            self.dict["observation"][self._hand] = position.hands[player] >> np.arange(NUM_TILES) & 1

    def string_from(self, state: DominoState, player: int) -> str:
        """The same as text: what a seat knows by perfect recall, or the bits that it sees and the actions it has."""
        position = state.position
        if self._recall:
            return position.key(player)
        self.set_from(state, player)
        seen = np.packbits(self.dict["observation"].astype(np.uint8)).tobytes().hex()
        may = [action_name(a) for a in np.flatnonzero(self.dict["action_mask"]).tolist()]
        return f"seat {player} sees {seen} may {' '.join(may)}"


class _Asked:
    """A table of our own engine that follows positions: it plays on where one continues the last, else anew."""

    def __init__(self, rules: Rules) -> None:
        self._table = ChainSolo(rules) if rules.chains else Solo(rules)
        self._at: tuple[tuple[int, ...], int] | None = None  # hands as dealt, and who led
        self._moves: tuple[int, ...] = ()

    def table(self, position: Position) -> Solo | ChainSolo:
        """The table as it stands in a position."""
        at, moves = (position.dealt, position.leader), self._moves
        if self._at != at or position.moves[: len(moves)] != moves:
            self._table.deal(np.array([position.dealt], np.uint32), np.array([position.leader]))
            self._at, moves = at, ()
        for action in position.moves[len(moves) :]:
            self._table.play(action)
        self._moves = position.moves
        return self._table


class Weighing(Protocol):
    """An agent that can say how likely it is to choose each action."""

    name: str

    def probabilities(self, batch: Decisions, /) -> npt.NDArray[Any]:
        """(N, actions) rows that add up to 1, by the decision alone."""
        ...


class AgentPolicy(spiel_policy.Policy):
    """One of our agents as an OpenSpiel policy of all seats, by its `probabilities`.

    Raises:
        ValueError: an agent that has none, or that does not play the game.
    """

    def __init__(self, game: Any, agent: Weighing) -> None:
        if not callable(getattr(agent, "probabilities", None)):
            raise ValueError(f"agent {agent.name} has no probabilities: choose a rule player or a network")
        setup = DominoGame(game.get_parameters()).setup
        if (check := getattr(agent, "check", None)) is not None:
            check(setup.rules)
        super().__init__(game, list(range(game.num_players())))
        self._agent = agent
        self._asked = _Asked(setup.rules)
        self._known: dict[str, dict[int, float]] = {}  # what was asked before; a tree asks the same again and again

    def action_probabilities(self, state: DominoState, player_id: int | None = None) -> dict[int, float]:
        """{action: probability} of all legal actions of the seat to move."""
        position = state.position
        key = position.key(position.mover)
        if key not in self._known:
            if len(self._known) >= 1 << 18:
                self._known.clear()
            batch = question(position, self._asked)
            row = np.asarray(self._agent.probabilities(batch), np.float64)[0]
            row = row / row.sum()
            self._known[key] = {action: float(row[action]) for action in position.legal_actions()}
        return self._known[key]


def question(position: Position, asked: _Asked | None = None) -> Decisions:
    """The question that the mover of a position is asked, as our agents know it: a batch of one."""
    rules = position.setup.rules
    table = (asked or _Asked(rules)).table(position)
    return Decisions(
        obs=table.see(position.mover)[0][None],
        # Of the position: the table was dealt as if a leader whom a tile binds might lay any (K1, K2).
        mask=(position.legal >> np.arange(NUM_ACTIONS) & 1).astype(np.int8)[None],
        seat=np.array([position.mover]),
        history=table.history(position.mover),
        rules=rules,
    )


def load_game(rules: str | Rules = "sport_book", leader: int = -1, **rule_overrides: Any) -> DominoGame:
    """A game of `python_domino` from a preset, or from `Rules`, with fields overridden.

    Args:
        rules: a preset's name or a `Rules`; leader: seat that leads, -1 for the rules' own.
        rule_overrides: fields of `Rules`; `redeal`, `memory` and `match_to` say nothing about a single given deal.

    Raises:
        ValueError: what cannot be played together, a blind game, or a leader that cannot be given.
    """
    game = Setup(get_rules(rules, **rule_overrides), leader).rules
    fields = {key: value for key, value in game.overrides().items() if key in (*_NUMBERS, *_FLAGS, *_WORDS)}
    flags = {key: int(value) for key, value in fields.items() if key in _FLAGS}
    return DominoGame({"rules": game.name, "leader": leader, **fields, **flags})


pyspiel.register_game(_TYPE, DominoGame)

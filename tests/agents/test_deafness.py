"""A deaf seat sees what the rules need and its own hand, no more, no less; networks, runs and checkpoints with it."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from agents import checkpoint, make_agent
from agents.base import decide
from agents.checkpoint import CheckpointError, load_policy
from agents.deafness import check_heard, deafened
from agents.networks import Policy, deaf_view, make_actor, straighten, to_bits, with_choices, with_words
from agents.owner import load_owners
from agents.pool import PoolConfig
from agents.ppo import PPOConfig, Trainer
from domino_env import get_rules, make_engine
from domino_env.deals import Streams
from domino_env.line import LineEngine
from domino_env.observation import layout_of, unpack
from domino_env.rules import describe_rules
from experiments import config as configs
from experiments.config import ConfigError
from experiments.train import load_config, train

SMALL: dict[str, Any] = {
    "deals": 24, "minibatch": 64, "hidden": [16], "critic_hidden": [16], "total_updates": 8, "opponents": [],
    "threads": 1, "precision": "float32", "dd_loss_boards": 0,
}  # fmt: skip
LABELLED = {"rule_overrides": {"labelled_ends": True}}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**settings: Any) -> Trainer:
    return Trainer(PPOConfig(**{**SMALL, **settings}))


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def shown(engine: Any) -> npt.NDArray[np.uint8]:
    """(N, nbytes) all that a network may read of an engine's movers, packed."""
    led = (engine.leader() - engine.to_move()) % engine.rules.seats
    obs = with_words(engine.observe(packed=True), engine.history(), led, engine.rules)
    return with_choices(obs, engine.history(), engine.rules)


def statistic(engine: Any) -> list[tuple[Any, ...]]:
    """By hand, what the rules need of each row, seats counted from the mover, and the mover's own hand."""
    seats, rows = engine.rules.seats, np.arange(engine.num_envs)
    around = (engine.to_move()[:, None] + np.arange(seats)) % seats
    hands = engine.hands()[rows[:, None], around]
    return list(
        zip(
            hands[:, 0].tolist(),
            np.bitwise_or.reduce(engine.played(), axis=1).tolist(),
            map(tuple, np.sort(engine.ends(), axis=1).tolist()),
            map(tuple, np.bitwise_count(hands).tolist()),
            map(tuple, engine.passed()[rows[:, None], around].tolist()),
            ((engine.leader() - engine.to_move()) % seats).tolist(),
        )
    )


GAMES: list[tuple[str, dict[str, Any]]] = [
    ("tiny_pairs", {}), ("tiny_pairs", {"labelled_ends": True}), ("tiny_pairs", {"seats": 2, "pairs": False}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "overrides"), GAMES, ids=str)
def test_what_is_left_is_the_rules_statistic_and_the_own_hand(name: str, overrides: dict[str, Any]) -> None:
    """Histories with the same of both look the same, whatever was chosen; all others look different."""
    rules = get_rules(name, **overrides)
    engine: Any = make_engine(rules, 4000, seed=1)
    rng = np.random.default_rng(1)
    layout, looks, pasts = layout_of(rules), dict[Any, set[bytes]](), dict[Any, set[bytes]]()
    for _ in range(6):
        seen = shown(engine)
        view, legal, _ = deaf_view(seen, engine.legal_bits(), layout)
        before = [row.tobytes() for row in engine.history()]
        for key, row, lays, past in zip(statistic(engine), view, legal.tolist(), before):
            looks.setdefault(key, set()).add(row.tobytes() + lays.to_bytes(8, "little"))
            pasts.setdefault(key, set()).add(past)
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
        if done.all():
            break
        engine = engine.take(~done)
    assert all(len(one) == 1 for one in looks.values())
    assert len(set.union(*looks.values())) == len(looks) > 500
    assert sum(len(one) > 1 for one in pasts.values()) > 200


@pytest.mark.parametrize("labelled", [False, True])
def test_nothing_of_who_laid_what_is_left(labelled: bool) -> None:
    """At tables of the same facts, where other seats have laid the same tiles and the line may lie the other way."""
    rules = get_rules("sport_book", labelled_ends=labelled)
    engine: Any = make_engine(rules, 300, seed=4)
    rng = np.random.default_rng(4)
    for _ in range(11):
        engine.step(engine.sample_legal(rng))
    engine = engine.take(np.flatnonzero(engine.plies() == 11))
    played, ends = engine.played(), engine.ends().astype(np.int64)
    other = np.zeros_like(played)
    for row, tiles in enumerate(played):
        all_of = [1 << t for t in range(28) if int(np.bitwise_or.reduce(tiles)) >> t & 1]
        rng.shuffle(all_of)
        for seat, count in enumerate(np.bitwise_count(tiles).tolist()):
            other[row, seat] = sum(all_of.pop() for _ in range(count))
    turn = rng.random(len(ends)) < 0.5
    twin = LineEngine.standing(
        rules, engine.hands(), other, engine.passed().astype(np.uint8), np.where(turn[:, None], ends[:, ::-1], ends),
        engine.leader(), engine.plies(),
    )  # fmt: skip
    seen, legal = engine.observe(packed=True), engine.legal_bits()
    noise = rng.integers(256, size=(2, len(seen), 24), dtype=np.uint8)
    views = [
        deaf_view(np.concatenate([one.observe(packed=True), behind], axis=1), one.legal_bits(), engine.layout)
        for one, behind in zip((engine, twin), noise)
    ]
    assert (other != played).any(axis=1).mean() > 0.9
    assert (views[0][0] == views[1][0]).all() and not views[0][0][:, engine.layout.nbytes :].any()
    # Equal ends of an open line have one action a tile, which does not turn with it.
    assert (views[0][1] == views[1][1]).all()
    straight = straighten(seen, legal, engine.layout, always=True)
    kept = unpack(views[0][0][:, : engine.layout.nbytes])
    for name, part in engine.layout.slices.items():
        if not name.startswith("played_"):
            assert (kept[:, part] == unpack(straight[0])[:, part]).all(), name
    for name in ("played_left", "played_partner", "played_right"):
        assert not kept[:, engine.layout.slices[name]].any()
    assert (unpack(seen) == unpack(engine.observe(packed=True))).all()  # what was given is left as it was


def test_labelled_ends_stay_apart_for_those_who_hear() -> None:
    """Of a tile at one of two equal ends the next seat sees which it was, and a deaf one does not."""
    for labelled in (True, False):
        rules = get_rules("sport_book", labelled_ends=labelled)
        engine: Any = make_engine(rules, 4000, seed=2)
        rng = np.random.default_rng(2)
        for _ in range(9):
            engine.step(engine.sample_legal(rng))
        ends = engine.ends()
        lays = engine.legal_bits() & np.uint64((1 << 28) - 1)
        equal = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0) & (lays != 0)
        engine = engine.take(np.flatnonzero(equal))
        assert engine.num_envs > 100
        left = (engine.legal()[:, :28] * np.arange(1, 29)).max(axis=1) - 1
        if not labelled:
            assert not engine.legal()[:, 28:56].any()
            continue
        pair = [engine.take(np.arange(engine.num_envs)) for _ in range(2)]
        done = [one.step(left + 28 * end, autoreset=False)[1] for end, one in enumerate(pair)]
        assert (done[0] == done[1]).all()
        pair = [one.take(np.flatnonzero(~done[0])) for one in pair]
        ends = pair[0].ends()
        told = [straighten(one.observe(packed=True), one.legal_bits(), one.layout)[0] for one in pair]
        differ = (told[0] != told[1]).any(axis=1)
        assert (differ == (ends[:, 0] != ends[:, 1])).all() and differ.mean() > 0.5
        deaf = [deaf_view(shown(one), one.legal_bits(), one.layout)[:2] for one in pair]
        assert all((a == b).all() for a, b in zip(*deaf))


# -- a network at the table ------------------------------------------------------------------------------------------


def network(kind: str = "public_private", rules: Any = None, **reads: Any) -> Any:
    """Random weights that make decided players."""
    actor = make_actor(kind, rules or get_rules(), [24, 24], torch.Generator().manual_seed(3), **reads)
    for name, weight in actor.named_parameters():
        weight.requires_grad_(False)
        if name.endswith("head.weight"):  # of almost 0
            weight.mul_(300)
    return actor


@pytest.mark.parametrize("kind", ["mlp", "public_private"])
@pytest.mark.parametrize("labelled", [False, True])
def test_policy_answers_alike_however_it_is_asked(kind: str, labelled: bool) -> None:
    """`probabilities`, `chances` and `answers` of a deaf player are one, and are what the network says of its view."""
    rules = get_rules("sport_club", labelled_ends=labelled)
    reads: dict[str, Any] = {"words": True, "choices": True}
    policy = Policy(network(kind, rules, **reads), rules, deaf=True, **reads)
    assert not policy.needs_history
    engine: Any = make_engine(rules, 80, seed=6)
    rng = np.random.default_rng(6)
    for _ in range(9):
        engine.step(engine.sample_legal(rng))
    engine = engine.take(np.flatnonzero(engine.legal_count() > 1))
    said = policy.probabilities(decide(engine, policy))
    assert np.allclose(said.sum(axis=1), 1, atol=1e-6) and (said[engine.legal() == 0] == 0).all()
    view, legal, turned = deaf_view(shown(engine), engine.legal_bits(), engine.layout)
    with torch.no_grad():
        logits = policy.actor(to_bits(view, torch.float32)).numpy()
    mask = np.array([[bits >> a & 1 for a in range(57)] for bits in legal.tolist()], bool)
    plain = np.where(mask, np.exp(logits), 0)
    plain /= plain.sum(axis=1, keepdims=True)
    other = np.concatenate([plain[:, 28:56], plain[:, :28], plain[:, 56:]], axis=1)
    assert np.allclose(said, np.where(turned[:, None], other, plain), atol=1e-5) and turned.any()
    rows, hands = np.arange(engine.num_envs), engine.hands()[np.arange(engine.num_envs), engine.to_move()]
    asked = engine.observe(packed=True), None, rows, hands, engine.legal_bits()
    assert np.allclose(policy.answers(*asked), said, atol=1e-5)
    actions = said.argmax(axis=1)
    assert np.allclose(policy.chances(*asked, actions), said.max(axis=1), atol=1e-5)
    assert (policy.act(decide(engine, policy)) == actions).all()
    hearing = Policy(network(kind, rules, **reads), rules, deafness=0.25, **reads)
    assert hearing.needs_history and not hearing.deaf
    heard = hearing.probabilities(decide(engine, hearing))
    assert np.abs(heard - said).max() > 0.1
    twin = hearing.deafened()
    assert (twin.probabilities(decide(engine, twin)) == said).all() and twin.deafened() is twin
    assert (hearing.probabilities(decide(engine, hearing)) == heard).all()  # it hears as before


def test_who_cannot_be_deaf_is_refused() -> None:
    with pytest.raises(ValueError, match=r"trained with deaf=0 .* out of distribution .* train it with deaf=0\.25"):
        Policy(network(), get_rules(), "pupil").deafened()
    with pytest.raises(ValueError, match="pupil cannot play hearing: it was trained with deaf=1"):
        check_heard("pupil", 1.0, False)
    with pytest.raises(ValueError, match="remembers the events of the deal: it cannot be deaf"):
        Policy(network("gru", state=8), get_rules(), deaf=True)
    for rules in ("blitz", "blind"):
        with pytest.raises(ValueError, match="one tile a turn on an open line, not in"):
            Policy(network("mlp", get_rules(rules)), get_rules(rules), deaf=True)
        with pytest.raises(ValueError, match="deaf") as caught:
            PPOConfig(rules=rules, advantage="seat", opponents=[], deaf=0.5)
        assert caught.value.args[0] == "deaf"
    with pytest.raises(ValueError, match=r"must be in 0\.\.1, got 1\.5"):
        PPOConfig(deaf=1.5)


@pytest.mark.parametrize("algorithm", ["recurrent", "dqn", "nfsp", "imitation", "expert"])
def test_other_algorithms_have_no_deaf_seats(algorithm: str) -> None:
    with pytest.raises(ConfigError, match=r'unknown key "deaf"|deaf: expert learns without'):
        load_config(None, [f"algorithm={algorithm}", "deaf=0.25"])


# -- training --------------------------------------------------------------------------------------------------------


def deaf_rows(trainer: Trainer, rollout: Any) -> npt.NDArray[np.bool_]:
    """(T,) whose own tiles are shown as all on the line."""
    layout = trainer.layout
    obs, whole = unpack(rollout.obs), unpack(rollout.whole)
    rows = (obs[:, layout.slices["played_me"]] != whole[:, layout.slices["played_me"]]).any(axis=1)
    return rows | (obs[:, 8 * layout.nbytes :] != whole[:, 8 * layout.nbytes :]).any(axis=1)


@pytest.mark.parametrize(("chance", "settings"), [(0.25, {}), (1.0, {}), (0.5, LABELLED)], ids=str)
def test_seats_are_deaf_for_a_whole_deal(chance: float, settings: dict[str, Any]) -> None:
    trainer = small(deaf=chance, deals=128, words=True, alternatives=False, **settings)
    rollout: Any = trainer._play(0).rollout
    told = deaf_rows(trainer, rollout)
    begun = np.flatnonzero(unpack(rollout.whole)[:, trainer.layout.slices["end_left"]].any(axis=1))
    _, place = np.unique((rollout.deal * 4 + rollout.seat)[begun], return_inverse=True)
    share = np.bincount(place, told[begun]) / np.bincount(place)  # of the decisions of each seat of each deal
    assert set(share.tolist()) <= {0.0, 1.0} and abs(share.mean() - chance) < 0.1
    view, _, _ = deaf_view(rollout.whole, rollout.legal, trainer.layout)
    assert (view[told] == rollout.obs[told]).all() and (rollout.whole[~told] == rollout.obs[~told]).all()
    for legal, action in zip(rollout.legal.tolist(), rollout.action.tolist()):
        assert legal >> action & 1
    if settings:  # labelled: the lines of those who hear lie as they lie, of the others the smaller end is at the left
        low, high = (unpack(rollout.obs)[:, trainer.layout.slices[f"end_{side}"]] for side in ("left", "right"))
        turned = low.argmax(axis=1) > high.argmax(axis=1)
        assert not turned[told].any() and turned[~told].any()
    trainer.close()


@pytest.mark.parametrize("settings", [{}, {"alternatives": False, "advantage": "seat", "words": True}], ids=str)
def test_the_critic_sees_all_that_it_would(settings: dict[str, Any]) -> None:
    """With a network that does not look at what it hears the deals are the same, and so is all that is said of them."""
    parts = []
    for chance in (0.0, 1.0):
        trainer = small(deaf=chance, **settings)
        trainer.actor.flat.zero_()
        trainer.actor.refresh()
        rollout: Any = trainer._play(0).rollout
        if chance:
            assert rollout.whole is not None
            rollout.obs, rollout.whole = rollout.whole, None
        parts.append(rollout)
        trainer.close()
    for name, ours in vars(parts[0]).items():
        theirs = getattr(parts[1], name)
        assert (ours is None and theirs is None) or np.array_equal(ours, theirs), name


@pytest.mark.parametrize(
    "settings",
    [{"network": "public_private", "owner_coef": 0.1}, {"alternatives": False, **LABELLED}],
    ids=["alternatives", "taken"],
)
def test_updates_learn_and_chance_so_small_that_nobody_is_deaf_changes_nothing(settings: dict[str, Any]) -> None:
    plain, never, often = (small(deaf=chance, **settings) for chance in (0.0, 1e-12, 0.5))
    for trainer in (plain, never, often):
        before = {name: tensor.clone() for name, tensor in trainer.model().items()}
        for _ in range(2):
            trainer.update()
        assert all(torch.isfinite(tensor).all() for tensor in trainer.model().values())
        assert not same(before, trainer.model())
        trainer.close()
    assert same(plain.model(), never.model()) and same(plain.optimizer(), never.optimizer())
    assert not same(plain.model(), often.model())


def test_the_deaf_twin_gives_no_weight_to_what_it_never_sees() -> None:
    """After some updates the weights of what others chose are those of the beginning, and a hearing run's are not."""
    twins = small(deaf=1.0, alternatives=False), small(deaf=0.25, alternatives=False)
    layout = twins[0].layout
    blank = [range(p.start, p.stop) for n, p in layout.slices.items() if n in ("played_left", "played_partner")]
    columns = [*blank[0], *blank[1], *range(layout.size, layout.size + 160)]
    moved = []
    for trainer in twins:
        first = trainer.actor.network.torso[0].weight  # type: ignore[union-attr,index]
        before = first.detach()[:, columns].clone()
        for _ in range(2):
            trainer.update()
        moved.append(float((first.detach()[:, columns] - before).abs().max()))
        trainer.close()
    assert moved[0] == 0 and moved[1] > 1e-4


@pytest.mark.parametrize("chance", [0.5, 1.0])
def test_past_selves_hear_unless_their_network_never_did(chance: float) -> None:
    trainer = small(deaf=chance, pool=PoolConfig(share=1.0, every=1, members=["greedy"]), alternatives=False)
    trainer.update()
    asked: list[npt.NDArray[np.uint8]] = []
    choose = trainer._choose_past

    def watched(number: int, obs: npt.NDArray[np.uint8], *rest: Any) -> npt.NDArray[np.int64]:
        asked.append(obs)
        return choose(number, obs, *rest)

    trainer._choose_past = watched  # type: ignore[assignment,method-assign]
    rollout: Any = trainer._play(0).rollout
    obs = unpack(np.concatenate(asked))
    late = obs[:, trainer.layout.slices["end_left"]].any(axis=1)
    hears = obs[late, 8 * trainer.layout.nbytes :].any(axis=1)
    assert late.sum() > 10 and hears.all() == (chance < 1) and hears.any() == (chance < 1)
    told = deaf_rows(trainer, rollout)
    assert told.any() and (told[unpack(rollout.whole)[:, trainer.layout.slices["end_left"]].any(axis=1)].mean() > 0.3)
    trainer.close()


# -- runs and checkpoints --------------------------------------------------------------------------------------------

WORDS = [
    "deals=16", "minibatch=64", "hidden=[16]", "critic_hidden=[16]", "eval_boards=4", "evaluate_every=99",
    "opponents=[]", "threads=1", "dd_loss_boards=0", "keep_checkpoints=9", "precision=float32",
]  # fmt: skip


def run(folder: Path, *words: str) -> Path:
    return Path(train(None, [*WORDS, f"runs_dir={folder}", *words], None, json=True)["run"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    """By chance: two updates and their checkpoints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.train.SAMPLE_DEALS", 4)
        folder = tmp_path_factory.mktemp("runs")
        settings = {0.0: [], 0.25: ["owner_coef=0.1", "checkpoint_every=1"], 1.0: []}
        return {chance: run(folder, f"deaf={chance}", "total_updates=2", *more) for chance, more in settings.items()}


def test_resume_is_bit_equal_and_cannot_change_who_is_deaf(runs: dict[float, Path], tmp_path: Path) -> None:
    latest = runs[0.25] / "checkpoints" / "latest"
    whole = [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")]
    resumed = train(None, [], latest.resolve().with_name("00000001"), json=True)
    assert resumed["updates"] == 2
    assert [(latest / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")] == whole
    for chance, path in runs.items():
        with pytest.raises(ConfigError, match=f"deaf=0.75 cannot be changed on resume; .* has {chance}"):
            train(None, ["deaf=0.75"], path, json=True)


def edited(path: Path, to: Path, **changes: Any) -> Path:
    """A copy of a checkpoint with other words in its state; None takes a key of its policy away."""
    found = checkpoint.load(checkpoint.resolve(path))
    policy = {key: value for key, value in (found.state["policy"] | changes).items() if value is not None}
    config = {key: value for key, value in found.state["config"].items() if key != "deaf"}
    state = {key: found.state[key] for key in ("algorithm", "rules", "counters")}
    return checkpoint.save(to, 2, found.model, found.optimizer, {**state, "policy": policy, "config": config})


def test_a_run_from_before_there_were_deaf_seats_hears(runs: dict[float, Path], tmp_path: Path) -> None:
    old = edited(runs[0.0], tmp_path / "checkpoints", deaf=None, labels=None)
    policy = load_policy(old)
    assert not policy.deaf and policy.deafness == 0
    with pytest.raises(ConfigError, match=r"deaf=0\.25 cannot be changed on resume"):
        train(None, ["deaf=0.25"], old, json=True)
    for bad in (True, -0.1, 2, "much"):
        with pytest.raises(CheckpointError, match=r"it is a number in 0\.\.1"):
            load_policy(edited(runs[0.0], tmp_path / "bad", deaf=bad))


def test_loading_plays_as_it_learned(runs: dict[float, Path]) -> None:
    assert checkpoint.load(checkpoint.resolve(runs[0.25])).state["policy"]["deaf"] == 0.25
    hearing, twin = load_policy(runs[0.25]), load_policy(runs[1.0])
    assert (hearing.deaf, hearing.deafness, twin.deaf, twin.deafness) == (False, 0.25, True, 1.0)
    assert load_policy(runs[0.25], deaf=True).deaf and load_policy(runs[1.0], deaf=True).deaf
    assert not load_policy(runs[0.0], deaf=False).deaf
    with pytest.raises(
        CheckpointError, match=r"trained with deaf=0 .* out of distribution .* train it with deaf=0\.25"
    ):
        load_policy(runs[0.0], deaf=True)
    with pytest.raises(CheckpointError, match="trained with deaf=1 and has never seen what others chose"):
        load_policy(runs[1.0], deaf=False)
    # As agents by name.
    for path in (runs[0.25], runs[1.0]):
        agent: Any = make_agent(f"deaf:model={path}", "sport_book")
        assert agent.deaf and agent.name == f"deaf:model={path}"
    with pytest.raises(ValueError, match="it was trained with deaf=0"):
        make_agent(f"deaf:model={runs[0.0]}")
    with pytest.raises(ValueError, match="was trained for"):
        make_agent(f"deaf:model={runs[0.25]}", "sport_club")
    with pytest.raises(ValueError, match="does not exist"):
        make_agent("deaf:model=nowhere")
    plain = make_agent(str(runs[1.0]))
    assert isinstance(plain, Policy) and plain.deaf


def test_a_deaf_player_plays_whole_deals_and_says_who_holds_what(runs: dict[float, Path]) -> None:
    """Without history; and the head for the owners is shown what the player is shown."""
    agent: Any = make_agent(f"deaf:model={runs[0.25]}")
    engine: Any = make_engine("sport_book", 12, seed=8)
    streams = Streams.of(8, np.arange(12))
    owners = load_owners(runs[0.25])
    owners.policy = owners.policy.deafened()
    while True:
        batch = decide(engine, agent, streams)
        assert batch.history is None
        said = owners.probabilities(batch)
        twin = make_twin(engine)
        assert np.allclose(said, owners.probabilities(decide(twin, agent)), atol=1e-6)
        actions = agent.act(batch)
        assert (actions == agent.act(decide(twin, agent))).all()
        _, done = engine.step(actions, autoreset=False)
        if done.all():
            break
        engine, streams = engine.take(~done), streams.take(~done)


def make_twin(engine: Any) -> Any:
    """The same facts, but all tiles on the line were laid by the seats in turn, from the lowest."""
    played = np.zeros_like(engine.played())
    for row, tiles in enumerate(engine.played()):
        all_of = [1 << t for t in range(28) if int(np.bitwise_or.reduce(tiles)) >> t & 1]
        for seat, count in enumerate(np.bitwise_count(tiles).tolist()):
            played[row, seat] = sum(all_of.pop(0) for _ in range(count))
    voids, ends = engine.passed().astype(np.uint8), engine.ends().astype(np.int64)
    return LineEngine.standing(engine.rules, engine.hands(), played, voids, ends, engine.leader(), engine.plies(), None)


def test_labelled_runs_from_before_they_were_shown_labels_are_refused(tmp_path: Path) -> None:
    trainer = small(**LABELLED)
    state = {
        "algorithm": "ppo", "config": configs.as_dict(trainer.config), "rules": describe_rules(trainer.rules),
        "counters": trainer.counters(),
    }  # fmt: skip
    told = trainer.describe()
    assert told["labels"] is True
    for number, policy in enumerate((told, {key: value for key, value in told.items() if key != "labels"}), 1):
        checkpoint.save(tmp_path, number, trainer.model(), {}, {**state, "policy": policy})
    trainer.close()
    assert load_policy(tmp_path / "00000001").rules.labelled_ends
    with pytest.raises(CheckpointError, match="not told labelled ends apart; train it again"):
        load_policy(tmp_path / "00000002")


def test_deafened_leaves_what_it_is_given() -> None:
    engine: Any = make_engine("sport_book", 5, seed=1)
    for _ in range(6):
        engine.step(engine.legal().argmax(axis=1))
    seen = shown(engine)
    before = seen.copy()
    view = deafened(seen, engine.layout)
    assert (seen == before).all() and (view != seen).any() and view.shape == seen.shape

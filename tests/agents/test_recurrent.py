"""The player that remembers: one memory for acting, learning and the table (B29), and what a run of it leaves."""

import dataclasses
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import checkpoint
from agents.base import Decisions, decide, make_agent
from agents.checkpoint import CheckpointError, load_critic, load_policy
from agents.networks import (
    RECURRENT,
    MaskedCategorical,
    Policy,
    PublicPrivate,
    Recurrent,
    event_words,
    history_words,
    make_actor,
    mirrored,
    to_bits,
    to_events,
    to_mask,
)
from agents.recurrent import Deals, RecurrentConfig, Trainer, gather
from domino_env import get_rules, make_engine
from domino_env.observation import layout_of
from domino_env.rules import Rules
from domino_env.tiles import PASS, tile_index
from experiments.config import find, load
from experiments.evaluate import evaluate
from experiments.train import train

RULES = get_rules("sport_book")
LAYOUT = layout_of(RULES)
SMALL: dict[str, Any] = {
    "deals": 64, "minibatch_deals": 16, "hidden": [32, 32], "critic_hidden": [32], "state": 16, "total_updates": 8,
    "precision": "float32", "opponents": [], "threads": 1,
}  # fmt: skip
BLITZ = {"rules": "blitz", "advantage": "seat", "rule_overrides": {"seats": 5, "chain": "one"}}
GAMES: list[dict[str, Any]] = [{}, {"network": "gru_public_private"}, {"rule_overrides": {"lead": "double_six"}}, BLITZ]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def mark(actor: Any) -> Any:
    """Makes the preferences of a fresh network plain, and lets its memory count; the network."""
    with torch.no_grad():
        actor.head.head.weight.mul_(300 if isinstance(actor.head, PublicPrivate) else 60)
        actor.memory.weight_ih.mul_(2)
        actor.memory.bias_ih.normal_(generator=torch.Generator().manual_seed(3))
    return actor


def small(**settings: Any) -> Trainer:
    trainer = Trainer(RecurrentConfig(**{**SMALL, **settings}))
    mark(trainer.actor.network)
    trainer.actor.refresh()
    return trainer


def recorded(trainer: Trainer) -> tuple[Deals, torch.Tensor]:
    """Both parts of an update's deals, and the logits of acting in the order of their rows."""
    said: list[torch.Tensor] = []
    logits = trainer._logits
    deals, parts = 0, []
    place: list[Any] = []

    def listen(obs: Any, state: Any) -> Any:
        assert state.grad_fn is None and not state.requires_grad  # B11
        out = logits(obs, state)
        said.append(out[: len(obs)].clone())
        return out

    trainer._logits = listen  # type: ignore[method-assign]
    for number in range(2):
        parts.append(trainer._play(number))
        place.append(parts[-1].rollout.deal + deals)
        deals += parts[-1].deals
    trainer._logits = logits  # type: ignore[method-assign]
    return gather(parts), torch.cat(said)[np.concatenate(place).argsort(kind="stable")]


def learned(trainer: Trainer, deals: Deals, some: Any) -> tuple[torch.Tensor, Any]:
    """What the update says of some deals: logits and the rows they belong to."""
    with torch.no_grad():
        logits, rows = trainer._run(deals, np.asarray(some))
    return logits[: len(rows)], rows


# -- B29: acting and learning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_b29_learning_says_at_every_step_what_acting_said(game: dict[str, Any]) -> None:
    trainer = small(**game)
    deals, acting = recorded(trainer)
    lengths = (deals.events != 0).sum(axis=0)
    assert len(lengths) == 64 and len(np.unique(lengths)) > 4  # they end at different plies
    assert len(acting) == len(deals.ply) > 64 * 8 and acting.std() > 0.1
    order = np.random.default_rng(0).permutation(64)
    for some in (order[:16], order[16:17], order[17:]):
        logits, rows = learned(trainer, deals, some)
        assert np.array_equal(np.unique(deals.place[rows]), np.sort(some))
        assert (logits - acting[torch.from_numpy(rows)]).abs().max() < 1e-5
    # B02: and so the ratio before the first step is 1.
    logits, rows = learned(trainer, deals, np.arange(64))
    rollout = deals.rollout
    policy = MaskedCategorical(logits, to_mask(rollout.legal[rows], trainer.rules.num_actions))
    again = policy.log_prob(torch.from_numpy(rollout.action[rows])).numpy()
    assert np.abs(np.exp(again - rollout.logprob[rows]) - 1).max() < 1e-5
    # Values too are those that the advantages were made of.
    values = trainer._values(rollout.obs, rollout.hidden)
    assert np.abs(values - (rollout.target - rollout.advantage)).max() < 1e-5
    trainer.close()


@pytest.mark.parametrize("game", GAMES[:2], ids=str)
def test_b29_a_deal_begins_with_nothing_remembered(game: dict[str, Any]) -> None:
    trainer = small(**game)
    deals, acting = recorded(trainer)
    leads = deals.first[:-1]
    assert (deals.ply[leads] == 0).all()
    with torch.no_grad():
        bits = to_bits(deals.rollout.obs[leads], torch.float32)
        fresh = trainer.actor.fast(torch.cat([bits, torch.zeros(64, 16)], 1))
        other = trainer.actor.fast(torch.cat([bits, torch.ones(64, 16)], 1))
    logits, rows = learned(trainer, deals, np.arange(64))
    assert (acting[leads] - fresh).abs().max() < 1e-5 and (logits[np.isin(rows, leads)] - fresh).abs().max() < 1e-5
    assert (fresh - other).abs().max() > 1e-2  # another state would say something else
    trainer.close()


def test_forced_leads_are_remembered_too() -> None:
    """The holder of 6-6 leads with it, so the first decision of a deal comes after an event, or after some."""
    trainer = small(rule_overrides={"lead": "double_six"})
    deals, _ = recorded(trainer)
    assert (deals.ply[deals.first[:-1]] > 0).all()
    assert (deals.events[0] == event_words(np.array(0), np.array(7 << 9 | 7 << 6 | tile_index("6-6")))).all()
    trainer.close()


def test_b29_deals_of_a_minibatch_do_not_touch_each_other_and_nothing_is_foreseen() -> None:
    trainer = small()
    deals, _ = recorded(trainer)
    some = np.array([3, 40, 9, 61])
    logits, rows = learned(trainer, deals, some)
    place, ply = deals.place[rows], deals.ply[rows]
    for changed, at in ((40, 0), (3, 6), (61, 11)):
        events = deals.events.copy()
        events[at:, changed] = events[at:, changed] << np.uint64(1)
        after, _ = learned(trainer, dataclasses.replace(deals, events=events), some)
        moved = ((after - logits).abs() > 1e-6).any(dim=1).numpy()
        later = (place == changed) & (ply > at)
        assert torch.equal(after[~later], logits[~later])  # not what came before, and no other deal
        assert moved[later].all() and later.any()
    trainer.close()


def test_b29_values_leave_the_memory_as_it_is_and_steps_make_a_new_one() -> None:
    trainer = small()
    deals, _ = recorded(trainer)
    obs, hidden = deals.rollout.obs[:50], deals.rollout.hidden[:50]
    with torch.inference_mode():
        state = torch.randn(50, 16, generator=torch.Generator().manual_seed(0))
        before = state.clone()
        trainer._values(obs, hidden)
        trainer._logits(obs, state)
        after = trainer._remember(deals.events[0, :50], state)
    assert torch.equal(state, before) and not torch.equal(after, before)
    trainer.close()


def test_b11_playing_on_keeps_nothing() -> None:
    trainer = small()

    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())

    trainer._play(0)
    before = tensors()
    for _ in range(3):
        trainer._play(0)
    assert tensors() <= before
    trainer.close()


def test_the_gradient_goes_back_to_the_first_event() -> None:
    memory = mark(make_actor("gru", RULES, [8], torch.Generator().manual_seed(0), state=8)).memory
    events = (torch.rand(25, 3, 64, generator=torch.Generator().manual_seed(1)) < 0.1).float().requires_grad_()
    states = memory.run(events)
    state, each = memory.start(3), [memory.start(3)]
    for event in events:
        state = memory.step(event, state)
        each.append(state)
    assert states.shape == (26, 3, 8) and (states - torch.stack(each)).abs().max() < 1e-5
    ours, plain = (torch.autograd.grad(one[-1, 0].sum(), events)[0] for one in (states, torch.stack(each)))
    assert torch.allclose(ours, plain, atol=1e-6)
    assert ours[0, 0].abs().max() > 0 and not ours[:, 1:].any()


# -- events ----------------------------------------------------------------------------------------------------------


def bits_of(words: Any) -> set[int]:
    return {bit for bit in range(64) if int(words) >> bit & 1}


def test_an_event_in_bits() -> None:
    def event(left: int, right: int, action: int) -> set[int]:
        return bits_of(event_words(np.array(2), np.array(left << 9 | right << 6 | action)))

    tile, low, high, covered, who = tile_index("3-5"), 29, 36, 43, 50
    assert event(7, 7, tile) == {tile, who + 2}  # a lead
    assert event(2, 5, tile + 28) == {tile, low + 2, high + 5, covered + 5, who + 2}
    assert event(5, 2, tile) == {tile, low + 2, high + 5, covered + 5, who + 2}  # the same on the turned line
    assert event(4, 1, PASS) == {28, low + 1, high + 4, who + 2}
    history = np.array([[1 << 12 | 7 << 9 | 7 << 6 | tile, 2 << 12 | 3 << 9 | 5 << 6 | PASS, -1]], np.int16)
    (words,) = history_words(history, 4)
    assert bits_of(words[0]) == {tile, who} and who + 1 in bits_of(words[1]) and words[2] == 0


STATES: list[tuple[str, dict[str, Any]]] = [
    ("sport_book", {}), ("sport_club", {"labelled_ends": True}), ("tiny_pairs", {}), ("blitz", {"seats": 6}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "overrides"), STATES, ids=str)
def test_the_state_carried_along_is_the_one_recalled_from_history(name: str, overrides: dict[str, Any]) -> None:
    """One event at a time, as in a rollout; and from the history as each seat sees it, as at the table."""
    rules = get_rules(name, **overrides)
    memory = mark(make_actor("gru", rules, [8], torch.Generator().manual_seed(0), state=16)).memory
    engine = make_engine(rules, 60, seed=1)
    rng = np.random.default_rng(1)
    with torch.no_grad():
        state = memory.start(60)
        for _ in range(12):
            ends = engine.ends().astype(np.int64) & 7
            who = (engine.to_move() - engine.leader()) % rules.seats
            actions = engine.sample_legal(rng)
            words = event_words(who, ends[:, 0] << 9 | ends[:, 1] << 6 | actions)
            state = memory.step(to_events(words, torch.float32), state)
            _, done = engine.step(actions, autoreset=False)
            if done.all():
                break
            if done.any():
                engine, state = engine.take(~done), state[torch.from_numpy(~done)]
            for viewer in (None, 2):
                found = memory.recall(engine.history(viewer), 64)
                assert (found[: len(state)] - state).abs().max() < 1e-6 and not found[60:].any()
    assert state.std() > 0.1


# -- at the table ----------------------------------------------------------------------------------------------------


def policy_of(kind: str = "gru", rules: Rules = RULES, **settings: Any) -> Policy:
    actor = make_actor(kind, rules, [48, 48], torch.Generator().manual_seed(1), state=24)
    return Policy(mark(actor), rules, **settings)


def questions(rules: Rules, rows: int = 60, seed: int = 5) -> Decisions:
    """Decisions of deals that stand at different plies."""
    parts = []
    rng = np.random.default_rng(seed)
    for plies in (0, 1, 4, 9, 13):
        engine = make_engine(rules, rows, seed=seed + plies)
        for _ in range(plies):
            engine.step(engine.sample_legal(rng))
        parts.append(decide(engine))
    names = ("obs", "mask", "seat", "history")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Decisions(**joined, rng=np.random.default_rng(1), rules=rules)


def take(batch: Decisions, rows: Any) -> Decisions:
    changes = {name: getattr(batch, name)[rows] for name in ("obs", "mask", "seat", "history")}
    return dataclasses.replace(batch, **changes)


@pytest.mark.parametrize("kind", RECURRENT)
def test_what_it_plays_does_not_depend_on_the_batch(kind: str) -> None:
    batch, policy = questions(RULES), policy_of(kind)
    assert policy.needs_history and not policy.sees_everything
    whole = policy.probabilities(batch)
    assert (whole[batch.mask == 0] == 0).all() and np.allclose(whole.sum(1), 1, atol=1e-6)
    assert (batch.mask[np.arange(len(batch)), policy.act(batch)] == 1).all()
    order = np.random.default_rng(0).permutation(len(batch))
    assert np.array_equal(policy.probabilities(take(batch, order)), whole[order])
    for some in (np.arange(1), np.arange(60), np.arange(250, 257), np.arange(0)):
        assert np.array_equal(policy.probabilities(take(batch, some)), whole[some])
    longer = np.pad(batch.history, ((0, 0), (0, 9)), constant_values=-1)  # type: ignore[arg-type]
    assert np.array_equal(policy.probabilities(dataclasses.replace(batch, history=longer)), whole)


def test_it_plays_what_the_run_taught_it() -> None:
    """The table's answer is the run's: state from the history, the line turned alike."""
    trainer = small()
    policy = trainer.policy()
    engine = trainer._engines[0]
    rollout = trainer._play(0).rollout
    engine = make_engine(RULES, engine.num_envs, seed=0)
    entropy = np.random.SeedSequence([trainer.config.seed, trainer.updates, 0])
    engine.reset(seed=int(entropy.generate_state(1, np.uint64)[0]))
    live, at = np.arange(engine.num_envs), 0
    for _ in range(9):
        free = np.flatnonzero(engine.legal_count() > 1)
        rows = slice(at, at + len(free))
        assert np.array_equal(rollout.deal[rows], live[free])
        bits = engine.observe()[free]
        turned = bits[:, LAYOUT.slices["end_left"]].argmax(1) > bits[:, LAYOUT.slices["end_right"]].argmax(1)
        chosen = mirrored(rollout.action[rows], turned)
        p = policy.probabilities(decide(engine, policy, rows=free))[np.arange(len(free)), chosen]
        assert np.abs(np.log(p) - rollout.logprob[rows]).max() < 1e-4
        actions = engine.legal().argmax(axis=1)
        actions[free] = chosen
        _, done = engine.step(actions, autoreset=False)
        live, at = live[~done], at + len(free)
        engine = engine.take(~done)
    trainer.close()


def turned_line(batch: Decisions) -> Decisions:
    """The same decisions on the mirrored line, its past mirrored too."""
    obs, mask = batch.obs.copy(), batch.mask.copy()
    left, right = LAYOUT.slices["end_left"], LAYOUT.slices["end_right"]
    obs[:, left], obs[:, right] = batch.obs[:, right], batch.obs[:, left]
    mask[:, :28], mask[:, 28:56] = batch.mask[:, 28:56], batch.mask[:, :28]
    history = batch.history
    assert history is not None
    actions = (history & 63).astype(np.int64)
    ends = (history >> 9 & 7) | (history >> 6 & 7) << 3
    other = mirrored(actions, np.ones(actions.shape, np.bool_))
    later = (history >= 0) & (ends != 63)  # the lead is the same on either line
    events = (history >> 12) << 12 | (history >> 6 & 7) << 9 | (history >> 9 & 7) << 6 | other
    return dataclasses.replace(batch, obs=obs, mask=mask, history=np.where(later, events, history).astype(np.int16))


@pytest.mark.parametrize("kind", RECURRENT)
def test_the_mirrored_line_is_played_alike(kind: str) -> None:
    batch, policy = questions(RULES), policy_of(kind)
    unequal = (batch.obs[:, LAYOUT.slices["end_left"]] != batch.obs[:, LAYOUT.slices["end_right"]]).any(axis=1)
    batch = take(batch, unequal)
    other = turned_line(batch)
    assert (other.history != batch.history).any(axis=1).mean() > 0.6  # type: ignore[attr-defined]
    assert np.array_equal(history_words(other.history, 4), history_words(batch.history, 4))  # type: ignore[arg-type]
    ours, theirs = policy.probabilities(batch), policy.probabilities(other)
    assert np.array_equal(ours[:, 28:56], theirs[:, :28]) and np.array_equal(ours[:, :28], theirs[:, 28:56])
    assert ours[batch.mask == 1].std() > 0.1


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("game", ["sport_book", "blitz"])
def test_many_hands_are_asked_at_once(kind: str, game: str) -> None:
    rules = get_rules(game)
    batch, policy = questions(rules, rows=12), policy_of(kind, rules)
    p = policy.probabilities(batch)
    which, actions = np.nonzero(batch.mask)
    legal = np.packbits(batch.mask != 0, axis=1, bitorder="little").copy()
    bits = np.zeros((len(batch), 8), np.uint8)
    bits[:, : legal.shape[1]] = legal
    words = np.packbits(batch.obs, axis=1, bitorder="little").view("<u4").copy()
    hands = words[:, 0] & np.uint32((1 << 28) - 1)
    words[:, 0] ^= hands  # the own hand is not read there
    arguments = (which, hands[which], bits.view("<u8")[:, 0][which], actions)
    found = policy.chances(words.view(np.uint8), batch.history, *arguments)
    assert np.abs(found - p[which, actions]).max() < 1e-5
    part = np.array([0, 5, len(which) - 1])
    some = policy.chances(words.view(np.uint8), batch.history, *(argument[part] for argument in arguments))
    assert np.array_equal(some, found[part])
    with pytest.raises(ValueError, match="policy remembers the events of the deal: it needs the history"):
        policy.chances(words.view(np.uint8), None, *arguments)
    with pytest.raises(ValueError, match=r"policy remembers the events of the deal: it needs batch\.history"):
        policy.act(dataclasses.replace(batch, history=None))


def test_beliefs_read_it() -> None:
    pytest.importorskip("numba")
    from agents.search.position import position_at
    from agents.search.reading import policy_belief

    policy = policy_of("gru_public_private", sample=True)

    class Slow:
        """The same player without the quick way."""

        name, needs_history, probabilities, act = "slow", True, policy.probabilities, policy.act

    engine = make_engine(RULES, 6, seed=2)
    for _ in range(10):
        batch = dataclasses.replace(decide(engine, policy), rng=np.random.default_rng(4))
        engine.step(policy.act(batch))
    position = position_at(engine)
    ours, plain, rules = (
        policy_belief(position, [model] * 4, method="sampled", candidates=120) for model in (policy, Slow(), "rules")
    )
    assert np.abs(ours.marginals() - plain.marginals()).max() < 1e-4
    assert np.abs(ours.marginals() - rules.marginals()).max() > 0.05 and (ours.ess < 110).any()


# -- learning and runs -----------------------------------------------------------------------------------------------


def test_minibatches_are_whole_deals_each_once() -> None:
    trainer = small()
    deals, _ = recorded(trainer)
    minibatches = trainer._minibatches(deals, np.random.default_rng(0))
    assert minibatches.shape == (4, 16) and np.array_equal(np.sort(minibatches.ravel()), np.arange(64))
    rows = np.concatenate([deals.rows(some)[0] for some in minibatches])
    assert np.array_equal(np.sort(rows), np.arange(len(deals.ply)))
    rows, which = deals.rows(np.array([7, 2]))
    assert np.array_equal(deals.place[rows], np.array([7, 2])[which])
    assert all((np.diff(deals.ply[rows[which == one]]) > 0).all() for one in (0, 1))
    trainer.close()


def test_b02_the_first_step_finds_the_ratio_1() -> None:
    trainer = small(epochs=1, minibatch_deals=1000)
    for _ in range(2):
        figures = trainer.update()
        assert abs(figures["losses/approx_kl"]) < 1e-6 and figures["losses/clipfrac"] == 0
    assert trainer.actor.steps == 2 and trainer.deals == 128
    trainer.close()


def test_the_targets_lead_to_the_reward() -> None:
    """With lambda 1 the critic's target is the deal's reward in the mover's sign."""
    trainer = small(gae_lambda=1.0)
    deals, _ = recorded(trainer)
    rollout = deals.rollout
    ours = rollout.target * np.where(rollout.seat % 2 == 0, 20, -20)
    for deal in range(0, 64, 7):
        rows, _ = deals.rows(np.array([deal]))
        assert np.allclose(ours[rows], np.round(ours[rows[0]]), atol=1e-3)
    part = trainer._play(0)
    seat, deal, leader = part.rollout.seat, part.rollout.deal, trainer._engines[0].leader()
    found, first = np.unique(deal, return_index=True)
    assert len(found) == part.deals and len(np.unique(leader)) == 4
    led = part.rollout.target * np.where((seat - leader[deal]) % 2 == 0, 20, -20)
    assert led[first].sum() == pytest.approx(part.tally.returns, abs=1e-2)  # of the leaders' sides
    trainer.close()


@pytest.mark.parametrize("changes", [{"threads": 2}, {"precision": "bf16"}, {**BLITZ, "state": 8}], ids=str)
def test_an_update_of_other_settings(changes: dict[str, Any]) -> None:
    """Threads change nothing; bfloat16 and blitz, each seat for itself, learn too."""
    one, other = small(), small(**changes)
    start = {name: tensor.clone() for name, tensor in other.model().items()}
    for trainer in (one, other):
        figures = trainer.update()
        assert all(np.isfinite(value).all() for value in figures.values())
        trainer.close()
    for name, tensor in other.model().items():
        assert tensor.isfinite().all() and not torch.equal(tensor, start[name]), name
        if "threads" in changes:
            assert torch.equal(tensor, one.model()[name])


def test_resume_is_bit_equal(tmp_path: Path) -> None:
    def files(run: Any) -> list[bytes]:
        latest = Path(run["run"]) / "checkpoints" / "latest"
        return [(latest / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")]

    words = [f"{key}={value}" for key, value in SMALL.items() if key != "total_updates"]
    words += ["algorithm=recurrent", "total_updates=4", "checkpoint_every=2", f"runs_dir={tmp_path}"]
    whole = train(None, words, json=True)
    good = files(whole)
    resumed = train(None, [], Path(whole["run"]) / "checkpoints" / "00000002", json=True)
    assert resumed["updates"] == 4 and resumed["run"] == whole["run"] and files(resumed) == good
    assert resumed["decisions"] == whole["decisions"]
    with pytest.raises(ValueError, match="state=32 cannot be changed on resume"):
        train(None, ["state=32"], Path(whole["run"]), json=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run of seconds, with its folder."""
    torch.set_num_threads(1)
    words = [
        "total_updates=14", "deals=256", "minibatch_deals=32", "hidden=[64]", "critic_hidden=[64]", "state=24",
        "evaluate_boards=20", "eval_boards=200", "evaluate_every=7", "checkpoint_every=7", "dd_loss_boards=0",
        "opponents=[random]", f"runs_dir={tmp_path_factory.mktemp('runs')}",
    ]  # fmt: skip
    return train(find("recurrent"), words, json=True)


def test_it_learns(run: Any) -> None:
    (result,) = run["evaluations"]
    assert run["updates"] == 14 and Path(run["run"]).name.startswith("recurrent-1-")
    assert result["low"] > 1  # points a deal over random play


def test_a_run_comes_back_as_an_agent(run: Any) -> None:
    policy = load_policy(run["run"])
    assert isinstance(policy.actor, Recurrent) and policy.memory is not None and policy.memory.width == 24
    agent = make_agent(f"{run['run']}/checkpoints/latest", "sport_book")
    batch = questions(RULES, rows=10)
    assert np.array_equal(agent.act(batch), policy.act(batch))
    result = evaluate(agent, "random", rules=RULES, boards=200, seed=2)  # the boards of the run's own evaluation
    assert result.points_per_deal == run["evaluations"][0]["points_per_deal"]
    engine = make_engine(RULES, 5, seed=1)
    assert np.abs(load_critic(run["run"]).values(engine)).max() > 0
    said = checkpoint.load(checkpoint.resolve(run["run"]))
    for width in (0, 2.5, None, True):
        changed = {**said.state, "policy": {**said.state["policy"], "state": width}}
        folder = Path(run["run"]).parent / f"changed-{width}"
        checkpoint.save(folder / "checkpoints", 1, said.model, said.optimizer, changed)
        with pytest.raises(CheckpointError, match=f"its memory has width {width}; it is a whole number above 0"):
            load_policy(folder)


def test_the_shipped_config_holds_only_what_differs() -> None:
    import yaml

    config = load(find("recurrent"), [], RecurrentConfig)
    for key, value in yaml.safe_load(find("recurrent").read_text()).items():
        assert key == "algorithm" or getattr(RecurrentConfig(), key) != value, key
    assert isinstance(config, RecurrentConfig)


@pytest.mark.parametrize(
    ("settings", "key", "why"),
    [
        ({"rules": "blind"}, "rules", "blind is blind, and recurrent plays on an open line; train it with ppo"),
        ({"rules": "blitz"}, "advantage", "deal needs two sides, blitz has 4; use seat"),
        ({"state": 0}, "state", "must be at least 1, got 0"),
        ({"state": 9000}, "state", "must be at most 8192, got 9000"),
        ({"minibatch_deals": 0}, "minibatch_deals", "must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(settings: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(ValueError) as error:
        RecurrentConfig(**settings, opponents=["random"])
    assert error.value.args == (key, why)


def test_networks_that_cannot_be() -> None:
    generator = torch.Generator()
    with pytest.raises(ValueError, match="network gru is for games on an open line, and blind is blind; choose mlp"):
        make_actor("gru", get_rules("blind"), [8], generator, state=8)
    with pytest.raises(ValueError, match="network gru_public_private needs a state of at least 1 number, got 0"):
        make_actor("gru_public_private", RULES, [8], generator)

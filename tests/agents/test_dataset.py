"""Reading decisions back: in order, shuffled, from any batch on; and data that cannot be read."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from agents.dataset import DataError, DataSet, Rows, Shuffled, batches, read, schema_of, to_parquet, to_rows, to_table
from domino_env import get_rules
from experiments.export import export


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 700 decisions in five parts."""
    place = tmp_path_factory.mktemp("decisions")
    export("greedy", place, 700, seed=1, part_deals=10)
    return place


def joined(parts: list[Rows]) -> Rows:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def identity(rows: Rows) -> list[tuple[int, int]]:
    return list(zip(rows["deal"].tolist(), rows["ply"].tolist(), strict=True))


def test_reading_streams_in_order(folder: Path) -> None:
    whole = joined(list(read(folder)))
    assert identity(whole) == sorted(identity(whole)) and len(set(identity(whole))) == len(whole["deal"]) >= 700
    small = list(read(folder, ["action", "obs"], rows=50))
    assert all(list(part) == ["action", "obs"] and 0 < len(part["obs"]) <= 50 for part in small)
    assert np.array_equal(joined(small)["obs"], whole["obs"]) and whole["obs"].shape[1] == 32
    for array in whole.values():
        array[:] = 0  # nobody else holds its memory


def test_an_epoch_has_every_row_once_and_is_in_no_order(folder: Path) -> None:
    whole = joined(list(read(folder)))
    size = len(whole["deal"])
    two = list(batches(folder, 64, seed=3, epochs=2, columns=["deal", "ply", "action"], buffer=100))
    assert len(two) == 2 * -(-size // 64) and {len(one["deal"]) for one in two[:-1]} >= {64, size % 64}
    half = len(two) // 2
    first, second = joined(two[:half]), joined(two[half:])
    for epoch in (first, second):
        assert sorted(identity(epoch)) == identity(whole)
        order = np.lexsort((epoch["ply"], epoch["deal"]))
        assert np.array_equal(epoch["action"][order], whole["action"]), "rows stay together"
        assert (abs(np.diff(epoch["deal"])) <= 1).mean() < 0.4
    assert identity(first) != identity(second)
    assert identity(joined(list(batches(folder, 64, seed=4, buffer=100)))) != identity(first)


def test_each_epoch_goes_through_the_parts_in_an_order_of_its_own(folder: Path) -> None:
    orders = set()
    for epoch in range(4):
        shuffled = Shuffled(DataSet(folder), 1000, 3, ["deal"], buffer=1)  # a buffer a part
        parts = shuffled.batch(epoch)["deal"] // 10
        orders.add(tuple(parts[np.flatnonzero(np.diff(parts, prepend=-1))].tolist()))
    assert len(orders) > 1 and all(len(order) == len(set(order)) >= 5 for order in orders)


def test_any_batch_can_be_asked_for(folder: Path) -> None:
    options = {"columns": ["deal", "ply"], "buffer": 150}
    whole = list(batches(folder, 50, 7, 3, **options))
    for first in (1, 13, len(whole) - 1):
        again = list(batches(folder, 50, 7, 3, **options, first=first))
        assert [identity(one) for one in again] == [identity(one) for one in whole[first:]]
    backwards = Shuffled(DataSet(folder), 50, 7, **options)
    assert [identity(backwards.batch(n)) for n in (30, 2)] == [identity(whole[n]) for n in (30, 2)]


def test_only_chosen_deals_are_kept(folder: Path) -> None:
    shuffled = Shuffled(DataSet(folder), 40, 1, ["ply"], lambda deals: deals % 3 == 0, buffer=90)
    whole = joined(list(read(folder, ["deal", "ply"])))
    kept = joined([shuffled.batch(n) for n in range(len(shuffled))])
    assert list(kept) == ["ply"] and sorted(kept["ply"]) == sorted(whole["ply"][whole["deal"] % 3 == 0])
    with pytest.raises(DataError, match=r"none of its .* rows is left to learn from"):
        Shuffled(DataSet(folder), 40, 1, ["ply"], lambda deals: deals < 0)


def test_tables_hold_slices_and_illegal_values() -> None:
    rules, rng = get_rules("tiny_pairs"), np.random.default_rng(1)
    schema = schema_of(rules, True, {})
    rows = {field.name: rng.integers(0, 100, 9).astype(field.type.to_pandas_dtype()) for field in list(schema)[:5]}
    rows |= {"obs": rng.integers(0, 256, (9, 32), np.uint8), "mask": rng.integers(0, 2**63, 9).astype(np.uint64)}
    rows |= {"action": rows["seat"], "result": rows["ply"], "outcome": rows["seat"]}
    rows |= {"hands": rng.integers(0, 2**28, (9, 4)).astype(np.uint32)}
    rows |= {"values": rng.choice(np.array([-(2**15), -3, 0, 8], np.int16), (9, 57))}
    back = to_rows(to_table(rows, schema).slice(2, 4))
    assert all(np.array_equal(back[name], rows[name][2:6]) for name in rows)
    assert to_parquet(rows, schema) == to_parquet(rows, schema)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda folder: read(folder / "none"), "is no folder of decisions"),
        (lambda folder: read(folder.parent), "holds no decisions: it has no manifest.json"),
        (lambda folder: read(folder, ["acton"]), "has no column 'acton'; it has deal, ply"),
        (lambda folder: read(folder, ["values"]), "export with --values for it"),
        (lambda folder: read(folder, rows=0), "rows=0 must be at least 1"),
        (lambda folder: batches(folder, 0), "size=0 must be at least 1"),
        (lambda folder: batches(folder, 5, seed=-1), "seed=-1 must be at least 0"),
        (lambda folder: batches(folder, 5, epochs=-1), "epochs=-1 must not be negative"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(call, says: str, folder: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError) as caught:
        call(folder)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_damaged_data_are_named(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(folder, place)
    manifest = json.loads((place / "manifest.json").read_text())
    part = place / "part-00001.parquet"
    good = part.read_bytes()
    part.write_bytes(good[:-9])
    with pytest.raises(DataError, match=r"part-00001.parquet is missing or damaged"):
        DataSet(place)
    part.write_bytes(b"x" * len(good))
    with pytest.raises(DataError, match=r"part-00001.parquet cannot be read"):
        list(read(place))
    part.write_bytes(good)
    for change, says in (
        ({"format": 2}, "has format 2; this version reads format 1"),
        ({"parts": [{}]}, "is damaged"),
        ({"parts": []}, "holds no decisions yet"),
        ({"command": {"rules": {"name": "sprot", "overrides": {}}}}, "its rules are not known here"),
        ({"command": {"rules": {"name": "kozyol", "overrides": {}, "fields": {}}}}, "has changed since"),
    ):
        (place / "manifest.json").write_text(json.dumps(manifest | change))
        with pytest.raises(DataError, match=says):
            DataSet(place)

"""Configs: a YAML file and `key=value` words laid over a dataclass. What the dataclass does not know is an error.

The dataclass says what there is: its fields are the keys, its annotations the types, its defaults what a file leaves
out, and its `__post_init__` (or a method `validate`) what is possible: that one raises `ValueError(key, why)`. A nested
dataclass is a nested mapping; on the command line its keys are written with dots, `network.width=256`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import yaml

T = TypeVar("T")

#: Where the configs that come along lie: beside this file in an installed copy, or in the source tree.
SHIPPED = (Path(__file__).resolve().parent / "configs", Path(__file__).resolve().parent.parent / "configs")


class ConfigError(ValueError):
    """A mistake in a config; its text names the file or the command-line word, and the key."""


class _Loader(yaml.SafeLoader):
    """SafeLoader (plain data only) that knows 1e-3 as a number and refuses a key that stands there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is one word", key_node.start_mark)
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'key "{key_node.value}" stands twice', key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 takes 1e-3, 1.0e4 and -.5 for text; nobody who writes them means that.
_Loader.yaml_implicit_resolvers = {k: list(v) for k, v in yaml.SafeLoader.yaml_implicit_resolvers.items()}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


def _parse(text: str, source: str) -> Any:
    """The plain data of a YAML text; ConfigError with line and column where it is none."""
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
        why = " ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(f"{source}:{at} {why or 'not YAML'}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply") from None


def shipped() -> list[str]:
    """Names of the configs that come along, sorted."""
    return sorted({file.stem for folder in SHIPPED if folder.is_dir() for file in folder.glob("*.yaml")})


def find(path: str | Path) -> Path:
    """The file meant by `path`: that file, or the shipped config of that name (`quick`, `configs/quick.yaml`)."""
    path = Path(path)
    if path.is_file():
        return path
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, not a config file; shipped configs: {', '.join(shipped()) or 'none'}")
    if path.parent in (Path("."), Path("configs")) and path.suffix in ("", ".yaml"):
        for folder in SHIPPED:
            if (file := folder / f"{path.stem}.yaml").is_file():
                return file
    raise ConfigError(
        f"no config file {path}{_near(path.stem, shipped())}; shipped configs: {', '.join(shipped()) or 'none'}"
    )


def load(
    path: str | Path | None,
    overrides: Sequence[str],
    cls: type[T],
    *,
    saved: Mapping[str, Any] | None = None,
    source: str = "defaults",
) -> T:
    """An instance of the dataclass `cls` from a YAML file (None: its defaults) and `key=value` words over it.

    In place of a file there may be `saved` plain data, as of `as_dict`; errors say that it stands in `source`.

    Raises ConfigError, naming the file or the word, for unknown keys, wrong types and impossible values; OSError where
    the file cannot be read.
    """
    data: dict[str, Any] = {}
    origin: dict[str, str] = {}  # dotted key -> where its value was written
    base = source
    if saved is not None:
        _merge(data, saved, base, origin, "", cls)
    if path is not None:
        base = str(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ConfigError(f"{base}: not a text file in UTF-8") from None
        content = _parse(text, base)
        if content is None:
            content = {}
        if not isinstance(content, dict):
            raise ConfigError(f"{base}: expected keys and values, got {_said(content)}")
        _merge(data, content, base, origin, "", cls)
    for word in overrides:
        key, sign, value = word.partition("=")
        source = f'command line "{word}"'
        if not sign or not key.strip():
            raise ConfigError(f"{source}: expected key=value{_near(key.strip(), _keys(cls))}")
        nested: Any = _parse(value, source)
        for part in reversed(key.strip().split(".")):
            nested = {part: nested}
        _merge(data, nested, source, origin, "", cls)
    return _build(cls, data, base, origin, "")


def peek(path: str | Path | None, overrides: Sequence[str], key: str, default: Any) -> tuple[Any, str]:
    """What a file and words over it say of one top-level key, before it is known to what class they belong.

    Returns:
        The value, and where it stands. What is wrong elsewhere is left to `load`.
    """
    value, source = default, "defaults"
    if path is not None:
        with contextlib.suppress(UnicodeDecodeError):
            content = _parse(Path(path).read_text(encoding="utf-8"), str(path))
            if isinstance(content, dict) and key in content:
                value, source = content[key], str(path)
    for word in overrides:
        name, sign, text = word.partition("=")
        if sign and name.strip() == key:
            source = f'command line "{word}"'
            value = _parse(text, source)
    return value, source


def dump(config: Any) -> str:
    """The YAML text of a config dataclass, every key, in the order of its fields; `load` reads it back."""
    return str(yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True, width=120))


def as_dict(config: Any) -> dict[str, Any]:
    """The same as a dict of plain data, for JSON."""
    plain = _plain(config)
    assert isinstance(plain, dict)
    return plain


def flat(config: Any) -> dict[str, Any]:
    """The same with dotted keys and no nesting, as hparams want it."""

    def walk(node: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
        for key, value in node.items():
            if isinstance(value, Mapping):
                yield from walk(value, f"{prefix}{key}.")
            else:
                yield prefix + key, value

    return dict(walk(as_dict(config), ""))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value


def _fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"a config class is a dataclass, got {cls!r}")
    return {field.name: field for field in dataclasses.fields(cls) if field.init}


def _keys(cls: type, prefix: str = "") -> list[str]:
    """All dotted keys of a config class."""
    hints = typing.get_type_hints(cls)
    keys: list[str] = []
    for name in _fields(cls):
        keys += _keys(hints[name], f"{prefix}{name}.") if dataclasses.is_dataclass(hints[name]) else [prefix + name]
    return keys


def _near(word: str, choices: Sequence[str]) -> str:
    """'; did you mean "…"?' for the nearest choice, or nothing where none is near."""
    near = difflib.get_close_matches(word, choices, 1, 0.6)
    if not near:  # a key given without the name of its group, or with a wrong one
        near = [choice for choice in choices if choice.rpartition(".")[2] == word.rpartition(".")[2]][:1]
    return f'; did you mean "{near[0]}"?' if near else ""


def _merge(
    into: dict[str, Any], new: Mapping[Any, Any], source: str, origin: dict[str, str], prefix: str, cls: type
) -> None:
    """Lays `new` over `into`, nested where the class is, and notes where each key came from."""
    fields, hints = _fields(cls), typing.get_type_hints(cls)
    for key, value in new.items():
        dotted = f"{prefix}{key}"
        if not isinstance(key, str) or key not in fields:
            near = _near(dotted, [prefix + name for name in fields]) or _near(dotted, _keys(cls, prefix))
            known = "; known: " + ", ".join(_keys(cls, prefix))
            raise ConfigError(f'{source}: unknown key "{dotted}"{near or known}')
        origin[dotted] = source
        if dataclasses.is_dataclass(hints[key]):
            assert isinstance(hints[key], type)
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"{source}: {dotted}: expected the keys {', '.join(_fields(hints[key]))}, got {_said(value)}"
                )
            _merge(into.setdefault(key, {}), value, source, origin, dotted + ".", hints[key])
        else:
            into[key] = value


def _build(cls: type[T], data: Mapping[str, Any], base: str, origin: Mapping[str, str], prefix: str) -> T:
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for name, field in _fields(cls).items():
        dotted, hint = prefix + name, hints[name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            values[name] = _build(hint, data.get(name, {}), base, origin, dotted + ".")
        elif name in data:
            try:
                values[name] = _convert(data[name], hint)
            except ValueError as error:
                raise ConfigError(f"{origin[dotted]}: {dotted}: {error}") from None
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f'{base}: missing key "{dotted}"')
    try:
        config = cls(**values)
        validate = getattr(config, "validate", None)
        if callable(validate):
            validate()
        return config
    except ConfigError:
        raise
    except ValueError as error:
        if len(error.args) == 2:
            key, why = error.args
            dotted = prefix + str(key)
            written = dotted
            while written and written not in origin:  # a key of a mapping was written with the whole of it
                written = written.rpartition(".")[0]
            raise ConfigError(f"{origin.get(written, base)}: {dotted}: {why}") from None
        sources = sorted({origin[prefix + name] for name in values if prefix + name in origin}) or [base]
        raise ConfigError(f"{', '.join(sources)}: {error}") from None


def _said(value: Any) -> str:
    """What was given, with its kind, as a person would write it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}" (text)'
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"{value} ({type(value).__name__})"


def _kind(hint: Any) -> str:
    """What a type allows, in words."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(str(arg) for arg in args)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(arg) for arg in args)
    if origin is list or (origin is tuple and len(args) == 2 and args[1] is Ellipsis):
        return f"a list of {_kind(args[0])}"
    if origin is tuple:
        return f"a list of {len(args)}: {', '.join(_kind(arg) for arg in args)}"
    if origin is dict:
        return f"a mapping to {_kind(args[1])}"
    names: dict[Any, str] = {
        Any: "any value",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        type(None): "null",
        Path: "a path",
    }
    return names.get(hint, str(hint))


def _convert(value: Any, hint: Any) -> Any:
    """`value` as the type `hint`, or ValueError. A bool is no number, nor is "3"; 3 is a float too."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    wrong = ValueError(f"expected {_kind(hint)}, got {_said(value)}")
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        for arg in args:
            try:
                return _convert(value, arg)
            except ValueError:
                continue
        raise wrong
    if origin is Literal:
        for arg in args:
            if type(arg) is type(value) and arg == value:
                return arg
        near = _near(value, [str(arg) for arg in args]) if isinstance(value, str) else ""
        raise ValueError(f"{wrong}{near}")
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise wrong
        if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
            if len(value) != len(args):
                raise wrong
            return tuple(_convert(item, arg) for item, arg in zip(value, args))
        return origin(_convert(item, args[0]) for item in value)
    if origin is dict:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise wrong
        return {key: _convert(item, args[1]) for key, item in value.items()}
    if hint is type(None):
        if value is None:
            return None
        raise wrong
    if hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ValueError(f"expected a finite number, got {value}")
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint in (int, bool, str) and type(value) is hint:
        return value
    raise wrong

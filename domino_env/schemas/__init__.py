"""The file formats as JSON Schema, and the check of a value against one.

The files are JSON Schema 2020-12, for any program; :func:`check` knows the keywords that they use.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
KEYWORDS = (
    {"type", "const", "enum", "pattern", "minLength", "minimum", "maximum"}
    | {"items", "minItems", "maxItems", "properties", "required", "additionalProperties"}
    | {"$ref", "anyOf", "oneOf", "$schema", "$id", "$defs", "title", "description"}
)


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema called ``name``: "match"."""
    found: dict[str, Any] = json.loads(resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))
    return found


def check(name: str, part: str, value: Any) -> None:
    """Check a value of parsed JSON against one definition of a schema.

    Args:
        name: of the schema.
        part: of its ``$defs``.
        value: what was parsed.
    Raises:
        ValueError: naming the place in the value, what stands there and what is allowed.
    """
    whole = schema(name)
    _check(whole, whole["$defs"][part], value, part)


def _is(value: Any, kind: str) -> bool:
    # JSON's true is no number, though Python's is.
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _check(whole: Mapping[str, Any], rule: Mapping[str, Any], value: Any, at: str) -> None:
    if "$ref" in rule:
        return _check(whole, whole["$defs"][rule["$ref"].removeprefix("#/$defs/")], value, at)
    if "anyOf" in rule:
        return _check_any(whole, rule["anyOf"], value, at)
    kinds = rule.get("type", list(_TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is(value, kind) for kind in kinds):
        raise ValueError(f"{at} must be {' or '.join(kinds)}, not {_shown(value)}")
    if "const" in rule and value != rule["const"]:
        raise ValueError(f"{at} must be {rule['const']!r}, not {_shown(value)}")
    if "enum" in rule and value not in rule["enum"]:
        raise ValueError(f"{at} must be one of {', '.join(map(str, rule['enum']))}, not {_shown(value)}")
    if isinstance(value, str):
        if "pattern" in rule and not re.search(rule["pattern"], value):
            raise ValueError(f"{at} must match {rule['pattern']}, not {_shown(value)}")
        if len(value) < rule.get("minLength", 0):
            raise ValueError(f"{at} must have {rule['minLength']} characters or more, not {_shown(value)}")
    elif isinstance(value, dict):
        _check_object(whole, rule, value, at)
    elif isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
            bounds = f"{rule.get('minItems', 0)}..{rule.get('maxItems', '')}"
            raise ValueError(f"{at} must have {bounds} entries, not {len(value)}")
        if "items" in rule:
            for i, item in enumerate(value):
                _check(whole, rule["items"], item, f"{at}[{i}]")
    elif _is(value, "integer") and not rule.get("minimum", value) <= value <= rule.get("maximum", value):
        bounds = f"{rule.get('minimum', '')}..{rule.get('maximum', '')}"
        raise ValueError(f"{at} must be in {bounds}, not {_shown(value)}")


def _check_object(whole: Mapping[str, Any], rule: Mapping[str, Any], value: dict[str, Any], at: str) -> None:
    known = rule.get("properties", {})
    for key in rule.get("required", ()):
        if key not in value:
            raise ValueError(f"{at} lacks {key!r}")
    for key, item in value.items():
        others = rule.get("additionalProperties", {})
        if key in known:
            _check(whole, known[key], item, f"{at}.{key}")
        elif others is False:
            raise ValueError(f"{at} has an unknown key {key!r}; known are {', '.join(known)}")
        else:
            _check(whole, others, item, f"{at}.{key}")


def _check_any(whole: Mapping[str, Any], rules: list[Mapping[str, Any]], value: Any, at: str) -> None:
    errors = []
    for rule in rules:
        try:
            return _check(whole, rule, value, at)
        except ValueError as error:
            errors.append(str(error))
    raise ValueError("; or ".join(errors))

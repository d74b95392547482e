"""Text from outside, such as column names and labels, made safe to show.

A name can hold terminal escape sequences, line ends or marks that reverse the direction of what
follows.  `visible` is the one place where they lose their effect: every command, page and
template passes text through it.
"""

import re
from collections.abc import Mapping
from typing import Any


def visible(text: str) -> str:
    r"""Return text with every character that is not printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def label_text(label: Any) -> str:
    """Return the label of a class; a whole number has no decimal point."""
    whole = isinstance(label, float) and label.is_integer() and abs(label) < 2**53
    return str(int(label) if whole else label)


def toml_string(text: str) -> str:
    """Return text as a TOML string of one line, with everything that is not printable escaped."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    chars = [char if char.isprintable() else f"\\U{ord(char):08X}" for char in text]
    return f'"{"".join(chars)}"'


def without_password(text: str) -> str:
    """Return text without the addresses of databases, which may hold a password."""
    return re.sub(r"(postgres(?:ql)?:/+)[^\s'\")]+", r"\1...", text)


def toml_key(name: str) -> str:
    """Return a name as a TOML key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_string(name)


def toml_value(value: Any) -> str:
    """Return what a TOML file holds as TOML of one line: text, numbers, dates, lists, tables."""
    if isinstance(value, Mapping):
        pairs = [f"{toml_key(name)} = {toml_value(entry)}" for name, entry in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else str(value)

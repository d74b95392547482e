"""Text from outside, such as column names and labels, made safe to show.

A name can hold terminal escape sequences, line ends or marks that reverse the direction of what
follows.  `visible` is the one place where they lose their effect: every command, page and
template passes text through it.
"""


def visible(text: str) -> str:
    r"""Return text with every character that is not printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def toml_string(text: str) -> str:
    """Return text as a TOML string of one line, with everything that is not printable escaped."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    chars = [char if char.isprintable() else f"\\U{ord(char):08X}" for char in text]
    return f'"{"".join(chars)}"'

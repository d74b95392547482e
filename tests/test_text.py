"""Text from outside loses its effect on terminals, pages and bounds files."""

import tomllib

import pytest

from fastmix._text import label_text, toml_string, visible

NASTY = [
    "\x1b[31m",
    "\x9b31m",
    "\x07",
    "a\nb",
    "a\r",
    "\u202e",
    "\u2066",
    "\x7f",
    "\u2028",
    "\ud800",
]


@pytest.mark.parametrize("text", NASTY)
def test_what_is_not_printable_is_written_as_an_escape(text):
    shown = visible(f"x{text}y")
    assert shown.isprintable()
    assert shown.startswith("x")
    assert shown.endswith("y")
    assert "\\" in shown


@pytest.mark.parametrize("text", ["plain", "Größe (cm)", "年齢", "naïve ☃ 😀", "[bold]", ""])
def test_other_text_stays(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    "text", [*NASTY[:-1], 'q"', "back\\slash", "'", "😀", "a = 1\n[b]", "\x00"]
)
def test_a_toml_string_is_one_line_that_reads_back(text):
    line = f"{toml_string(text)} = 1"
    assert line.isprintable()
    assert tomllib.loads(line) == {text: 1}


def test_labels_that_are_whole_numbers_have_no_decimal_point():
    labels = [0.0, 1, 2.5, "1.0", True, 1e300, float("inf")]
    assert list(map(label_text, labels)) == ["0", "1", "2.5", "1.0", "True", "1e+300", "inf"]

"""Pages, messages, help and docstrings follow words.toml, and its rules find faults."""

from __future__ import annotations

import pytest

from tests.words import complaints, paragraphs, rules, sentences, strings, texts

RULES, LONGEST = rules()

#: What we used to write. Each sentence must be found by some rule.
WE_WROTE = (
    "of the time that it took only the minute is said",
    "How many values that concerned is not said",
    "better, not necessarily, a C++ compiler",
    "one entry a feature",
    "coefficients with error bars that say almost nothing about any one person",
    "It speaks scikit-learn and the command line.",
    "a record that says nothing in that place",
    "The account of every one is exact or on the safe side",
    "out must hold no model yet, or use --force; got out='model'",
    "fastmix as it comes",
    "has not the published 318,851 rows",
    "Is told the name of each pass",
)


@pytest.mark.parametrize("sentence", WE_WROTE)
def test_what_we_used_to_write_is_found(sentence):
    assert list(complaints("page", sentence))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.say)
def test_rules_find_what_is_wrong_and_leave_what_is_right(rule):
    assert [text for text in rule.wrong if not rule.finds(text)] == []
    assert [text for text in rule.right if rule.finds(text)] == []


def test_long_sentences_are_found():
    long = " ".join(["word"] * (LONGEST["page"] + 1)) + "."
    assert list(complaints("page", long))
    assert not list(complaints("page", f"{long[:100]}. And {long[:100]}."))


def test_code_and_formulas_are_not_prose():
    assert sentences("`a row` and $one a row$ and [one](row.md).") == ["CODE and MATH and one."]
    page = "# Head\n\ntext `a`\nmore\n\n```sh\none entry a feature\n```\n\n| a | b c |\n|---|---|\n"
    found = [text.strip() for _, text in paragraphs(page)]
    assert found == ["Head", "text `a`\nmore", "a", "b c"]


def test_messages_and_docstrings_are_read():
    source = '"""One entry a feature, it says."""\nraise ValueError(f"{n} has not the rows")\n'
    found = [text for _, text in strings(source)]
    assert found == ["One entry a feature, it says.", "CODE has not the rows"]


def test_everything_that_users_read_follows_the_rules():
    found = [
        f"{file}:{line}: {complaint}"
        for kind, file, line, paragraph in texts()
        for complaint in complaints(kind, paragraph)
    ]
    assert not found, "\n".join(found)

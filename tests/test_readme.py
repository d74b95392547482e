"""The README's code runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_code_blocks_run_in_order(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    out = capsys.readouterr().out
    assert '"private": true' in out
    assert names["model"].epsilon == 0.5
    assert len(names["budget"]) == 5


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README.read_text()))
def test_links_lead_somewhere(target):
    assert (README.parent / target).exists()

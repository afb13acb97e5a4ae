"""The page about models of one's own runs, block after block."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "own-model.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_block_runs(capsys):
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    said = capsys.readouterr().out
    assert "log Z of Energy 6" in said
    assert "ThreeBlocks 2-1 on 50 test examples" in said

"""The pages of results are what the stored results make, and two trainings still give what is stored."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from machine import needs_jit

from acerl_np import ACERL, Config, load_suite
from acerl_np.evaluation.trials import Playing, play_policy
from studies import generalisation, make_pages
from studies.__main__ import main
from studies.commands import STORED
from studies.make_pages import BLOCK, DATA
from studies.stored import StoredStudy
from studies.study import Study

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


@pytest.fixture
def pages(empty):
    """A copy of the stored results and of the pages, the current folder."""
    shutil.copytree(ROOT / DATA, DATA)
    for page in PAGES:
        shutil.copyfile(ROOT / page, page)
    return empty


@pytest.mark.slow
def test_pages_are_what_stored_results_make(pages, capsys):
    """A digit that was changed, in a page, a table or the claims, is put right; nothing else changes."""
    changed = ["README.md", f"{DATA}/claims.csv", f"{DATA}/comparison-train.md"]
    for page in changed:
        text = (pages / page).read_text()
        start = BLOCK.search(text).start() if page == "README.md" else 0
        place = re.search(r"\d\d\d\.\d", text[start:]).end() + start - 1
        digit = str((int(text[place]) + 1) % 10)
        (pages / page).write_text(text[:place] + digit + text[place + 1 :])
    assert main(["pages"]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(changed)
    for page in [*PAGES, *(str(x.relative_to(ROOT)) for x in (ROOT / DATA).iterdir())]:
        assert (pages / page).read_bytes() == (ROOT / page).read_bytes(), page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "content", "message"),
    [
        ("docs/rivals.md", "<!-- make_pages.py: x -->\n<!-- end -->", "the block 'x'"),
        (f"{DATA}/rows.json", "{}", "no study 'comparison'"),
    ],
)
def test_what_cannot_be_made_is_named(pages, page, content, message, capsys):
    """And nothing is written."""
    (pages / page).write_text(content)
    before = {path: path.read_bytes() for path in pages.rglob("*.*")}
    assert main(["pages"]) == 2
    assert re.search(f"error: .*{message}", capsys.readouterr().err)
    assert {path: path.read_bytes() for path in pages.rglob("*.*")} == before


def test_runs_are_stored_study_by_study(monkeypatch, tmp_path):
    found, given = {}, []
    monkeypatch.setattr(Study, "find", lambda study, job: job)
    monkeypatch.setattr(Study, "rule_rows", lambda *_, **__: [])
    monkeypatch.setattr(make_pages, "store_study", lambda _, *own: found.update({own[0]: own[2]}))
    monkeypatch.setattr(make_pages, "store_rules", lambda *_: None)
    monkeypatch.setattr(generalisation, "tables", lambda _, results: given.append(results))
    assert make_pages.store_runs(tmp_path, tmp_path) == []
    assert list(found) == [*STORED]
    assert [job.seed for job in found["checks"]["ACERL"]] == [*range(200, 220)]
    assert given == [found["generalisation"]] and given[0]["best"]


@needs_jit
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_training_gives_the_bytes_that_are_stored(seed):
    """The paper's preset as a whole: its learning, its policy, and each of its trials."""
    instances = load_suite("dmh-train")
    trainer = ACERL(instances, Config(), seed=seed)
    trainer.run()
    played = play_policy(trainer.policy, instances, Playing(30, seed))
    stored = StoredStudy(ROOT / DATA).load("comparison")["ACERL"][seed]
    assert stored.seed == seed
    assert np.array_equal(played.makespan, stored.makespan["dmh-train"])
    np.testing.assert_allclose(played.tardiness, stored.tardiness["dmh-train"], atol=1e-4)

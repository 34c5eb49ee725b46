"""What examples do that need more than the package: here without it."""

import numpy as np
from machine import load_example

import acerl_np
from acerl_np.commands.floor import format_layout
from acerl_np.plain.evolution import Member, rank
from acerl_np.problem.bundled import instances_folder
from acerl_np.problem.servable import check_record


def test_the_bundled_floors_are_as_they_were_made():
    floors = load_example("floors")
    for layout in (floors.make_supply_loop(), floors.make_cross_aisles()):
        path = instances_folder() / layout.name / "layout.json"
        assert path.read_text(encoding="utf-8") == format_layout(layout)
        # Types of sites tell who does what, and each work station has time for what it asks.
        checked = check_record(acerl_np.generate_shift(acerl_np.load_layout(layout.name)))
        assert checked.servable and not checked.hopeless
    floors = load_example("larger_floors")
    for layout, n in ((floors.make_two_lane_hall(), 200), (floors.make_one_way_aisles(), 210)):
        assert len(layout.sites) == n and layout.chargers and layout.parking
        checked = check_record(acerl_np.generate_shift(layout, hours=1.0))
        assert checked.servable and not checked.hopeless


def test_the_page_ranks_as_the_paper(monkeypatch):
    """Without draws; and its networks play to the end."""
    page = load_example("acerl_one_page")
    monkeypatch.setattr(page, "P_F", 0.0)
    random = np.random.default_rng(0)
    j_r, j_c = -random.integers(1800, 2000, 40), random.integers(20, 90, 40)
    eta = random.integers(3, size=40)
    members = [Member(float(r), float(c), k) for k, (r, c) in enumerate(zip(j_r, j_c, strict=True))]
    buffers = [[one for one in members if eta[one.zeta] == i] for i in range(3)]
    assert np.allclose(page.rank(j_r, j_c, eta, random), rank(buffers, page.XI, 0.0, 0, 0))
    records = acerl_np.load_suite("dmh-train")[:2]
    theta = np.zeros((2, page.ENDS[-1]), np.float32)
    assert (page.evaluate(theta, records, random)[0] < -1700.0).all()

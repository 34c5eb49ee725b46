"""What examples do that need more than the package: here without it."""

import contextlib
import json
import queue

from machine import load_example

import acerl_np
from acerl_np.commands.floor import format_layout
from acerl_np.live.mqtt import Bridge
from acerl_np.live.service import Service
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
    for layout, n in ((floors.make_two_lane_hall(), 200), (floors.make_one_way_aisles(), 210)):
        assert len(layout.sites) == n and layout.chargers and layout.parking
        checked = check_record(acerl_np.generate_shift(layout, hours=1.0))
        assert checked.servable and not checked.hopeless


def test_a_plant_whose_vehicles_repeat_their_states(tmp_path, monkeypatch, capsys):
    """VDA 5050: a vehicle sends its state at least every 30 s, new or not; killed in the middle."""
    plant = load_example("mqtt_plant")
    inbox = queue.Queue()

    class Killed:
        """A service in this process, which goes on from its log."""

        def __init__(self, folder, _):
            own = folder / "layout.json", acerl_np.load_policy(folder / "policy.npz")
            log = folder / "day.jsonl"
            make = acerl_np.Dispatcher.recover if log.exists() else acerl_np.Dispatcher
            self.dispatcher = make(*own, audit=log)
            Station.fleet = Bridge(Service(self.dispatcher))

        def kill(self):
            self.dispatcher.close()

        terminate, wait = kill, lambda self: None

    class Station:
        def __init__(self, *_):
            self.sent = 0

        def send(self, topic, message):
            self.sent += 1
            for there, told in self.fleet.take(topic, json.dumps(message).encode()):
                inbox.put((there, json.loads(json.dumps(told))))

        def receive(self):
            return inbox.get_nowait()

        def leave(self):
            assert inbox.empty()

    monkeypatch.setattr(plant, "Station", Station)
    monkeypatch.setattr(plant, "start_service", Killed)
    monkeypatch.setattr(plant, "run_broker", lambda _: contextlib.nullcontext(("memory", 0)))
    logs = []
    for every in (1e9, 30.0):
        monkeypatch.setattr(plant, "REPEATED_EVERY", every)
        folder = tmp_path / str(every)
        folder.mkdir()
        assert plant.run_plant(30, folder) == 0
        lines = map(json.loads, (folder / "day.jsonl").read_text().splitlines())
        logs.append(
            [line | {"mark": "", "wall": 0} for line in lines if line["kind"] == "Assigned"]
        )
    drop = {"line": 0}
    assert [x | drop for x in logs[0]] == [x | drop for x in logs[1]]
    assert " 31 assignments, 0 messages refused" in capsys.readouterr().out

"""Events of every kind for tests of the dispatcher, and all that can be seen of one."""

from acerl_np import (
    TaskArrived,
    TaskCancelled,
    TaskChanged,
    TaskRecalled,
    VehicleAdded,
    VehicleBack,
    VehicleBroke,
    VehicleIdle,
    VehicleOutOfService,
    VehiclePassed,
    VehicleRemoved,
    VehicleRepaired,
    load_layout,
)

SITES = [site.id for site in load_layout("dmh").sites if site.id.startswith("st")]

MAKERS = (
    lambda t, k, site: TaskArrived(t, f"n{k}", site, "carport", 60.0, priority=float(k % 2)),
    lambda t, k, site: TaskArrived(t, f"n{k}", site, "carport", 60.0, earliest_start=t + 2.0),
    lambda t, k, site: TaskCancelled(t, f"n{k // 2}"),
    lambda t, k, site: TaskChanged(t, f"n{k // 2}", due=t + 40.0),
    lambda t, k, site: TaskRecalled(t, f"busy{k % 2}", cancel=k % 3 == 0),
    lambda t, k, site: VehiclePassed(t, f"v{k % 3}", site),
    lambda t, k, site: VehicleIdle(t, f"v{k % 3}", site),
    lambda t, k, site: VehicleBroke(t, f"v{k % 3}"),
    lambda t, k, site: VehicleRepaired(t, f"v{k % 3}", site),
    lambda t, k, site: VehicleOutOfService(t, f"v{k % 3}", at_once=k % 2 == 0),
    lambda t, k, site: VehicleBack(t, f"v{k % 3}"),
    lambda t, k, site: VehicleAdded(t, f"w{k % 2}", site),
    lambda t, k, site: VehicleRemoved(t, f"v{k % 3}", at_once=k % 2 == 0),
)


def look(dispatcher):
    """All that can be seen, and what is behind it."""
    board, day = dispatcher._floor, dispatcher._floor.day
    tasks = {name: (task.event, task.since, task.vehicle) for name, task in board.tasks.items()}
    return (
        [vehicle.id for vehicle in dispatcher.layout.vehicles],
        board.vehicles.copy(),
        tasks,
        board.pool.copy(),
        board.planned.copy(),
        (day.start, day.mark, day.ends[: day.n_tasks].tolist(), day.record[: day.n_tasks].tolist()),
        dispatcher.next_time,
    )

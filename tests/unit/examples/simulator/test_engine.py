"""Devices that jobs share, to the second."""

import pytest

from examples.simulator.engine import Clock, Device, Queue


class Log:
    """When which job ended."""

    def __init__(self, *, capacity=1.0):
        self.clock = Clock()
        self.device = Device(self.clock, capacity=capacity)
        self.ends = {}

    def start(self, name, seconds, **options):
        return self.device.start(seconds, lambda: self.ends.__setitem__(name, self.clock.now), **options)

    def run(self):
        self.clock.run()
        return self.ends


def test_a_job_alone_takes_its_seconds():
    log = Log()
    log.start("a", 3.0)
    assert log.run() == {"a": 3.0}


def test_two_jobs_on_one_device_run_at_half_speed_until_one_ends():
    log = Log()
    log.start("a", 1.0)
    log.start("b", 3.0)
    assert log.run() == {"a": 2.0, "b": 4.0}


def test_two_cores_hold_two_jobs_and_slow_a_third():
    log = Log(capacity=2.0)
    for name in "abc":
        log.start(name, 2.0)
    assert log.run() == pytest.approx({"a": 3.0, "b": 3.0, "c": 3.0})


def test_jobs_that_leave_gaps_on_the_device_fit_beside_one_another():
    log = Log()
    log.start("a", 1.0, demand=0.5)
    log.start("b", 1.0, demand=0.75)
    assert log.run() == {"a": 1.25, "b": 1.25}


def test_taking_turns_may_cost_time_but_nobody_takes_turns_alone():
    log = Log(capacity=0.8)
    log.start("a", 1.0)
    log.start("b", 2.0)
    assert log.run() == pytest.approx({"a": 2.5, "b": 3.5})


def test_a_job_can_be_cut_short_and_knows_what_it_has_done():
    log = Log()
    long = log.start("long", 100.0)
    log.start("other", 1.0)  # until second 2, at half speed
    done = []

    def cut():
        done.append(log.device.done(long))
        log.device.resize(long, 4.0)

    watch = Device(log.clock, capacity=1.0)
    watch.start(3.0, cut)
    assert log.run() == {"other": 2.0, "long": 5.0}
    assert done == [2.0]


def test_idle_time_is_not_busy():
    log = Log()
    other = Device(log.clock, capacity=1.0)
    other.start(5.0, lambda: log.start("late", 1.0))
    log.start("early", 2.0)
    assert log.run() == {"early": 2.0, "late": 6.0}
    assert log.device.busy_seconds == 3.0


def test_a_queue_works_off_tasks_in_order_a_few_at_a_time():
    log = Log(capacity=10.0)
    queue = Queue(log.device, slots=2)
    for name, seconds in (("a", 4.0), ("b", 1.0), ("c", 2.0), ("d", 1.0)):
        queue.add(seconds, lambda name=name: log.ends.__setitem__(name, log.clock.now))
    assert log.run() == {"b": 1.0, "c": 3.0, "a": 4.0, "d": 4.0}


def test_settled_actions_see_everything_of_their_time():
    log = Log(capacity=10.0)
    seen = []
    log.clock.when_settled(lambda: seen.append(sorted(log.ends)))
    log.start("a", 0.0)
    log.start("b", 0.0)
    log.run()
    assert seen == [["a", "b"]]

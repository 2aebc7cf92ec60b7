"""One replica: what its iterations take, who joins when, what is prefilled."""

from hypothesis import given, settings, strategies as st

from examples.simulator.blocks import read_block
from examples.simulator.engine import Clock, Device
from examples.simulator.rates import ServerRates
from examples.simulator.server import Replicas, Server
from examples.simulator.workload import Generation

from .builders import FREE_SERVER


class Bench:
    """A server and when its responses were complete."""

    def __init__(self, *, servers=1, **rates):
        self.clock = Clock()
        block = read_block(ServerRates, FREE_SERVER | rates, where="server")
        devices = [Device(self.clock, capacity=1.0) for _ in range(servers)]
        self.servers = [Server(self.clock, device, block) for device in devices]
        self.replicas = Replicas(self.servers)
        self.ends = {}

    def ask(self, name, tokens, *, prompt=1, session=None, at=0.0):
        generation = Generation(prompt_tokens=prompt, response_tokens=tokens)

        def submit():
            self.replicas.submit(generation, session=session or name, action=ended)

        def ended():
            self.ends[name] = round(self.clock.now, 9)

        if at:
            Device(self.clock, capacity=1.0).start(at, submit)
        else:
            submit()

    def run(self):
        self.clock.run()
        return self.ends


def test_a_response_takes_an_iteration_a_token():
    bench = Bench()
    bench.ask("a", 5)
    assert bench.run() == {"a": 5.0}


def test_running_requests_share_iterations():
    bench = Bench(request_seconds=0.5)
    bench.ask("a", 2)
    bench.ask("b", 5)
    assert bench.run() == {"a": 4.0, "b": 8.5}  # two of 2.0, then three of 1.5


def test_a_request_joins_at_the_end_of_the_iteration_that_runs():
    bench = Bench()
    bench.ask("a", 10)
    bench.ask("b", 2, at=3.5)
    assert bench.run() == {"b": 6.0, "a": 10.0}


def test_reading_the_context_costs_more_with_every_token():
    bench = Bench(context_token_seconds=0.1)
    bench.ask("a", 3, prompt=10)
    assert bench.run() == {"a": 6.3}  # 1 + 1.0, 1 + 1.1, 1 + 1.2


def test_a_request_that_joins_finds_the_right_iteration_while_contexts_grow():
    bench = Bench(context_token_seconds=0.1)
    bench.ask("a", 4, prompt=10)
    bench.ask("b", 1, prompt=5, at=4.05)  # in the second iteration, 2.0 to 4.1
    assert bench.run() == {"b": 6.8, "a": 9.1}  # 4.1 + 1 + 1.2 + 0.5, then 1 + 1.3


def test_a_prompt_is_prefilled_once_for_all_requests_of_a_session():
    bench = Bench(prefill_token_seconds=0.01)
    for name in "abc":
        bench.ask(name, 1, prompt=100, session="same")
    assert bench.run() == dict.fromkeys("abc", 2.02)  # 100 tokens, then the last one of each: the answer begins there
    assert bench.servers[0].prefilled_tokens == 102


def test_only_whole_blocks_of_a_prompt_are_found_again():
    bench = Bench(prefill_token_seconds=0.01, cache_block_tokens=64)
    for name in "ab":
        bench.ask(name, 1, prompt=100, session="same")
    bench.run()
    assert bench.servers[0].prefilled_tokens == 100 + 36


def test_a_full_server_lets_requests_wait_in_order():
    bench = Bench(max_num_seqs=2)
    for name, tokens in (("a", 3), ("b", 1), ("c", 1), ("d", 1)):
        bench.ask(name, tokens)
    assert bench.run() == {"b": 1.0, "c": 2.0, "a": 3.0, "d": 3.0}


def test_prompts_beyond_the_token_budget_wait_for_the_next_iteration():
    bench = Bench(max_num_batched_tokens=100)
    for name in "abc":
        bench.ask(name, 1, prompt=60)
    assert bench.run() == {"a": 1.0, "b": 1.0, "c": 2.0}


def test_requests_wait_for_room_in_the_kv_cache():
    bench = Bench(kv_tokens=150)
    for name in "ab":
        bench.ask(name, 2, prompt=100)
    assert bench.run() == {"a": 2.0, "b": 4.0}


def test_a_response_larger_than_the_kv_cache_still_runs_alone():
    bench = Bench(kv_tokens=1)
    bench.ask("a", 2, prompt=100)
    assert bench.run() == {"a": 2.0}


def test_admission_is_paid_once():
    bench = Bench(admission_seconds=0.25)
    bench.ask("a", 3)
    bench.ask("b", 3)
    assert bench.run() == {"a": 3.5, "b": 3.5}


def test_a_session_stays_on_the_replica_that_had_the_fewest_requests():
    bench = Bench(servers=2)
    for name in ("a1", "a2", "a3"):
        bench.ask(name, 4, session="a")
    bench.ask("b", 2, session="b")
    assert [server.in_flight for server in bench.servers] == [3, 1]
    bench.run()
    assert [server.generated_tokens for server in bench.servers] == [12, 2]


@settings(max_examples=60, deadline=None)
@given(
    requests=st.lists(
        st.tuples(st.integers(1, 40), st.integers(1, 50), st.integers(0, 2), st.floats(0, 30)), min_size=1, max_size=25
    ),
    rates=st.fixed_dictionaries(
        {
            "context_token_seconds": st.sampled_from([0.0, 1e-3, 0.1]),
            "request_seconds": st.sampled_from([0.0, 0.05]),
            "max_num_seqs": st.integers(1, 8),
            "max_num_batched_tokens": st.integers(1, 100),
            "kv_tokens": st.integers(1, 300),
            "cache_block_tokens": st.sampled_from([1, 16]),
        }
    ),
)
def test_every_token_is_generated_once_and_no_response_beats_its_iterations(requests, rates):
    bench = Bench(**rates)
    for number, (tokens, prompt, session, at) in enumerate(requests):
        bench.ask(number, tokens, prompt=prompt, session=f"s{session}", at=at)
    ends = bench.run()
    server = bench.servers[0]
    assert (server.generated_tokens, server.in_flight) == (sum(tokens for tokens, *_ in requests), 0)
    assert server.prefilled_tokens <= sum(prompt for _, prompt, *_ in requests)
    assert all(ends[n] >= tokens + at - 1e-6 for n, (tokens, _, _, at) in enumerate(requests))

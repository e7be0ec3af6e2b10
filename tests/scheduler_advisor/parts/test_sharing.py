"""Slices lie where the hardware lets them; jobs on one GPU get what is left for them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_advisor.engine.parts.interference import (
    Demand,
    fair_parts,
    may_share,
    mig_speed,
    mps_speeds,
    time_slice_speeds,
    worst_pair,
)
from scheduler_advisor.engine.parts.mig import open_placements, profiles_of, serving, start_for
from scheduler_advisor.engine.parts.seven import compare_ways

MODELS = ("NVIDIA A100-SXM4-40GB", "A100", "H100", "NVIDIA H200 141GB", "B200", "NVIDIA A30")


@pytest.mark.parametrize("model", MODELS)
def test_a_gpu_takes_as_many_of_each_profile_as_the_guide_says(model):
    most = {"1g": 7, "2g": 3, "3g": 2, "4g": 1, "7g": 1}
    doubled = 4  # a 1g slice with twice the memory
    for profile in profiles_of(model):
        count, taken = 0, 0
        while (start := start_for(profiles_of(model), taken, profile)) is not None:
            assert not taken & profile.bits(start)
            taken |= profile.bits(start)
            count += 1
        kind = profile.name.split(".")[0]
        if "A30" in model:
            assert count == {"1g": 4, "2g": 2, "4g": 1}[kind]
        elif kind == "1g" and profile.slices > 1:
            assert count == doubled
        else:
            assert count == most[kind]


@pytest.mark.parametrize("model", MODELS)
def test_no_set_of_slices_takes_more_multiprocessors_than_there_are(model):
    profiles = profiles_of(model)
    places = [(one, start) for one in profiles for start in one.starts]
    for chosen in combinations(places, 3):
        bits = [one.bits(start) for one, start in chosen]
        apart = all(not a & b for a, b in combinations(bits, 2))
        if apart:
            assert sum(one.compute for one, _ in chosen) <= profiles[0].of_compute


def test_a_slice_is_cut_where_the_largest_ones_stay_possible():
    profiles = profiles_of("H100")
    by_name = {one.name: one for one in profiles}
    assert start_for(profiles, 0, by_name["3g.40gb"]) == 4  # 4g.40gb begins at 0 alone
    assert start_for(profiles, 0, by_name["1g.10gb"]) == 6
    assert start_for(profiles, by_name["3g.40gb"].bits(0), by_name["4g.40gb"]) is None


@given(st.permutations(["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]))
def test_the_chosen_start_leaves_as_many_placements_as_any_other(order):
    profiles = profiles_of("H100")
    by_name = {one.name: one for one in profiles}
    taken = 0
    for name in order:
        wanted = by_name[name]
        start = start_for(profiles, taken, wanted)
        able = [one for one in wanted.starts if not taken & wanted.bits(one)]
        assert (start is None) == (not able)
        if start is None:
            continue
        left = [open_placements(profiles, taken | wanted.bits(one)) for one in able]
        assert open_placements(profiles, taken | wanted.bits(start)) == max(left)
        taken |= wanted.bits(start)


def test_a_share_is_served_by_the_smallest_slice_that_has_it():
    names = {milli: serving(profiles_of("A100"), milli).name for milli in (100, 143, 200, 429, 600)}
    assert names == {
        100: "1g.10gb", 143: "1g.10gb", 200: "2g.20gb", 429: "3g.40gb", 600: "7g.80gb"
    }  # fmt: skip
    assert profiles_of("Tesla T4") == ()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_fair_parts_are_max_min_fair(asked):
    parts = fair_parts(asked, 1000)
    assert sum(parts) == min(sum(asked), 1000)
    assert all(part <= want for part, want in zip(parts, asked, strict=True))
    short = [part for part, want in zip(parts, asked, strict=True) if part < want]
    assert not short or all(part <= min(short) for part in parts if part not in short)


demands = st.builds(
    Demand, st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 1000), st.just(0)
)


@given(st.lists(demands, min_size=1, max_size=5), demands)
def test_company_never_makes_a_job_faster_and_alone_it_runs_as_alone(jobs, newcomer):
    for speeds, cost in ((mps_speeds, 100), (time_slice_speeds, 50)):
        before, after = speeds(jobs, cost), speeds([*jobs, newcomer], cost)
        assert all(old >= new for old, new in zip(before, after, strict=False))
        assert speeds(jobs[:1], cost) == [1]


def test_a_slice_binds_a_job_by_its_own_parts_and_by_nobody_else():
    small = profiles_of("H100")[0]
    assert mig_speed(Demand(100, 100, 200), small) == 1
    assert mig_speed(Demand(500, 100, 600), small) == Fraction(2, 7)
    assert mig_speed(Demand(100, 500, 600), small) == Fraction(1, 4)


def test_the_pair_that_should_never_share_is_a_latency_job_beside_a_throughput_job():
    steady, bulk = Demand(100, 100, 100, latency_sensitive=True), Demand(900, 900, 1000)
    jobs = [Demand(200, 100, 200), steady, bulk]
    assert not may_share(steady, bulk)
    assert worst_pair(jobs, 100)[:2] == (1, 2)
    two_bandwidth = [Demand(300, 900, 900), Demand(900, 200, 900), Demand(300, 900, 900)]
    one, other, speed = worst_pair(two_bandwidth, 100)
    assert (one, other) == (0, 2)
    assert speed < Fraction(1, 2) * Fraction(100, 90)


def test_seven_small_jobs_on_one_gpu_cost_a_seventh_by_mig_and_mps_and_differ_in_slowdown(
    record_proof,
):
    """Seven inference-like jobs of an hour on an H100 at 3 USD."""
    jobs = [Demand(120, 110, 200, 9) for _ in range(6)] + [Demand(140, 300, 400, 9)]
    ways = {way.name: way for way in compare_ways(jobs, 3600, profiles_of("H100"), 80, Decimal(3))}
    assert ways["whole"].cost_usd == Decimal("21.00")
    assert ways["whole"].worst_slowdown == 1
    assert ways["mig"].gpus == ways["mps"].gpus == 1
    # The seventh job needs 0.3 of the bandwidth and has an eighth of it on its slice.
    assert ways["mig"].worst_slowdown == pytest.approx(2.4)
    assert ways["mps"].worst_slowdown < ways["mig"].worst_slowdown
    assert ways["mps"].mean_slowdown > 1 > ways["mig"].mean_slowdown - 0.5
    assert ways["mig"].cost_usd == Decimal("7.20")
    assert ways["mps"].cost_usd < Decimal("3.30")
    figures = {
        name: [way.gpus, str(way.cost_usd), way.mean_slowdown, way.worst_slowdown]
        for name, way in ways.items()
    }
    record_proof("seven_small_jobs", ways=figures, never_share=worst_pair(jobs, 100)[:2])


def test_jobs_that_need_more_memory_than_a_gpu_has_are_not_shared():
    jobs = [Demand(100, 100, 100, 15) for _ in range(7)]
    ways = {w.name: w for w in compare_ways(jobs, 60, profiles_of("H100"), 80, Decimal(3))}
    assert [ways[name].fits for name in ("whole", "mig", "mps", "time-slice")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_every_order_of_a_full_mix_is_placed_or_refused_without_overlap():
    profiles = profiles_of("A100-SXM4-40GB")
    for order in permutations(("4g.20gb", "2g.10gb", "1g.5gb")):
        taken = 0
        for name in order:
            wanted = next(one for one in profiles if one.name == name)
            start = start_for(profiles, taken, wanted)
            assert start is not None
            assert not taken & wanted.bits(start)
            taken |= wanted.bits(start)

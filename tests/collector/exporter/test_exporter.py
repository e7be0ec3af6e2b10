from __future__ import annotations

import math
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from collector.agent.reader import ReaderState
from collector.exporter.dcgm import HostnameLabel
from collector.exporter.family import Family, labels, render
from collector.exporter.node import parse_labels
from collector.exporter.own import PUBLISHED
from collector.mapping.attribution import Attribution, Holding
from collector.telemetry.metrics import METRICS

UUID = "GPU-00000000-0000-0000-0000-000000000000"
ONE = f'{{node="n1",gpu_uuid="{UUID}"}}'
DASHBOARD_12239 = (
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
)  # fmt: skip


def test_values_are_in_base_units(series, picture):
    found = series(picture())
    assert found[f"unstrand_gpu_utilization_ratio{ONE}"] == 0.4
    assert found[f"unstrand_gpu_power_watts{ONE}"] == 350.0
    assert found[f"unstrand_gpu_energy_joules_total{ONE}"] == pytest.approx(123_456.789)
    assert found[f"unstrand_gpu_memory_used_bytes{ONE}"] == 10240 * 2**20
    assert found[f"unstrand_gpu_sm_clock_hertz{ONE}"] == 1.98e9


def test_sent_is_not_received(series, picture, scenario):
    scenario.set({"gpu.pcie_tx_bytes": 11, "gpu.pcie_rx_bytes": 22})
    found = series(picture())
    assert found[f"unstrand_gpu_pcie_transmit_bytes_total{ONE}"] == 11
    assert found[f"unstrand_gpu_pcie_receive_bytes_total{ONE}"] == 22
    assert found[f"unstrand_gpu_nvlink_transmit_bytes_total{ONE}"] == 18_000 * 1024
    assert found[f"unstrand_gpu_nvlink_receive_bytes_total{ONE}"] == 36_000 * 1024


def test_what_is_unknown_has_no_series_and_never_a_zero_or_a_nan(series, picture, scenario):
    scenario.set({"gpu.util": 4294967295, "gpu.temperature": None})
    found = series(picture())
    assert not any(
        "utilization_ratio" in name or ("temperature_celsius{" in name and "memory" not in name)
        for name in found
    )
    assert not any(math.isnan(value) for value in found.values())
    assert found[f'unstrand_gpu_missing_values{ONE[:-1]},reason="implausible"}}'] == 1


def test_a_lost_gpu_is_down_with_its_reason_and_has_no_old_values(series, picture, scenario):
    scenario.set({"gpu0.lost": 1})
    found = series(picture())
    assert found[f"unstrand_gpu_up{ONE}"] == 0
    assert found[f'unstrand_gpu_status_info{ONE[:-1]},status="lost"}}'] == 1
    assert f"unstrand_gpu_power_watts{ONE}" not in found


def test_a_picture_too_old_shows_its_age_and_no_device(series, picture):
    found = series(picture(state=ReaderState.HUNG), at=100.0 + 61.0)
    assert not any(name.startswith("unstrand_gpu_") for name in found)
    assert found['unstrand_collector_tick_age_seconds{node="n1"}'] == 61.0
    assert found['unstrand_collector_state{node="n1",state="hung"}'] == 1


def test_before_the_first_tick_there_is_the_state_and_nothing_made_up(series, picture):
    found = series(picture(tick=None, state=ReaderState.NO_DRIVER))
    assert found['unstrand_collector_state{node="n1",state="no_driver"}'] == 1
    assert not any(name.startswith("unstrand_gpu_") for name in found)


def test_an_instance_has_its_own_series_and_no_power(series, picture, scenario):
    scenario.set(
        {
            "gpu.mig": 1,
            "gpu0.mig0.uuid": "MIG-1",
            "gpu0.mig0.mem_mib": 9984,
            "gpu0.mig0.profile": "1g",
        }
    )
    found = series(picture())
    instance = ONE[:-1] + ',mig_uuid="MIG-1"}'
    assert found[f"unstrand_gpu_memory_bytes{instance}"] == 9984 * 2**20
    assert f"unstrand_gpu_power_watts{instance}" not in found
    assert found[f"unstrand_gpu_power_watts{ONE}"] == 350.0


def test_a_series_of_a_process_or_holder_that_ended_is_gone_at_the_next_scrape(
    series, picture, scenario
):
    scenario.set({"gpu.mig": 1, "gpu0.mig0.uuid": "MIG-1", "gpu0.mig0.mem_mib": 1})
    before = series(picture())
    scenario.set({"gpu0.mig0.uuid": None})
    after = series(picture())
    assert any("MIG-1" in name for name in before)
    assert not any("MIG-1" in name for name in after)


def test_no_series_carries_a_pid(series, picture, scenario):
    scenario.set({"gpu.proc0": "4321,C,1,1"})
    assert not any("4321" in name for name in series(picture()))


def test_an_xid_is_a_counter_with_the_time_it_was_last_seen(series, picture):
    from datetime import UTC, datetime

    at = datetime(2026, 11, 2, tzinfo=UTC)
    found = series(picture(xids={(UUID, 79): (3, at)}))
    assert found[f'unstrand_gpu_xid_errors_total{ONE[:-1]},xid="79"}}'] == 3
    assert (
        found[f'unstrand_gpu_xid_last_seen_timestamp_seconds{ONE[:-1]},xid="79"}}']
        == at.timestamp()
    )


def test_no_label_of_ours_collides_with_one_that_a_scrape_adds(exporter, picture):
    body = exporter(picture()).exposition(None)[0].decode()
    used = {
        label
        for family in text_string_to_metric_families(body)
        for sample in family.samples
        for label in sample.labels
    }
    assert not used & {"job", "instance", "pod", "namespace", "container", "service", "endpoint"}


def test_every_series_says_of_which_node_it_is(exporter, picture):
    body = exporter(picture()).exposition(None)[0].decode()
    for family in text_string_to_metric_families(body):
        assert all(sample.labels["node"] == "n1" for sample in family.samples), family.name


def test_every_published_metric_exists_and_every_name_is_used_once():
    names = [published.name for published in PUBLISHED]
    assert len(set(names)) == len(names)
    assert {published.metric for published in PUBLISHED} <= METRICS.keys()


def test_a_counter_of_ours_ends_in_total_and_only_a_counter_does():
    for published in PUBLISHED:
        assert METRICS[published.metric].counter == published.name.endswith("_total"), (
            published.name
        )


def test_the_text_is_what_the_library_parses(exporter, picture):
    body, content_type = exporter(picture()).exposition(None)
    assert content_type.startswith("text/plain")
    assert len(list(text_string_to_metric_families(body.decode()))) > 20


@pytest.mark.parametrize("compatible", [False, True])
def test_the_openmetrics_text_is_what_the_library_parses(exporter, picture, compatible):
    body, content_type = exporter(picture(), compatible=compatible).exposition(
        "application/openmetrics-text;version=1.0.0"
    )
    assert content_type.startswith("application/openmetrics-text")
    assert len(list(parse_openmetrics(body.decode()))) > 20


def test_a_registry_gives_the_same_series_as_the_fast_way(exporter, picture):
    registry = CollectorRegistry()
    made = exporter(picture())
    registry.register(made)

    def values(text):
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
        return found

    assert values(generate_latest(registry).decode()) == values(made.exposition(None)[0].decode())


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text()))
def test_labels_come_back_whatever_is_in_them(pairs):
    text = labels(pairs)
    assert parse_labels(text) == pairs if text else pairs == {}
    family = Family("x", "gauge", "help", [(text, 1.0)])
    assert "\n" not in render([family]).decode().splitlines()[-1]


def test_promtool_has_nothing_to_say(exporter, picture, system):
    system.require("prometheus", binaries=("promtool",))
    body, _ = exporter(picture()).exposition(None)
    answer = subprocess.run(
        ["promtool", "check", "metrics"], input=body, capture_output=True, check=False
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, b"", b"")


# --- names of dcgm-exporter --------------------------------------------------------------------


def test_the_compatible_set_is_off_unless_asked_for(series, picture):
    assert not any(name.startswith("DCGM") for name in series(picture()))


def test_the_known_dashboard_finds_every_metric_it_asks_for(exporter, picture):
    taken = picture()
    taken.tick.devices[0].values["tensor_active_ratio"] = 0.25
    body = exporter(taken, compatible=True).exposition(None)[0].decode()
    families = {family.name: family for family in text_string_to_metric_families(body)}
    for name in DASHBOARD_12239:
        sample = families[name].samples[0]
        assert sample.labels["gpu"] == "0"
        assert sample.labels["Hostname"] == "n1"
        assert sample.labels["modelName"] == "NVIDIA H100 80GB HBM3"
    assert families["DCGM_FI_DEV_POWER_USAGE"].samples[0].value == 350.0
    assert families["DCGM_FI_DEV_GPU_UTIL"].samples[0].value == 40.0
    assert families["DCGM_FI_DEV_FB_USED"].samples[0].value == 10240.0


@pytest.mark.parametrize(
    ("casing", "present"),
    [
        (HostnameLabel.UPPER, {"Hostname"}),
        (HostnameLabel.LOWER, {"hostname"}),
        (HostnameLabel.BOTH, {"Hostname", "hostname"}),
    ],
)
def test_the_case_of_hostname_is_a_setting(exporter, picture, casing, present):
    body = exporter(picture(), compatible=True, casing=casing).exposition(None)[0].decode()
    line = next(line for line in body.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{"))
    found = parse_labels(line[line.index("{") : line.rindex("}") + 1])
    assert found.keys() & {"Hostname", "hostname"} == present


def test_a_sum_over_the_compatible_power_is_the_power_of_the_boards(exporter, picture, scenario):
    scenario.set({"count": 2, "gpu0.mig": 1, **{f"gpu0.mig{i}.uuid": f"MIG-{i}" for i in range(7)}})
    holdings = tuple(Holding(f"pod:ns/p{i}", f"{UUID[:-1]}1", None, 1, 4) for i in range(4))
    taken = picture(attribution=Attribution(holdings))
    body = exporter(taken, compatible=True).exposition(None)[0].decode()
    families = {family.name: family for family in text_string_to_metric_families(body)}
    assert sum(s.value for s in families["DCGM_FI_DEV_POWER_USAGE"].samples) == 700.0


def test_a_job_or_pod_is_named_in_the_labels_of_the_compatible_set(exporter, picture):
    for key, expected in (
        ("slurm:17", {"hpc_job": "17"}),
        ("pod:team/train-0", {"namespace": "team", "pod": "train-0"}),
    ):
        taken = picture(attribution=Attribution((Holding(key, UUID),)))
        body = exporter(taken, compatible=True).exposition(None)[0].decode()
        families = {family.name: family for family in text_string_to_metric_families(body)}
        assert expected.items() <= families["DCGM_FI_DEV_GPU_UTIL"].samples[0].labels.items()


def test_a_rate_of_nvlink_is_a_gauge_in_the_unit_that_dcgm_gives(exporter, picture):
    taken = picture()
    taken.tick.devices[0].values |= {
        "nvlink_tx_bytes_per_s": 1024.0 * 3000, "nvlink_rx_bytes_per_s": 1024.0 * 1000,
    }  # fmt: skip
    body = exporter(taken, compatible=True).exposition(None)[0].decode()
    families = {family.name: family for family in text_string_to_metric_families(body)}
    family = families["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"]
    assert (family.type, family.samples[0].value) == ("gauge", 4.0)

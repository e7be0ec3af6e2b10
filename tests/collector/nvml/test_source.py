"""Ticks over the stub driver, one sickness after the other."""

from __future__ import annotations

import ctypes

import pytest

from collector.telemetry.source import Group
from collector.telemetry.status import Status

ALL = frozenset(Group)
SLICES = {
    "gpu0.mig": 1,
    "gpu0.mig0.uuid": "MIG-aaaa", "gpu0.mig0.gi": 2, "gpu0.mig0.profile": "3g.40gb",
    "gpu0.mig0.slices": 3, "gpu0.mig0.mem_mib": 40448, "gpu0.mig0.used_mib": 1000,
    "gpu0.mig0.gpm.2": 71.5,
    "gpu0.mig3.uuid": "MIG-bbbb", "gpu0.mig3.gi": 9, "gpu0.mig3.profile": "1g.10gb",
    "gpu0.mig3.slices": 1, "gpu0.mig3.mem_mib": 9984, "gpu0.mig3.used_mib": 50,
    "gpu0.mig3.gpm.2": 12.25, "gpu.gpm": 1,
}  # fmt: skip


def board(tick, index=0):
    uuid = tick.inventory[index].gpu_uuid
    return next(d for d in tick.devices if d.gpu_uuid == uuid and d.mig_uuid is None)


def test_a_healthy_gpu_gives_its_identity_and_every_value(read):
    tick = read()
    device, values = tick.inventory[0], board(tick).values
    assert device.gpu_uuid == "GPU-00000000-0000-0000-0000-000000000000"
    assert (device.gpu_index, device.minor_number, device.pci_bus_id) == (0, 0, "00000000:10:00.0")
    assert (values["util_ratio"], values["mem_util_ratio"]) == (0.4, 0.2)
    assert (values["mem_total_mib"], values["mem_used_mib"]) == (81559.0, 10240.0)
    assert values["mem_reserved_mib"] == 479.0
    assert (values["power_mw"], values["energy_total_mj"]) == (350_000.0, 123_456_789.0)
    assert values["nvlink_tx_total_bytes"] == 18_000 * 1024
    assert values["nvlink_rx_total_bytes"] == 36_000 * 1024
    assert len(device.links) == 18


def test_every_metric_is_a_value_or_has_a_reason_and_never_both(read):
    tick = read()
    for device in tick.devices:
        assert not device.values.keys() & device.faults.keys()
        assert all(status is not Status.OK for status in device.faults.values())


def test_the_made_up_source_and_the_driver_tell_the_same_story(read, made_up, scenario):
    scenario.set({"count": 3, "gpu1.util": 95, "gpu2.mem_mib": None, "gpu.mem_mib": 81559})
    for _ in range(2):
        real = read()
    pretended = made_up.read(ALL)
    for one, other in zip(real.inventory, pretended.inventory, strict=True):
        assert one.gpu_uuid == other.gpu_uuid
        assert (one.gpu_index, one.name, one.links) == (other.gpu_index, other.name, other.links)
    for one, other in zip(real.devices, pretended.devices, strict=True):
        assert other.values.items() <= one.values.items()


def test_a_lost_gpu_stays_in_the_inventory_as_lost_and_harms_no_other(read, scenario):
    scenario.set(count=2)
    first = read()
    scenario.set({"gpu0.lost": 1})
    tick = read()
    assert [d.gpu_uuid for d in tick.inventory] == [d.gpu_uuid for d in first.inventory]
    assert [d.status for d in tick.inventory] == [Status.LOST, Status.OK]
    assert board(tick, 0).values == {}
    assert board(tick, 0).faults == {"device": Status.LOST}
    assert board(tick, 1).values["util_ratio"] == 0.4


def test_a_gpu_that_leaves_the_count_is_lost_and_not_forgotten(read, scenario):
    scenario.set(count=2)
    read()
    scenario.set(count=1)
    tick = read()
    assert [d.status for d in tick.inventory] == [Status.OK, Status.LOST]
    scenario.set(count=2)
    assert [d.status for d in read().inventory] == [Status.OK, Status.OK]


def test_a_gpu_that_is_plugged_in_later_is_there_at_the_next_tick(read, scenario):
    read()
    scenario.set(count=2)
    assert len(read().inventory) == 2


def test_a_gpu_that_is_lost_before_it_was_ever_seen_is_reported_without_a_uuid(read, scenario):
    scenario.set({"gpu0.lost": 1})
    tick = read()
    assert tick.inventory[0].status is Status.LOST
    assert tick.devices[0].faults == {"device": Status.LOST}


def test_a_gpu_that_may_not_be_opened_says_so(read, scenario):
    scenario.set({"error.nvmlDeviceGetHandleByIndex_v2": 4})
    assert read().inventory[0].status is Status.NO_PERMISSION


@pytest.mark.parametrize("garbage", [200_000, 4_294_967_295, 101, 37_100])
def test_a_utilisation_beyond_a_hundred_percent_is_implausible_and_not_clamped(
    read, scenario, garbage
):
    scenario.set({"gpu.util": garbage})
    tick = board(read())
    assert "util_ratio" not in tick.values
    assert tick.faults["util_ratio"] is Status.IMPLAUSIBLE


@pytest.mark.parametrize("blank", [2**63 - 16, 2**64 - 1, 2**63 - 1])
def test_a_blank_sentinel_is_no_energy(read, scenario, blank):
    scenario.set({"gpu.energy_mj": blank})
    assert board(read()).faults["energy_total_mj"] is Status.IMPLAUSIBLE


def test_more_memory_used_than_there_is_is_implausible(read, scenario):
    scenario.set({"gpu.used_bytes": 2**47})
    assert board(read()).faults["mem_used_mib"] is Status.IMPLAUSIBLE


def test_a_query_without_permission_costs_that_value_only(read, scenario):
    scenario.set({"error.nvmlDeviceGetTotalEnergyConsumption": 4})
    tick = board(read())
    assert tick.faults["energy_total_mj"] is Status.NO_PERMISSION
    assert tick.values["power_mw"] == 350_000.0


def test_a_driver_without_memory_v2_gives_the_old_figure_and_no_reserved(read, scenario):
    scenario.set(no_memory_v2=1)
    tick = board(read())
    assert tick.values["mem_used_mib"] == 10240.0 + 479.0
    assert tick.faults["mem_reserved_mib"] is Status.NOT_SUPPORTED


def test_a_gpu_that_shares_the_hosts_memory_is_marked_unified(read, scenario):
    scenario.set({"gpu.mem_mib": None})
    tick = read()
    assert tick.inventory[0].mem_unified
    assert board(tick).faults["mem_total_mib"] is Status.NOT_SUPPORTED


def test_only_the_groups_that_are_due_are_read(read):
    tick = board(read(frozenset({Group.LOAD})))
    assert "util_ratio" in tick.values
    assert tick.processes is None
    assert "ecc_uncorrected_total" not in tick.values | tick.faults


# --- MIG ---------------------------------------------------------------------------------------


def test_sparse_slots_hide_no_instance(read, scenario):
    scenario.set(SLICES)
    assert [m.mig_uuid for m in read().inventory[0].mig] == ["MIG-aaaa", "MIG-bbbb"]
    instance = read().inventory[0].mig[0]
    assert (instance.profile, instance.gpu_slices, instance.mem_mib) == ("3g.40gb", 3, 40448.0)


def test_a_board_in_mig_mode_has_no_utilisation_rather_than_none_of_it(read, scenario):
    scenario.set(SLICES)
    tick = board(read())
    assert tick.faults["util_ratio"] is Status.NOT_SUPPORTED
    assert tick.values["power_mw"] == 350_000.0


def test_each_instance_has_its_own_activity_and_no_power(read, scenario):
    scenario.set(SLICES)
    read()
    instances = {d.mig_uuid: d for d in read().devices if d.mig_uuid}
    assert instances["MIG-aaaa"].values["sm_active_ratio"] == 0.715
    assert instances["MIG-bbbb"].values["sm_active_ratio"] == 0.1225
    assert all("power_mw" not in d.values for d in instances.values())


def test_a_reconfiguration_while_running_is_seen_at_the_next_tick(read, scenario):
    scenario.set(SLICES)
    read()
    scenario.set({"gpu0.mig0.uuid": None, "gpu0.mig3.uuid": "MIG-cccc", "gpu0.mig3.profile": "2g"})
    tick = read()
    assert [m.mig_uuid for m in tick.inventory[0].mig] == ["MIG-cccc"]
    scenario.set({"gpu0.mig": 0})
    tick = read()
    assert tick.inventory[0].mig == ()
    assert board(tick).values["util_ratio"] == 0.4


def test_memory_of_a_gpu_instance_is_counted_on_its_first_compute_instance_only(read, scenario):
    scenario.set({**SLICES, "gpu0.mig3.gi": 2, "gpu0.mig3.ci": 1})
    first, second = (d for d in read().devices if d.mig_uuid)
    assert first.values["mem_used_mib"] == 1000.0
    assert second.faults["mem_used_mib"] is Status.SHARED


# --- GPM ---------------------------------------------------------------------------------------


def test_gpm_needs_two_samples_and_says_nothing_at_the_first(read, scenario):
    scenario.set({"gpu.gpm": 1, "gpu.gpm.2": 63.0, "gpu.gpm.1": 70.0, "gpu.gpm.60": 2.0})
    assert board(read()).faults["sm_active_ratio"] is Status.STALE
    tick = board(read())
    assert tick.values["sm_active_ratio"] == 0.63
    assert tick.values["nvlink_rx_bytes_per_s"] == 2 * 2**20
    assert tick.faults["tensor_active_ratio"] is Status.NOT_SUPPORTED


def test_a_window_of_many_minutes_is_thrown_away(read, scenario, clock):
    scenario.set({"gpu.gpm": 1, "gpu.gpm.2": 63.0})
    read()
    clock.seconds += 3600
    assert board(read()).faults["sm_active_ratio"] is Status.STALE
    assert board(read()).values["sm_active_ratio"] == 0.63


def test_gpm_far_above_a_hundred_percent_is_suspect_and_a_little_is_full(read, scenario):
    scenario.set({"gpu.gpm": 1, "gpu.gpm.2": 101.0, "gpu.gpm.5": 180.0})
    read()
    tick = board(read())
    assert tick.values["sm_active_ratio"] == 1.0
    assert tick.faults["tensor_active_ratio"] is Status.IMPLAUSIBLE


def test_counters_that_stand_still_on_a_busy_gpu_are_broken_and_not_idle(read, scenario):
    scenario.set({"gpu.gpm": 1, "gpu.gpm.1": 0.0, "gpu.gpm.2": 0.0, "gpu.util": 100})
    read()
    tick = board(read())
    assert tick.faults["sm_active_ratio"] is Status.IMPLAUSIBLE
    assert tick.values["util_ratio"] == 1.0


def test_every_gpm_sample_is_given_back(read, source, scenario, stub_library):
    stub = ctypes.CDLL(stub_library)
    before = stub.stub_gpm_open()
    scenario.set({**SLICES, "count": 2, "gpu1.mig": 0, "gpu.gpm.2": 5.0})
    for _ in range(3):
        read()
    assert stub.stub_gpm_open() - before == 3
    scenario.set({"gpu0.mig0.uuid": None})
    read()
    assert stub.stub_gpm_open() - before == 2
    source._gpm.forget(set())
    assert stub.stub_gpm_open() == before


# --- the sample buffer -------------------------------------------------------------------------


def test_utilisation_between_ticks_is_the_mean_of_every_sample_the_driver_took(read, scenario):
    scenario.set({"gpu.samples": "0,0,100", "gpu.sample_clock_us": 10_000_000})
    assert board(read()).faults["util_mean_ratio"] is Status.STALE
    scenario.set({"gpu.samples": "100,0,20", "gpu.sample_clock_us": 10_332_000})
    assert board(read()).values["util_mean_ratio"] == 0.1, "only the two samples that are new"


def test_an_old_sample_is_never_counted_again(read, scenario):
    scenario.set({"gpu.samples": "0,0,100", "gpu.sample_clock_us": 10_000_000})
    read()
    assert board(read()).faults["util_mean_ratio"] is Status.STALE


# --- processes ---------------------------------------------------------------------------------


def uses(tick):
    return {use.pid: use for use in board(tick).processes}


def test_a_process_in_several_lists_is_one_process(read, scenario):
    scenario.set({"gpu.proc0": "1001,B,4096,0", "gpu.proc1": "1002,M,10,0"})
    tick = read()
    assert {pid: (u.kind, u.mem_used_mib) for pid, u in uses(tick).items()} == {
        1001: ("compute", 4096.0),
        1002: ("mps", 10.0),
    }


def test_scrambled_pids_of_a_mismatched_binding_are_thrown_out(read, scenario):
    scenario.set({"gpu.proc0": "0,C,1,0", "gpu.proc1": "4294967295,C,1,0", "gpu.proc2": "77,C,1,0"})
    assert list(uses(read())) == [77]


def test_memory_that_the_driver_does_not_know_is_unknown_and_not_huge(read, scenario):
    scenario.set({"gpu.proc0": "77,C,na,0"})
    assert uses(read())[77].mem_used_mib is None


def test_zombie_rows_with_absurd_utilisation_are_dropped(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1,30", "gpu.proc_clock_us": 1000, "gpu.garbage_rows": 100})
    read()
    scenario.set({"gpu.proc_clock_us": 2000})
    assert uses(read())[77].sm_util_ratio == 0.3


def test_the_same_burst_is_counted_once(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1,30", "gpu.proc_clock_us": 1000})
    read()
    scenario.set({"gpu.proc_clock_us": 2000})
    assert uses(read())[77].sm_util_ratio == 0.3
    assert uses(read())[77].sm_util_ratio == 0.0, "no new sample: it did nothing since"


def test_a_driver_that_repeats_old_samples_does_not_make_a_process_busy(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1,30", "gpu.proc_clock_us": 1000, "gpu.samples_again": 1})
    read()
    assert uses(read())[77].sm_util_ratio == 0.0
    scenario.set({"gpu.proc_clock_us": 2000})
    assert uses(read())[77].sm_util_ratio == 0.3


def test_shares_of_processes_never_exceed_the_device(read, scenario):
    scenario.set({"gpu.proc0": "77,C,1,90", "gpu.proc1": "78,C,1,60", "gpu.util": 100})
    scenario.set({"gpu.proc_clock_us": 1000})
    read()
    scenario.set({"gpu.proc_clock_us": 2000})
    found = uses(read())
    assert found[77].sm_util_ratio == pytest.approx(0.6)
    assert found[78].sm_util_ratio == pytest.approx(0.4)


def test_a_thousand_processes_are_all_there(read, scenario):
    scenario.set({"gpu.proc_base": 2000, "gpu.proc_count": 1000})
    assert len(uses(read())) == 1000


def test_a_list_that_cannot_be_read_is_unknown_and_not_empty(read, scenario):
    scenario.set(
        {
            f"error.nvmlDeviceGet{k}RunningProcesses_v3": 4
            for k in ("Compute", "Graphics", "MPSCompute")
        }
    )
    tick = board(read())
    assert tick.processes is None
    assert tick.faults["processes"] is Status.NO_PERMISSION


# --- links, health, events ---------------------------------------------------------------------


def test_direct_links_name_the_gpu_at_the_other_end(read, scenario):
    scenario.set({"count": 2, "gpu.links": 4, "gpu.link_remote": 0, "gpu0.link_peer": 1})
    device = read().inventory[0]
    assert {link.remote_type for link in device.links} == {"gpu"}
    assert {link.remote_pci_bus_id for link in device.links} == {"00000000:11:00.0"}
    assert device.near == {"GPU-00000000-0000-0000-0000-000000000001": "PXB"}


def test_links_of_the_newest_kind_are_counted_in_bytes_per_link(read, scenario):
    scenario.set({"gpu.nvlink_tx_kib": None, "gpu.nvlink_rx_kib": None})
    scenario.set({"gpu.nvlink5_tx_bytes": 18 * 500, "gpu.nvlink5_rx_bytes": 18 * 700})
    tick = board(read())
    assert tick.values["nvlink_tx_total_bytes"] == 18 * 500
    assert tick.links[17] == (500.0, 700.0)


def test_a_gpu_without_links_has_unknown_traffic_and_not_zero(read, scenario):
    scenario.set({"gpu.links": 0})
    assert board(read()).faults["nvlink_tx_total_bytes"] is Status.NOT_SUPPORTED


def test_a_fabric_names_its_domain(read, scenario):
    scenario.set({"gpu.fabric_state": 3, "gpu.fabric_clique": 5, "gpu.fabric_cluster": 171})
    fabric = read().inventory[0].fabric
    assert (fabric.cluster_uuid, fabric.clique_id, fabric.state) == ("ab" * 16, 5, "completed")


def test_transmitted_and_received_are_not_mixed_up(read, scenario):
    scenario.set({"gpu.pcie_tx_bytes": 11, "gpu.pcie_rx_bytes": 22})
    values = board(read()).values
    assert (values["pcie_tx_total_bytes"], values["pcie_rx_total_bytes"]) == (11.0, 22.0)


def test_an_xid_is_an_event_once_with_its_code_and_gpu(read, scenario):
    read()
    scenario.set(xid="0,79,1")
    events = read().events
    assert [(e.code, e.gpu_uuid) for e in events] == [
        (79, "GPU-00000000-0000-0000-0000-000000000000")
    ]
    assert read().events == []


def test_remapped_rows_and_ecc_keep_corrected_and_uncorrected_apart(read, scenario):
    scenario.set({"gpu.rows_corr": 1, "gpu.rows_unc": 2, "gpu.rows_pending": 1, "gpu.ecc_unc": 7})
    values = board(read()).values
    assert values["remapped_rows_correctable_total"] == 1.0
    assert values["remapped_rows_uncorrectable_total"] == 2.0
    assert (values["remap_pending"], values["remap_failed"]) == (1.0, 0.0)
    assert (values["ecc_corrected_total"], values["ecc_uncorrected_total"]) == (1.0, 7.0)


def test_average_instant_and_module_power_are_kept_apart(read, scenario):
    scenario.set({"gpu.power_module_mw": 900_000})
    values = board(read()).values
    assert values["power_average_mw"] == 351_000.0
    assert values["power_instant_mw"] == 340_000.0
    assert values["power_module_mw"] == 900_000.0


def test_a_job_that_came_and_went_between_two_ticks_is_told_of_once(read, scenario):
    scenario.set({"gpu.accounting": 1, "gpu.acct0": "500,90,100,5000,1,0"})
    assert list(uses(read())) == [], "what ended before we came is no news"
    scenario.set({"gpu.acct1": "501,60,2048,7000,2,0", "gpu.acct2": "502,50,10,0,3,1"})
    found = uses(read())
    assert {pid: (u.kind, u.mem_used_mib, u.sm_util_ratio) for pid, u in found.items()} == {
        501: ("ended", 2048.0, 0.6)
    }
    assert list(uses(read())) == []


def test_without_accounting_nothing_is_asked(read, door, scenario):
    scenario.set({"gpu.accounting": 0})
    read()
    assert "nvmlDeviceGetAccountingPids" not in door.costs


def test_used_memory_of_a_unified_gpu_is_what_its_processes_hold(read, scenario):
    scenario.set({"gpu.mem_mib": None, "gpu.proc0": "77,C,300,0", "gpu.proc1": "78,C,200,0"})
    tick = board(read())
    assert tick.values["mem_used_mib"] == 500.0
    assert tick.faults["mem_total_mib"] is Status.NOT_SUPPORTED


def test_a_driver_reload_shows_as_a_counter_that_starts_over(read, scenario):
    before = board(read()).values["energy_total_mj"]
    scenario.set({"gpu.energy_mj": 10, "gpu.nvlink_tx_kib": 0})
    after = board(read()).values
    assert before > after["energy_total_mj"] == 10.0
    assert after["nvlink_tx_total_bytes"] == 0.0


def test_one_gpu_that_fails_at_everything_leaves_fifteen_others_whole(read, scenario):
    calls = ("UUID", "PowerUsage", "UtilizationRates", "MemoryInfo_v2", "FieldValues", "Samples")
    scenario.set(count=16)
    read()
    scenario.set({f"gpu7.error.nvmlDeviceGet{call}": 999 for call in calls})
    tick = read()
    well = [d for d in tick.devices if d.values.get("util_ratio") == 0.4]
    assert len(well) == 15


def test_sixteen_gpus_with_seven_slices_each_are_all_there(read, scenario):
    slots = {
        f"gpu{gpu}.mig{slot}.{name}": value
        for gpu in range(16)
        for slot in range(7)
        for name, value in {"uuid": f"MIG-{gpu}-{slot}", "gi": slot + 1, "mem_mib": 9984}.items()
    }
    scenario.set({"count": 16, "gpu.mig": 1, "gpu.gpm": 1, "gpu.gpm.2": 10, **slots})
    tick = read()
    assert len({d.mig_uuid for d in tick.devices if d.mig_uuid}) == 16 * 7
    assert len(tick.devices) == 16 * 8

"""TIMELY (SIGCOMM 2015): round-trip times steer rates, on a testbed and on a cluster."""

from typing import Any

from sojourn import Paper

TIMELY: dict[str, Any] = {
    "kind": "timely",
    "ewma_weight": 0.02,
    "segments": {"pacing": "per_burst"},
}
"""TIMELY as its network cards do it: a segment leaves in one burst."""

LOSSLESS: dict[str, Any] = {"shared_buffer": "12 MB", "control_priority": True, "pause": {}}
"""A switch that pauses its neighbours, with priority for ACKs."""

STAMPS: dict[str, Any] = {"stamps": "wire"}
"""Hosts whose network cards stamp packets as they leave."""

paper = Paper(
    key="timely15",
    citation=(
        "R. Mittal, V. T. Lam, N. Dukkipati, E. Blem, H. Wassel, M. Ghobadi, A. Vahdat, Y. Wang, "
        "D. Wetherall, D. Zats: TIMELY: RTT-based Congestion Control for the Datacenter. "
        "SIGCOMM 2015"
    ),
    setup=(
        "The testbed (D1 to D10) is one rack: ten clients with 10 Gb/s send over long-lived "
        "connections to a server that takes 20 Gb/s. The cluster (D11 to D15) is a Clos network of "
        "hundreds of hosts. Switches pause their neighbours instead of dropping, ACKs have "
        "priority, and network cards stamp packets. T_low is 50 µs, T_high 500 µs, delta 10 Mb/s, "
        "beta 0.8, and a segment, which leaves in one burst, has 16 KB, unless a figure says "
        "otherwise. Of a round-trip time the serialisation of the sender's own packet is taken "
        "off: RTTs as drawn are what TIMELY acts on."
    ),
    deviations=(
        "The number of clients, their connections and the server's 20 Gb/s follow from the fair "
        "shares that the paper names: 500 Mb/s with 4 connections a client, 200 Mb/s with 10, and "
        "2 Gb/s with one. The delays of cables are not known; ours give a round trip of 13.5 µs "
        "over empty queues.",
        "The paper does not give the weight of the moving average of round-trip differences. Ours "
        "is 0.02, as in the authors' published fragment of code. With 0.875, the value of "
        "[ecndelay16], every burst that meets another is taken for a trend: 40 connections of the "
        "testbed then cut their rates to no purpose and use half of the link.",
        "Hosts are as fast as their cables: neither software nor network cards add delays of "
        "their own.",
    ),
)

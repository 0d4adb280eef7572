"""Common parts of the figures of TIMELY (SIGCOMM 2015)."""

from typing import Any

from sojourn import Paper

TIMELY: dict[str, Any] = {
    "kind": "timely",
    "ewma_weight": 0.02,
    "t_high": "1 ms",
    "segments": {"size": "64 KB", "pacing": "per_burst"},
}
"""TIMELY with the parameters of the authors' code for messages of 64 KB, sent in bursts."""

LOSSLESS: dict[str, Any] = {"shared_buffer": "12 MB", "control_priority": True, "pause": {}}
"""Switch with PFC and priority for ACKs."""

STAMPS: dict[str, Any] = {"stamps": "wire"}
"""Hosts whose NICs timestamp departing packets."""

paper = Paper(
    key="timely15",
    citation=(
        "R. Mittal, V. T. Lam, N. Dukkipati, E. Blem, H. Wassel, M. Ghobadi, A. Vahdat, Y. Wang, "
        "D. Wetherall, D. Zats: TIMELY: RTT-based Congestion Control for the Datacenter. "
        "SIGCOMM 2015"
    ),
    setup=(
        "The testbed (D1 to D10) is one rack: ten clients at 10 Gb/s send over long-lived "
        "connections to a server with two ports of 10 Gb/s. The cluster (D11 to D15) is a Clos "
        "network of hundreds of hosts. Switches use PFC instead of dropping, ACKs have priority, "
        "and NICs timestamp packets. TIMELY has the parameters of the authors' published code "
        "fragment for messages of 64 KB: the weight of its moving average is 0.02, T_low 50 µs, "
        "T_high 1 ms; delta is 10 Mb/s and beta 0.8, and the packets of a message are paced at 700 "
        "Mb/s (D9). The claims of the source are judged with this set, except for the parameter "
        "that a figure sweeps and where a figure gives a reason; claims with other sets are our "
        "own. RTTs exclude the serialisation of the sender's own packet: the drawn RTTs are "
        "TIMELY's input."
    ),
    deviations=(
        "The number of clients, their connections and the server's 20 Gb/s follow from the fair "
        "shares that the paper names: 500 Mb/s with 4 connections a client, 200 Mb/s with 10, and "
        "2 Gb/s with one. NICs had 10 Gb/s at the time, so 20 Gb/s are two ports, and a hash "
        "selects the port of a connection. One port of 20 Gb/s was the first choice: there bursts "
        "from two clients pass without a queue, and the mean RTT of paced segments is 0.10 ms "
        "instead of 0.06 ms, higher than that of unpaced bursts (D9). The delays of cables are "
        "unknown; here the RTT over empty queues is 13.9 µs.",
        "Segments of 16 KB and a T_high of 500 µs came before the authors' set, which replaced "
        "them because its parameters belong together, and its RTTs are nearer to those that we "
        "recall of the paper.",
        "The paper does not give the weight of the moving average of round-trip differences. Ours "
        "is 0.02, as in the authors' published fragment of code, with one sample a segment: with "
        "40 connections its memory is 50 ms, and the testbed converges in a second. Hence the "
        "warm-up of a second of all schemes, and a measurement ten times the memory. Before "
        "convergence TIMELY's mean RTT is shorter, 51 µs from 150 to 250 ms, and Jain's index "
        "lower, 0.87. From 1 to 1.5 s, over ten seeds, it is 64 µs at 18.7 Gb/s, and 31 µs at 17.4 "
        "Gb/s with a weight of 0.05; recalled of the paper are 61 µs at 19.4 Gb/s. With 0.875, the "
        "value of [ecndelay16], every collision of bursts counts as a trend: connections reduce "
        "their rates needlessly and use half of the link.",
        "Hosts send at the rate of their cables: neither software nor NICs add delay.",
    ),
)

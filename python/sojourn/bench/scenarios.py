"""Scenarios of the benchmark."""

from typing import Any

from sojourn.base.paths import EXAMPLES
from sojourn.runs.machine import REFERENCE

DUMBBELL = {
    "topology": {
        "kind": "dumbbell",
        "senders": 10,
        "receivers": 10,
        "rate": "10 Gbps",
        "delay": "1 us",
    },
    "transport": {"kind": "dctcp"},
    "time_limit": "100 ms",
}


LONG_LINK = {
    "topology": {"kind": "link", "rate": "2.4 Gbps", "delay": "50 ms"},
    "queue": {"kind": "drop_tail", "capacity": "30000 packets"},
    "packet": {"payload": "960 B", "header": "40 B", "ack": "40 B"},
    "workload": {
        "kind": "poisson",
        "load": 0.9,
        "stop": "20 s",
        "sizes": {"kind": "pareto", "mean": "24 KB", "shape": 1.2, "whole_packets": True},
    },
    "time_limit": "20 s",
}


FABRIC = {
    "topology": {"kind": "leaf_spine", "host_delay": "2.7 us", "fabric_delay": "200 ns"},
    "routing": "spray_round_robin",
    "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
}


WEB_SEARCH = {
    "kind": "poisson",
    "load": 0.8,
    "sizes": {"kind": "empirical", "table": "web_search_packets"},
}


LIVE_FLOWS = {
    "topology": {"kind": "fat_tree", "k": 16, "rate": "100 Gbps", "delay": "1 us"},
    "transport": {"kind": "tcp", "window": {"initial": 1, "max": 1}},
    "time_limit": "400 us",
}


ACKS = {
    "topology": {"kind": "link", "rate": "10 Gbps", "delay": "10 us"},
    "workload": {"kind": "long_lived", "flows": 10},
    "time_limit": "1 s",
}


CONTROLLERS = EXAMPLES / "controllers"


SCENARIOS: dict[str, dict[str, Any]] = {
    "W1": {
        **DUMBBELL,
        "name": "W1: 10 long DCTCP flows on a dumbbell of 10 Gb/s",
        "workload": {"kind": "long_lived", "flows": 10},
    },
    "W2": {**REFERENCE, "name": "W2: web search at load 0.6 on a leaf-spine of 144 hosts"},
    "W3": {
        "name": "W3: permutation of 2 MB flows on a fat-tree of 1024 hosts",
        "topology": {"kind": "fat_tree", "k": 16, "rate": "100 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {"kind": "permutation", "size": "2 MB"},
    },
    "W4": {
        **DUMBBELL,
        "name": "W4: 1000 long DCTCP flows on a dumbbell of 10 Gb/s",
        "workload": {"kind": "long_lived", "flows": 1000},
    },
    "W5-TCP": {
        **LONG_LINK,
        "name": "W5: Pareto flows at load 0.9 on 2.4 Gb/s and 100 ms, TCP SACK",
        "transport": {"kind": "tcp", "window": {"initial": 2}},
    },
    "W5-RCP": {
        **LONG_LINK,
        "name": "W5: Pareto flows at load 0.9 on 2.4 Gb/s and 100 ms, RCP",
        "transport": {"kind": "rcp"},
    },
    "W6": {
        **FABRIC,
        "name": "W6: pFabric, 5000 flows of web search at load 0.8 on 144 hosts",
        "transport": "pfabric",
        "workload": {**WEB_SEARCH, "flows": 5000},
    },
    "W7": {
        **FABRIC,
        "name": "W7: the omniscient scheduler, 1 M flows of web search at load 0.8 on 144 hosts",
        "model": "omniscient",
        "workload": {**WEB_SEARCH, "flows": 1_000_000},
        "time_limit": "20 s",
    },
    "W8": {
        "name": "W8: TIMELY over pause frames, calls of 64 KB at load 0.7 on a Clos of 1024 hosts",
        "topology": {"kind": "clos", "pods": 8, "edges_per_pod": 8, "cores": 32},
        "packet": {"payload": "1460 B", "header": "40 B", "ack": "40 B"},
        "transport": {
            "kind": "timely",
            "ewma_weight": 0.875,
            "segments": {"pacing": "per_burst"},
        },
        "switch": {"shared_buffer": "12 MB", "pause": {}},
        "host": {"stamps": "wire"},
        "workload": {
            "kind": "rpc",
            "request": {"kind": "fixed", "size": "64 KB"},
            "response": {"kind": "fixed", "size": "64 B"},
            "pattern": {"load": 0.7, "pairs": "longest", "stop": "3 ms"},
        },
        "time_limit": "3 ms",
    },
    "W9": {
        "name": "W9: fair queueing of 10 000 flows with a window each on one link of 10 Gb/s",
        "topology": {"kind": "link", "rate": "10 Gbps", "delay": "10 us"},
        "queue": {"kind": "fair_queueing"},
        "transport": {"kind": "tcp", "window": {"initial": 4, "max": 4}},
        "workload": {"kind": "long_lived", "flows": 10_000},
        "time_limit": "1 s",
    },
    "W10": {
        **ACKS,
        "name": "W10: an idle controller in Python, 10 long flows on one link of 10 Gb/s",
        "transport": f"{CONTROLLERS / 'constant_window.py'}:ConstantWindow",
    },
    "W10-Reno": {
        **ACKS,
        "name": "W10: TCP Reno in Python, 10 long flows on one link of 10 Gb/s",
        "transport": f"{CONTROLLERS / 'reno.py'}:Reno",
    },
    "W11": {
        "name": "W11: UET's window control, permutation of 2 MB flows on a fat-tree of 1024 hosts",
        "topology": {"kind": "fat_tree", "k": 16, "rate": "100 Gbps", "delay": "1 us"},
        "packet": {"payload": "4096 B", "header": "64 B", "ack": "64 B"},
        "transport": {"kind": "uet", "control": "nscc"},
        "routing": "entropy",
        "workload": {"kind": "permutation", "size": "2 MB"},
    },
    "W12": {
        "name": "W12: HPCC, 800 flows of web search at load 0.5 on a Clos of 320 hosts",
        "topology": {
            "kind": "clos",
            "pods": 5,
            "host_rate": "100 Gbps",
            "fabric_rate": "400 Gbps",
            "core_rate": "400 Gbps",
        },
        "packet": {"payload": "1000 B", "header": "90 B", "ack": "88 B"},
        "transport": {"kind": "hpcc", "base_rtt": "12240 ns"},
        "switch": {"control_priority": False, "shared_buffer": "32 MB", "pause": {}},
        "workload": {
            "kind": "poisson",
            "load": 0.5,
            "sizes": {"kind": "empirical", "table": "web_search"},
            "flows": 800,
        },
    },
    "W13": {
        **FABRIC,
        "name": "W13: Homa, 20,000 messages of its W3 at load 0.8 on 144 hosts",
        "packet": {"payload": "1442 B", "header": "96 B", "ack": "1 B", "credit": "84 B"},
        "transport": {"kind": "homa", "cutoffs": [433, 2339, 6756]},
        "routing": "spray_random",
        "workload": {
            "kind": "poisson",
            "load": 0.8,
            "sizes": {"kind": "empirical", "table": "homa_w3"},
            "flows": 20_000,
        },
    },
    "W14": {
        "name": "W14: permutation of 1 MB flows on a fat-tree of 8192 hosts",
        "topology": {"kind": "fat_tree", "k": 32, "rate": "100 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {"kind": "permutation", "size": "1 MB"},
    },
    "W14-slow": {
        "name": "W14-slow: W14 at 10 Gb/s, for 200 us",
        "topology": {"kind": "fat_tree", "k": 32, "rate": "10 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {"kind": "permutation", "size": "1 MB"},
        "time_limit": "200 us",
    },
    "W15": {
        **LIVE_FLOWS,
        "name": "W15: a million live flows with a window of a packet each on 1024 hosts",
        "workload": {"kind": "long_lived", "flows": 1_000_000, "jitter": "100 us"},
    },
    "W16": {
        "name": "W16: ring all-reduce of 64 MB over 1024 ranks, beside web search at load 0.3",
        "topology": {"kind": "fat_tree", "k": 16, "rate": "100 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {
            "kind": "mixed",
            "parts": [
                {"kind": "collective", "algorithm": "ring", "ranks": 1024, "size": "64 MB"},
                {
                    "kind": "poisson",
                    "load": 0.3,
                    "sizes": {"kind": "empirical", "table": "web_search"},
                    "stop": "1 ms",
                },
            ],
        },
        "time_limit": "1 ms",
    },
    "W15-few": {
        **LIVE_FLOWS,
        "name": "W15-few: 10 000 live flows with a window of a packet each on 1024 hosts",
        "workload": {"kind": "long_lived", "flows": 10_000, "jitter": "100 us"},
    },
    "W18": {
        "name": "W18: web search at load 0.3 on a fat-tree of 65 536 hosts, 100 us",
        "topology": {"kind": "fat_tree", "k": 64, "rate": "10 Gbps", "delay": "1 us"},
        "transport": {"kind": "dctcp"},
        "workload": {
            "kind": "poisson",
            "load": 0.3,
            "stop": "100 us",
            "sizes": {"kind": "empirical", "table": "web_search"},
        },
        "time_limit": "100 us",
    },
    "W17": {
        "name": "W17: processor sharing, 1 M flows of Hadoop at load 0.2 on 100 352 hosts",
        "model": "processor_sharing",
        "topology": {
            "kind": "clos",
            "pods": 128,
            "edges_per_pod": 16,
            "hosts_per_edge": 49,
            "aggregations_per_pod": 8,
            "cores": 64,
            "fabric_rate": "40 Gbps",
        },
        "workload": {
            "kind": "poisson",
            "load": 0.2,
            "flows": 1_000_000,
            "sizes": {"kind": "empirical", "table": "fb_hadoop"},
        },
    },
}

"""Figure S1: error of each answer for 1024 hosts against its CPU time."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from sojourn import (
    Figure,
    Labelled,
    Run,
    Scale,
    Verdict,
    at_least,
    at_most,
    between,
    every,
    looks,
    metrics,
    override,
    plot,
)

from .paper import CLOSE, FLOWS, PACKETS, SAMPLE, cpu_seconds, paper, schemes, uniform

SAMPLE_256, SAMPLE_128, SAMPLE_64 = (f"{SAMPLE} of {hosts}" for hosts in (256, 128, 64))

FLUID, SMALL = "fluid alone", "128 hosts as they are"

figure = Figure(
    paper,
    id="s1",
    title="Error and CPU time of answers for 1024 hosts",
    source="ours",
    scales={
        "smoke": {"pods": 6, "flows_per_host": 4},
        "quick": {"pods": 16, "flows_per_host": 12},
        "paper": {"pods": 16, "flows_per_host": 100},
    },
    deviations=(
        "The error is prediction / whole packet run - 1, of means over the seeds: of the mean and "
        "of the p99 of slowdowns, in four ranges of sizes up to 1 MB, under DCTCP and Swift. "
        "`sample` simulates two folded networks, and `flows` learns its law from two of 128 hosts. "
        "The fluid alone is processor sharing; 128 hosts as they are have two pods of the network "
        "at the same load of core links.",
        "Large marks are the largest errors, small ones those of the sizes. The grey area is the "
        "95 % interval of the whole packet runs themselves (the median over sizes): errors within "
        "it may be chance.",
        "CPU times are those of the first run of each scenario, on whatever else the machine did.",
    ),
    panels=(1, 2),
    size=(11, 4.6),
)

SIZES = metrics.size_buckets(1e3, 10e3, 100e3, 1e6)[:-1]
"""Ranges of sizes with 1000 flows or more in each run at the scale `quick`."""


ANSWERS: dict[str, dict[str, Any]] = {
    PACKETS: {},
    SAMPLE_256: {"fidelity": {"kind": SAMPLE, "hosts": 256}},
    SAMPLE_128: {"fidelity": {"kind": SAMPLE, "hosts": 128}},
    SAMPLE_64: {"fidelity": {"kind": SAMPLE, "hosts": 64}},
    FLOWS: {"fidelity": {"kind": FLOWS, "hosts": 128}},
    FLUID: {"model": "processor_sharing"},
}
"""Changes of the whole scenario that make each answer."""


@figure.runs
def runs(scale: Scale) -> Iterator[Labelled]:
    whole, small = (uniform(pods, scale["flows_per_host"]) for pods in (scale["pods"], 2))
    for scheme, transport in schemes.items():
        for answer, change in ANSWERS.items():
            yield {"answer": answer, "scheme": scheme}, override(whole, transport, change)
        yield {"answer": SMALL, "scheme": scheme}, override(small, transport)


@figure.table
def table(runs: list[Run]) -> pl.DataFrame:
    measures = {
        f"{statistic} of {bucket.name}": metrics.slowdown(statistic, bucket)
        for statistic in CLOSE
        for bucket in (metrics.ALL, *SIZES)
    }
    return metrics.across_seeds(metrics.measure(runs, cpu_s=cpu_seconds, **measures))


def ratio(table: pl.DataFrame, answer: str, scheme: str, metric: str) -> float:
    """Return a number of an answer over that of packets of the whole network."""
    predicted, whole = (
        metrics.at(table, answer=name, scheme=scheme, metric=metric) for name in (answer, PACKETS)
    )
    return predicted / whole


@figure.draw
def draw(axes: Any, table: pl.DataFrame, published: pl.DataFrame | None) -> None:
    for panel, statistic in zip(axes, CLOSE, strict=True):
        cells = [
            (scheme, f"{statistic} of {bucket.name}") for scheme in schemes for bucket in SIZES
        ]
        for answer in table["answer"].unique(maintain_order=True):
            if answer == PACKETS:
                continue
            look = looks.look(answer)
            errors = [100 * abs(ratio(table, answer, *cell) - 1) for cell in cells]
            seconds = table.filter(answer=answer, metric="cpu_s")["value"].mean()
            panel.scatter([seconds] * len(errors), errors, color=look.colour, s=12, alpha=0.4)
            marker: Any = {"marker": look.marker, "markersize": 10, "linestyle": "none"}
            panel.plot(seconds, max(errors), color=look.colour, label=answer, **marker)
        whole = table.filter(answer=PACKETS)
        seconds = whole.filter(metric="cpu_s")["value"].mean()
        panel.axvline(seconds, color=looks.BLACK, linestyle="--", linewidth=1, label=PACKETS)
        extents = whole.filter(pl.col("metric").is_in([metric for _, metric in cells])).select(
            100 * (pl.col("high") - pl.col("low")) / 2 / pl.col("value")
        )
        panel.axhspan(0, extents.to_series().median() or 0, color=looks.GREY, alpha=0.15, lw=0)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(bottom=1)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter("{x:g}")
        panel.set_xlabel("CPU time in s")
        panel.set_title(f"{statistic} of slowdowns", loc="right", fontsize=10)
        plot.legend(panel)
    axes[0].set_ylabel("error in %: each size, and the largest")
    plot.one_legend(axes)


def is_close(table: pl.DataFrame, answer: str) -> Verdict:
    """Judge whether the slowdowns of all flows are those of packets of the whole."""
    return every(
        between(
            ratio(table, answer, scheme, f"{statistic} of {metrics.ALL.name}"),
            1 / most,
            most,
            f"{statistic} under {scheme} over that of the whole",
        )
        for statistic, most in CLOSE.items()
        for scheme in schemes
    )


@figure.claim(
    "two samples of 256 hosts have the mean within 5 % and the p99 within 10 %", stated=False
)
def samples_are_close(table: pl.DataFrame) -> Verdict:
    return is_close(table, SAMPLE_256)


@figure.claim(
    "two samples of 64 hosts have the mean within 5 % and the p99 within 10 %", stated=False
)
def small_samples_are_close(table: pl.DataFrame) -> Verdict:
    return is_close(table, SAMPLE_64)


@figure.claim(
    "a fluid corrected by a law has the mean within 5 % and the p99 within 10 %", stated=False
)
def corrected_fluid_is_close(table: pl.DataFrame) -> Verdict:
    return is_close(table, FLOWS)


@figure.claim("the fluid alone has means that are 20 % or more too low", stated=False)
def fluid_is_too_low(table: pl.DataFrame) -> Verdict:
    return every(
        at_most(
            ratio(table, FLUID, scheme, f"mean of {metrics.ALL.name}"),
            0.8,
            f"mean under {scheme} over that of the whole",
        )
        for scheme in schemes
    )


@figure.claim(
    "a smaller network with the same load has another mean: 10 % or more off", stated=False
)
def smaller_network_is_off(table: pl.DataFrame) -> Verdict:
    ratios = {
        scheme: ratio(table, SMALL, scheme, f"mean of {metrics.ALL.name}") for scheme in schemes
    }
    return every(
        at_least(max(value, 1 / value), 1.1, f"mean under {scheme}, the larger over the smaller,")
        for scheme, value in ratios.items()
    )

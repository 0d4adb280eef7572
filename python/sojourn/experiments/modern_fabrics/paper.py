"""Traffic of distributed training on fabrics of 100 Gb/s: figures of our own."""

from sojourn import Paper

paper = Paper(
    key="modern_fabrics",
    citation="This project: collective operations on leaf-spine fabrics",
    setup=(
        "Leaf-spine fabrics without oversubscription, with links of 100 Gb/s and 1 us; hosts, loss "
        "recovery and buffers are those of the environment that follows from network and scheme. "
        "Claims were written before the first runs, and remain unchanged where they failed."
    ),
)

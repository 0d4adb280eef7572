"""Export of recorded flows in formats that other tools read.

`recorded` selects packets from a result's tables; `pcapng`, `qlog` and `perfetto` write one format
each.
"""

"""Import of other tools' files: topologies, flows, flow sizes and rate traces become a scenario.

`formats` lists the formats, each of which is read in one file; `parts` defines their common result,
and `scenario` writes it in the documented formats of scenarios.
"""

"""Page of one run or two: flows, FCT breakdown, packets, network and time series, in one file."""

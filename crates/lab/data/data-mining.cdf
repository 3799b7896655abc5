# Sizes of flows in a cluster that mines data: bytes, share of flows at most so large.
# Measured by Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, Fig. 2; in
# this table of bytes the points are used by PIAS (NSDI 2015) and MQ-ECN (NSDI 2016). pFabric (SIGCOMM 2013)
# has the same distribution in packets, cut coarser. The mean is 12.66 MB.
0           0
180         0.1
216         0.2
560         0.3
900         0.4
1100        0.5
1870        0.6
3160        0.7
10000       0.8
400000      0.9
3160000     0.95
100000000   0.98
1000000000  1

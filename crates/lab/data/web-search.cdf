# Sizes of flows in a cluster that answers web searches: bytes, share of flows at most so large.
# Measured by Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, Fig. 4; in this table of bytes the
# points are used by the studies that followed (pFabric, SIGCOMM 2013; PIAS, NSDI 2015; HPCC, SIGCOMM
# 2019). The mean is 1.71 MB.
0         0
10000     0.15
20000     0.20
30000     0.30
50000     0.40
80000     0.53
200000    0.60
1000000   0.70
2000000   0.80
5000000   0.90
10000000  0.97
30000000  1

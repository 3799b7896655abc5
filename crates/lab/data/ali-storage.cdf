# Sizes of flows in a distributed storage system at Alibaba in 2019: bytes, percentage of flows at most so
# large. Source: AliStorage2019.txt of alibaba-edu/High-Precision-Congestion-Control at 9f4be2a. The mean
# is 40.9 KB.
0         0
4000      22.93
8000      69.21
16000     80.61
32000     90.47
64000     93.53
128000    96.77
256000    97.53
2000000   100

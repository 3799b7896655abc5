// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// `bpf_vegas`: delay-based congestion avoidance (Brakmo, O'Malley and Peterson, 1994) for kernels that
// were built without it. Behaves as Linux's own `vegas` (tcp_vegas.c) does, and as Weir's
// crates/cc/src/vegas.rs, which has the equations in bytes:
//
//   once per round trip, with at least 3 RTT samples:
//     rtt     = smallest RTT of the round, base_rtt = smallest ever
//     backlog = cwnd (rtt - base_rtt) / base_rtt                      segments in the queue
//     slow start            backlog > 1:   cwnd = cwnd base_rtt / rtt + 1, and it ends
//     congestion avoidance  backlog < 2:   cwnd += 1
//                           backlog > 4:   cwnd -= 1
//   loss, timeout, fewer samples: as Reno
//
// Units are the kernel's: segments, microseconds, one more than measured, every quotient rounded down.
//
//   weir stack bpf vegas
//   iperf3 -C bpf_vegas ...

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// What the kernel lets congestion controls in BPF call.
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;

enum {
	ALPHA = 2,
	BETA = 4,
	GAMMA = 1,
	FEW_SAMPLES = 2,
	SMALLEST_WINDOW = 2,
	ENDLESS = 0x7fffffff,
};

// Of one connection, in the space that the kernel reserves for its congestion control.
struct vegas {
	__u32 round_end; // snd_nxt when the round began: it ends when snd_una passes it
	__u32 samples;	 // of the RTT in this round
	__u32 rtt;	 // the smallest of them
	__u32 base_rtt;	 // the smallest of the connection
	__u32 active;	 // in the open state only; Reno otherwise
};

static __always_inline struct vegas *vegas_of(struct sock *sk)
{
	return (struct vegas *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void begin_round(struct sock *sk)
{
	struct vegas *vegas = vegas_of(sk);

	vegas->round_end = ((struct tcp_sock *)sk)->snd_nxt;
	vegas->samples = 0;
	vegas->rtt = ENDLESS;
}

static __always_inline void begin(struct sock *sk)
{
	struct vegas *vegas = vegas_of(sk);

	vegas->base_rtt = ENDLESS;
	vegas->active = 1;
	begin_round(sk);
}

// The round is over: moves the window by what the queue held.
static __always_inline void end_round(struct sock *sk, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct vegas *vegas = vegas_of(sk);
	__u32 cwnd = tp->snd_cwnd, rtt = vegas->rtt, base_rtt = vegas->base_rtt;
	__u32 backlog = cwnd * (rtt - base_rtt) / base_rtt;
	int in_slow_start = cwnd < tp->snd_ssthresh;

	if (in_slow_start && backlog <= GAMMA) {
		tcp_slow_start(tp, acked);
		cwnd = tp->snd_cwnd;
	} else if (in_slow_start) {
		__u32 fits = (__u64)cwnd * base_rtt / rtt + 1;

		if (fits < cwnd)
			cwnd = fits;
	} else if (backlog > BETA) {
		cwnd--;
	} else if (backlog < ALPHA) {
		cwnd++;
	}
	// What asked for less is the new threshold.
	if (backlog > (in_slow_start ? GAMMA : BETA) && cwnd < tp->snd_ssthresh)
		tp->snd_ssthresh = cwnd;
	if (cwnd < SMALLEST_WINDOW)
		cwnd = SMALLEST_WINDOW;
	if (cwnd > tp->snd_cwnd_clamp)
		cwnd = tp->snd_cwnd_clamp;
	tp->snd_cwnd = cwnd;
	// Three quarters of the window prove that the path carries at least so much.
	if (tp->snd_ssthresh < cwnd / 2 + cwnd / 4)
		tp->snd_ssthresh = cwnd / 2 + cwnd / 4;
}

SEC("struct_ops/init")
void BPF_PROG(bpf_vegas_init, struct sock *sk)
{
	begin(sk);
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(bpf_vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *vegas = vegas_of(sk);
	__s32 rtt_us = sample->rtt_us;
	__u32 rtt;

	if (rtt_us < 0)
		return;
	rtt = rtt_us + 1; // never zero: it is divided by
	if (rtt < vegas->base_rtt)
		vegas->base_rtt = rtt;
	if (rtt < vegas->rtt)
		vegas->rtt = rtt;
	vegas->samples++;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(bpf_vegas_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct vegas *vegas = vegas_of(sk);

	if (!vegas->active) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if ((__s32)(ack - vegas->round_end) > 0) {
		if (vegas->samples > FEW_SAMPLES)
			end_round(sk, acked);
		else
			tcp_reno_cong_avoid(sk, ack, acked);
		begin_round(sk);
	} else if (tp->snd_cwnd < tp->snd_ssthresh) {
		tcp_slow_start(tp, acked);
	}
}

SEC("struct_ops/set_state")
void BPF_PROG(bpf_vegas_set_state, struct sock *sk, __u8 state)
{
	struct vegas *vegas = vegas_of(sk);

	vegas->active = state == TCP_CA_Open;
	if (vegas->active)
		begin_round(sk);
}

// What was measured before everything was acknowledged says nothing of the path now.
SEC("struct_ops/cwnd_event")
void BPF_PROG(bpf_vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		begin(sk);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(bpf_vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(bpf_vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops vegas = {
	.init = (void *)bpf_vegas_init,
	.pkts_acked = (void *)bpf_vegas_pkts_acked,
	.cong_avoid = (void *)bpf_vegas_cong_avoid,
	.set_state = (void *)bpf_vegas_set_state,
	.cwnd_event = (void *)bpf_vegas_cwnd_event,
	.ssthresh = (void *)bpf_vegas_ssthresh,
	.undo_cwnd = (void *)bpf_vegas_undo_cwnd,
	.name = "bpf_vegas",
};

// Only such a program may call the kernel's own functions.
char LICENSE[] SEC("license") = "GPL";

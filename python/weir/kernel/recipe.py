"""How the guest kernel is made: from which source, with which options, with which changes.

A pure description, executed by `build`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weir._native import kernel_controllers
from weir.base.errors import WeirError


class KernelError(WeirError):
    """The guest kernel cannot be made, is not there, or did not run to the end."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one source file: `old` is replaced wherever it stands.

    `times` says how often that is; kernels of different versions may differ.
    """

    file: str
    old: str
    new: str
    times: tuple[int, ...] = (1,)

    def applied(self, text: str) -> str:
        """The text of the file with this change; a text that has it already stays as it is.

        Raises:
            KernelError: the file is not the one this change was written for.
        """
        if text.count(self.new) in self.times and self.old not in text.replace(self.new, ""):
            return text
        found = text.count(self.old)
        if found not in self.times:
            expected = " or ".join(map(str, self.times))
            raise KernelError(
                f"{self.file} is not as expected: {self.old.strip()!r} occurs {found} times, not "
                f"{expected}; guest kernels are made from {' and '.join(PACKAGED)}"
            )
        return text.replace(self.old, self.new)


CHANGES: Sequence[Change] = (
    # A CPU with AMX has a register area of 11 KB: PTRACE_SETREGSET fails with a smaller buffer.
    Change(
        "arch/x86/um/user-offsets.c",
        "DEFINE_LONGS(HOST_FP_SIZE, 2696)",
        "DEFINE_LONGS(HOST_FP_SIZE, 12288)",
    ),
    # Retransmission timers count in jiffies; of 10 ms they would be unlike any server's.
    Change("arch/um/Kconfig", "\tint\n\tdefault 100\n", "\tint\n\tdefault 1000\n"),
    # Random numbers come from the command line, which names the seed, and from nothing of the host:
    # neither its generator nor its cycle counter.
    Change(
        "arch/um/os-Linux/util.c",
        "\treturn getrandom(buf, len, flags);\n",
        "\tmemset(buf, 0x77, len);\n\treturn len;\n",
    ),
    Change("arch/x86/include/asm/timex.h", "\treturn rdtsc();\n", "\treturn 1;\n"),
    # The processes of a guest end with it, also when it is killed.
    Change(
        "arch/um/os-Linux/skas/process.c",
        "PTRACE_O_TRACESYSGOOD)",
        "(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))",
        # Two in 6.1, one in 6.12.
        times=(1, 2),
    ),
    # A reading of the clock costs nothing, and the clock has nanoseconds: what a packet causes
    # happens at the very time of the packet, as in the simulator. Only a program that waits for the
    # clock to change, by reading it over and over, makes it change.
    Change("arch/um/include/linux/time-internal.h", "TIMER_MULTIPLIER 256", "TIMER_MULTIPLIER 1"),
    Change(
        "arch/um/kernel/time.c",
        "\t\t    !time_travel_ext_waiting)\n\t\t\ttime_travel_update_time_rel(TIMER_MULTIPLIER);\n",
        """\t\t    !time_travel_ext_waiting) {
			static unsigned long long weir_read;
			static unsigned int weir_readings;

			if (time_travel_time != weir_read)
				weir_readings = 0;
			if (++weir_readings > 10000)
				time_travel_update_time_rel(256);
			weir_read = time_travel_time;
		}
""",
    ),
    # Timers are exact: they are 1 ns late otherwise, and those of less than 500 ns take that long.
    Change(
        "arch/um/kernel/time.c",
        "\tdelta += 1;\n",
        "\tif (time_travel_mode == TT_MODE_OFF || !delta)\n\t\tdelta += 1;\n",
    ),
    Change(
        "arch/um/include/linux/time-internal.h",
        "#define TIMER_MIN_DELTA  500",
        "#define TIMER_MIN_DELTA  1",
    ),
    # A call that fails takes 1 us in virtual time, so that a loop of them ends. Reading until there
    # is no more is no loop: only a thread that fails over and over without waiting is charged.
    Change(
        "arch/um/include/asm/processor-generic.h",
        "\tstruct task_struct *prev_sched;\n",
        "\tstruct task_struct *prev_sched;\n"
        "\tunsigned long weir_waited;\n"
        "\tunsigned int weir_failures;\n",
    ),
    Change(
        "arch/um/kernel/skas/syscall.c",
        "\t\t\tum_udelay(1);\n",
        """\t\t\tstruct thread_struct *thread = &current->thread;

			if (thread->weir_waited != current->nvcsw) {
				thread->weir_waited = current->nvcsw;
				thread->weir_failures = 0;
			}
			if (++thread->weir_failures > 1000)
				um_udelay(1);
""",
    ),
    # With `weir_draws` on the command line, congestion controls draw what the simulator's do: it
    # has the state of their generator (PCG XSL 128/64 MCG, as crates/units/src/rng.rs).
    Change(
        "net/ipv4/tcp_cong.c",
        "struct tcp_congestion_ops tcp_reno = {\n",
        """bool weir_draws;
u32 weir_ts_off;
static unsigned __int128 weir_state;

u64 weir_draw(void)
{
	u64 folded;

	weir_state *= (unsigned __int128)0x2360ed051fc65da4ULL << 64 | 0x4385df649fccf645ULL;
	folded = (u64)(weir_state >> 64) ^ (u64)weir_state;
	return ror64(folded, (unsigned int)(weir_state >> 122));
}
EXPORT_SYMBOL_GPL(weir_draw);

static int __init weir_draws_setup(char *text)
{
	unsigned __int128 state = 0;
	int digit;

	for (; (digit = hex_to_bin(*text)) >= 0; text++)
		state = state << 4 | digit;
	/* TCP-LP draws the offset of the peer's timestamps; other controls never see it. */
	weir_state = state;
	weir_ts_off = weir_draw() >> 32;
	weir_state = state;
	weir_draws = true;
	return 1;
}
__setup("weir_draws=", weir_draws_setup);

struct tcp_congestion_ops tcp_reno = {
""",
    ),
    Change(
        "include/net/tcp.h",
        "#define MAX_TCP_HEADER\t",
        "extern bool weir_draws;\nextern u32 weir_ts_off;\nu64 weir_draw(void);\n\n"
        "#define MAX_TCP_HEADER\t",
    ),
    Change(
        "net/ipv4/tcp_cdg.c",
        "\tif (get_random_u32() <= nexp_u32(",
        "\tif ((weir_draws ? (u32)(weir_draw() >> 32) : get_random_u32()) <= nexp_u32(",
    ),
    Change(
        "net/ipv4/tcp_nv.c",
        "\t\tget_random_bytes(&rand, 1);\n",
        "\t\tif (weir_draws)\n\t\t\trand = weir_draw() >> 56;\n"
        "\t\telse\n\t\t\tget_random_bytes(&rand, 1);\n",
    ),
    *(
        Change(
            "net/ipv4/tcp_bbr.c",
            f" - {name}(bbr_cycle_rand);",
            f" - (weir_draws ? (u32)(((unsigned __int128)weir_draw() * bbr_cycle_rand) >> 64) :\n"
            f"\t\t{name}(bbr_cycle_rand));",
            # Each in one version.
            times=(0, 1),
        )
        for name in ("prandom_u32_max", "get_random_u32_below")
    ),
    Change(
        "net/core/secure_seq.c",
        "\t\tst.ts_off = 0;\n",
        "\t\tst.ts_off = 0;\n\telse if (weir_draws)\n\t\tst.ts_off = weir_ts_off;\n",
        times=(2,),
    ),
    # Calls of a task that has not blocked for long cost time, if the command line says `weir_spin`.
    # Without that a loop of `sched_yield` or `poll(.., 0)` stops virtual time for ever.
    Change(
        "arch/um/include/asm/processor-generic.h",
        "\tstruct task_struct *prev_sched;\n",
        "\tstruct task_struct *prev_sched;\n"
        "\tunsigned long weir_blocked;\n"
        "\tunsigned int weir_calls;\n",
    ),
    Change(
        "arch/um/kernel/skas/syscall.c",
        "void handle_syscall(struct uml_pt_regs *r)\n{\n",
        """static bool weir_spin;

static int __init weir_spin_setup(char *text)
{
	weir_spin = true;
	return 1;
}
__setup("weir_spin", weir_spin_setup);

/* Not for init, which carries the packets of the link. */
static void weir_charge(void)
{
	struct thread_struct *thread = &current->thread;

	if (!weir_spin || current->tgid == 1)
		return;
	if (thread->weir_blocked != current->nvcsw) {
		thread->weir_blocked = current->nvcsw;
		thread->weir_calls = 0;
	}
	if (++thread->weir_calls <= 1000)
		return;
	um_udelay(thread->weir_calls > 20000 ? 10 : 1);
	schedule();
}

void handle_syscall(struct uml_pt_regs *r)
{
	weir_charge();
""",
    ),
    Change(
        "arch/um/kernel/skas/syscall.c",
        "#include <linux/kernel.h>\n",
        "#include <linux/kernel.h>\n#include <linux/init.h>\n#include <linux/sched.h>\n",
    ),
)

COUNTER_CHANGES: Sequence[Change] = (
    # The instructions fault (PR_SET_TSC of prctl(2)), and children inherit that.
    Change(
        "arch/um/os-Linux/skas/process.c",
        "#include <linux/threads.h>\n",
        "#include <linux/threads.h>\n#include <sys/prctl.h>\n\nextern int weir_tsc;\n",
    ),
    Change(
        "arch/um/os-Linux/skas/process.c",
        "\tptrace(PTRACE_TRACEME, 0, 0, 0);\n",
        """	ptrace(PTRACE_TRACEME, 0, 0, 0);
	if (weir_tsc && prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) < 0) {
		os_info("weir_tsc: PR_SET_TSC failed, errno = %d\\n", errno);
		exit(1);
	}
""",
    ),
    Change(
        "arch/um/kernel/trap.c",
        "static void show_segv_info(struct uml_pt_regs *regs)\n{\n",
        """int weir_tsc;

static int __init weir_tsc_setup(char *text)
{
	weir_tsc = 1;
	return 1;
}
__setup("weir_tsc", weir_tsc_setup);

/* Whether the process faulted at rdtsc or rdtscp, which it then has done:
 * the counter has 1 GHz, and the processor is number 0.
 */
static bool weir_read_tsc(struct uml_pt_regs *regs)
{
	unsigned char __user *ip = (unsigned char __user *) UPT_IP(regs);
	unsigned char code[3];
	bool is_rdtscp;
	u64 now;

	/* A general protection fault, and no page fault. */
	if (UPT_FAULTINFO(regs)->trap_no != 13 || copy_from_user(code, ip, 2))
		return false;
	is_rdtscp = code[0] == 0x0f && code[1] == 0x01 &&
		!copy_from_user(code + 2, ip + 2, 1) && code[2] == 0xf9;
	if (!is_rdtscp && (code[0] != 0x0f || code[1] != 0x31))
		return false;
	/* This advances the clock as any reading, so that loops end. */
	now = ktime_get_ns();
	regs->gp[HOST_AX] = (u32) now;
	regs->gp[HOST_DX] = now >> 32;
	if (is_rdtscp)
		regs->gp[HOST_CX] = 0;
	UPT_IP(regs) += is_rdtscp ? 3 : 2;
	return true;
}

static void show_segv_info(struct uml_pt_regs *regs)
{
""",
    ),
    Change(
        "arch/um/kernel/trap.c",
        "\tif (UPT_IS_USER(regs) && !SEGV_IS_FIXABLE(fi)) {\n",
        "\tif (weir_tsc && UPT_IS_USER(regs) && weir_read_tsc(regs))\n"
        "\t\treturn;\n\n"
        "\tif (UPT_IS_USER(regs) && !SEGV_IS_FIXABLE(fi)) {\n",
    ),
    Change(
        "arch/um/kernel/trap.c",
        "#include <linux/mm.h>\n",
        "#include <linux/mm.h>\n#include <linux/init.h>\n#include <linux/ktime.h>\n",
    ),
)
"""With `weir_tsc` on the command line, `rdtsc` and `rdtscp` of processes then read virtual time.

They are no part of the usual kernel: recorded traces are of that, and it need not be built again.
"""

OPTIONS = Path(__file__).with_name("guest.config")
"""Every option that is on."""

_WITHOUT_A_CHOICE = {"CONFIG_RANDOM_TRUST_CPU"}
"""What later kernels do in any case, without an option."""

CONTROLS = tuple(kernel_controllers())
"""The congestion controls of the guest's TCP."""

MAKE = (
    "ARCH=um",
    # The same source gives the same kernel on any machine: its version seeds random numbers.
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER=weir",
    "KBUILD_BUILD_HOST=weir",
    "KBUILD_BUILD_VERSION=1",
    "LOCALVERSION=-weir",
)
"""Arguments of every call of make."""

PACKAGES = {
    "gcc": "gcc",
    "make": "make",
    "ld": "binutils",
    "bc": "bc",
    "bison": "bison",
    "flex": "flex",
    "perl": "perl",
    "tar": "tar",
    "xz": "xz-utils",
}
"""The programs that a build runs, and Debian's package of each."""

HEADERS = {Path("/usr/include/stdio.h"): "libc6-dev"}

OBJECTS = 740
"""Approximate number of compiled files, for the progress bar only."""

SOURCES = Path("/usr/src")
DEFAULT_SERIES = "6.1"
"""Recorded traces are of its kernel."""
PACKAGED = (f"linux-source-{DEFAULT_SERIES}", "linux-source-6.12")
"""The packages that the changes fit; the first is the default."""


def options() -> dict[str, str]:
    """Every option that is on, and its value."""
    lines = OPTIONS.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def refused(config: str) -> list[str]:
    """The options that the kernel's own configuration did not take over."""
    taken = set(config.splitlines())
    wanted = {name: value for name, value in options().items() if name not in _WITHOUT_A_CHOICE}
    return [name for name, value in wanted.items() if f"{name}={value}" not in taken]


def changes(*, virtual_tsc: bool) -> Sequence[Change]:
    """The changes of the sources, in their order."""
    return (*CHANGES, *COUNTER_CHANGES) if virtual_tsc else CHANGES


def digest(*, virtual_tsc: bool = False) -> str:
    """Another one for every other recipe."""
    whole = hashlib.sha256(OPTIONS.read_bytes())
    for text in (*MAKE, *(repr(change) for change in changes(virtual_tsc=virtual_tsc))):
        whole.update(text.encode() + b"\0")
    return whole.hexdigest()[:8]


def sources(folder: Path = SOURCES) -> list[Path]:
    """The kernel sources that Debian's packages have put there, the newest last."""
    found = folder.glob("linux-source-*.tar.xz")
    return sorted(found, key=lambda path: version_key(path.name.removesuffix(".tar.xz")))


def source_of(version: str, folder: Path = SOURCES) -> Path:
    """The source that Debian's package of a version, as 6.12, has put there."""
    return folder / f"linux-source-{version}.tar.xz"


def default_source(folder: Path = SOURCES) -> Path:
    """The source of the default kernel, or the newest if that package is not installed."""
    found = sources(folder)
    default = (path for path in found if path.name == f"{PACKAGED[0]}.tar.xz")
    return next(default, found[-1])


def version_key(text: str) -> tuple[int, ...]:
    """The numbers in a version, for sorting: 6.10 is newer than 6.9."""
    return tuple(int(number) for number in re.findall(r"\d+", text))

"""A wall around a process that computes and nothing else: which calls of the kernel it may still make (seccomp).

    allow_computing()        # from here on: read, write, memory, time, and the end

Limits on resources (`worker.confine`) keep a process from opening anything. What needs no descriptor is left: tracing or
signalling another process of the same user, which would be the door that holds the secrets; renaming or deleting a file;
running a program. The filter is a list of what is allowed, because new kernels bring new calls; whatever is not on it fails with
EPERM, so that a call of a library that nobody thought of costs that call and not the process.

The numbers are those of the kernel's tables for the two architectures that we run on. On another one there is no filter, and the
answer says so: a list for the wrong architecture would allow other calls than it names.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from typing import Final

# struct sock_filter: operation, jump if true, jump if false, operand (linux/filter.h, linux/seccomp.h)
_INSTRUCTION: Final = struct.Struct("HBBI")
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4  # struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38  # prctl(2)

# read, write, close, readv, writev; mmap, mprotect, munmap, brk, mremap, madvise; rt_sigaction, rt_sigprocmask, rt_sigreturn,
# sigaltstack; sched_yield, futex, membarrier, rseq, restart_syscall; getpid, gettid, sched_getaffinity; nanosleep, getitimer,
# setitimer, gettimeofday, clock_gettime, clock_nanosleep; getrandom; exit, exit_group
_CALLS: Final = {
    "x86_64": (0xC000003E, (
        0, 1, 3, 19, 20, 9, 10, 11, 12, 25, 28, 13, 14, 15, 131, 24, 202, 324, 334, 219, 39, 186, 204, 35, 36, 38, 96, 228, 230,
        318, 60, 231,
    )),
    "aarch64": (0xC00000B7, (
        63, 64, 57, 65, 66, 222, 226, 215, 214, 216, 233, 134, 135, 139, 132, 124, 98, 283, 293, 128, 172, 178, 123, 101, 102,
        103, 169, 113, 115, 278, 93, 94,
    )),
}  # fmt: skip


class _Program(ctypes.Structure):
    """A filter as the kernel takes it (struct sock_fprog of linux/filter.h)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def allow_computing() -> bool:
    """Give up all other calls, for good; False where that cannot be had."""
    if platform.machine() not in _CALLS:
        return False
    code = filter_program(platform.machine())
    kernel = ctypes.CDLL(None)
    program = _Program(len(code) // _INSTRUCTION.size, code)
    # Without this a filter needs privileges: it could deceive a program that has more rights than whoever starts it.
    kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(kernel.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0)


def filter_program(machine: str) -> bytes:
    """The filter of an architecture: another architecture's numbers are refused, then each call is looked for in the list."""
    architecture, allowed = _CALLS[machine]
    count = len(allowed)
    lines = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, count + 1, architecture),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        *((_JUMP_IF_EQUAL, count - position, 0, number) for position, number in enumerate(allowed)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)

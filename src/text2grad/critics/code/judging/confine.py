"""What a process may not do to others: the kernel refuses it, whatever user it runs as.

`protect` keeps other processes of the same user away from this one's memory and descriptors. `confine` installs a
system-call filter, for good and for all threads: no signals to any process, no tracing, no new processes or programs,
no limits or priorities of others. Refused calls fail with EPERM.
"""

from __future__ import annotations

import ctypes
import os

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_MODE_FILTER = 2
_CLONE_THREAD = 0x00010000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in the kernel's record of a call
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
_X32 = 0x40000000

# kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal, ptrace process_vm_readv process_vm_writev
# kcmp pidfd_open pidfd_getfd, fork vfork execve execveat unshare setns, bpf perf_event_open userfaultfd
# io_uring_setup add_key request_key keyctl, setpriority sched_setscheduler sched_setattr
_REFUSED = {
    "x86_64": (62, 200, 234, 129, 297, 424, 101, 310, 311, 312, 434, 438, 57, 58, 59, 322, 272, 308, 321, 298, 323,
               425, 248, 249, 250, 141, 144, 314),
    "aarch64": (129, 130, 131, 138, 240, 424, 117, 270, 271, 272, 434, 438, 221, 281, 97, 268, 280, 241, 282,
                425, 217, 218, 219, 140, 119, 274),
}  # fmt: skip
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE, _PRLIMIT = {"x86_64": 56, "aarch64": 220}, {"x86_64": 302, "aarch64": 261}
_CLONE3 = 435  # its flags are in memory, where a filter cannot look; the C library then uses clone


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


def protect() -> None:
    """Make this process, and those that it forks, unreadable for others of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def prepare_filter() -> _Program:
    """Return the filter for `confine`; raise OSError on an architecture that it is not written for."""
    machine = os.uname().machine
    if machine not in _REFUSED:
        raise OSError(f"there is no system-call filter for {machine}")
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _KILL)]
    lines += [(_LOAD, 0, 0, _NUMBER), (_JUMP_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _EPERM)]
    for number in _REFUSED[machine]:
        lines += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    lines += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ENOSYS)]
    # a new thread is no new process
    lines += [(_JUMP_EQUAL, 0, 4, _CLONE[machine]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    lines += [(_JUMP_SET, 0, 1, _CLONE_THREAD), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _EPERM)]
    # process 0 is the calling one
    lines += [(_JUMP_EQUAL, 0, 3, _PRLIMIT[machine]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    lines += [(_JUMP_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return _Program(len(lines), (_Instruction * len(lines))(*(_Instruction(*line) for line in lines)))


def confine(program: _Program) -> None:
    """Install the filter in this process."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program))


def _prctl(option: int, *arguments: object) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    values = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in padded]
    if ctypes.CDLL(None, use_errno=True).prctl(option, *values):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")

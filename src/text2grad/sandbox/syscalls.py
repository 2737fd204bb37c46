"""Numbers of the system calls that the sandbox restricts: (x86_64, aarch64), None where an architecture has none."""

from __future__ import annotations

Numbers = tuple[int | None, int | None]

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # (index in Numbers, audit number)
FIRST_UNKNOWN = 452  # numbers from here on are newer than these tables, on both architectures

# Memory that no limit on a process counts.
_MEMORY: dict[str, Numbers] = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "vmsplice": (278, 75),
    "splice": (275, 76),
    "tee": (276, 77),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "landlock_create_ruleset": (444, 444),
    "seccomp": (317, 277),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "remap_file_pages": (216, 234),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}

# Sockets; `socketpair` stays, because asyncio needs one. Buffers would not be counted, nor would files in messages.
_NETWORK: dict[str, Numbers] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "setsockopt": (54, 208),
}

# Other processes, other namespaces, the machine.
_SYSTEM: dict[str, Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}

DENIED = _MEMORY | _NETWORK | _SYSTEM

# Libraries fall back to older calls where these do not exist; the flags of `clone3` and `openat2` cannot be inspected.
ABSENT: dict[str, Numbers] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
}

# The supervisor decides about these.
FORKS: dict[str, Numbers] = {"fork": (57, None), "vfork": (58, None)}
NEW_FILES: dict[str, Numbers] = {
    "creat": (85, None),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "renameat2": (316, 276),
}
SOCKETPAIR: Numbers = (53, 199)

# These are decided by their arguments.
CLONE: Numbers = (56, 220)
OPEN: Numbers = (2, None)
OPENAT: Numbers = (257, 56)
SETRLIMIT: Numbers = (160, 164)
PRLIMIT: Numbers = (302, 261)
FCNTL: Numbers = (72, 25)
IOCTL: Numbers = (16, 29)
SECCOMP: Numbers = _MEMORY["seccomp"]

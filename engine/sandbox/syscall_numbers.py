"""Numbers of the system calls that the filter names, for x86_64 and aarch64.

None where an architecture has no such call. x86_64 was run; aarch64 is taken from the generic table of
`asm-generic/unistd.h` and was not run. Calls since 424 have one number everywhere.
"""

from __future__ import annotations

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
"""AUDIT_ARCH of each, as a filter sees it."""

# fmt: off
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "perf_event_open": (298, 241), "bpf": (321, 280),
    "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "mount_setattr": (442, 442), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "open_tree_attr": (467, 467), "statmount": (457, 457), "listmount": (458, 458), "listns": (470, 470),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161),
    "setdomainname": (171, 162), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "syslog": (103, 116), "iopl": (172, None), "ioperm": (173, None), "vhangup": (153, 58),
    "uselib": (134, None), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "modify_ldt": (154, None),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27), "setns": (308, 268), "unshare": (272, 97), "clone": (56, 220),
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "prlimit64": (302, 261), "setpriority": (141, 140),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "ioprio_set": (251, 30), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "clock_settime": (227, 112), "settimeofday": (164, 170), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "pidfd_send_signal": (424, 424), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "socket": (41, 198), "socketpair": (53, 199), "listen": (50, 201), "sendto": (44, 206),
    "sendmsg": (46, 211), "sendmmsg": (307, 269), "setsockopt": (54, 208), "ioctl": (16, 29),
    "fcntl": (72, 25), "openat2": (437, 437), "open": (2, None), "openat": (257, 56), "creat": (85, None),
    "mknod": (133, None), "mknodat": (259, 33), "truncate": (76, 45), "chmod": (90, None), "fchmod": (91, 52),
    "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
    "getxattrat": (464, 464), "listxattrat": (465, 465), "file_getattr": (468, 468), "pidfd_open": (434, 434),
}
# fmt: on


class Numbers:
    """The numbers of one architecture."""

    def __init__(self, machine: str) -> None:
        """Choose by `os.uname().machine`; KeyError for one that has no table."""
        self.architecture, column = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1)}[machine]
        self._by_name = {name: numbers[column] for name, numbers in NUMBERS.items()}

    def of(self, names: str) -> list[int]:
        """The numbers of calls, named in one string; those that do not exist here are left out."""
        return [number for name in names.split() if (number := self._by_name[name]) is not None]


MACHINES = ("x86_64", "aarch64")

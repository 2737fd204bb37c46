"""Programs that attack what the sandbox protects: files, processes, the network, the kernel.

They report by `through(what)` what they reached. `HOST` has what is to be reached: paths, ports and process ids of the
machine outside. `NUMBER` has the numbers of system calls. A program that gets nowhere prints nothing, however it ends.
"""

from __future__ import annotations

READ = {
    "a file of another folder": r"""
if HOST["secret"] in reads(HOST["secret_file"]).decode():
    through("the secret")
""",
    "the home folder": r"""
reads(HOST["home_file"])
[reads(os.path.join(HOST["home"], ".ssh", n)) for n in ("id_rsa", "config")]
""",
    "names in the home folder": r"""
names = set(attempt(os.listdir, HOST["home"]) or ()) - set(HOST["shown_in_home"])
if names and HOST["home"] != "/":
    through(str(names))
""",
    "the folder that Python is installed in": r"""
for prefix in {sys.base_prefix, os.path.dirname(os.path.dirname(sys.executable))} - {"/", "/usr"}:
    names = set(os.listdir(prefix)) - {"bin", "lib", "lib64"}
    if names:
        through(str(names))
""",
    "other programs beside the interpreter": r"""
if len(os.listdir(os.path.dirname(sys.executable))) > 1:
    through(str(os.listdir(os.path.dirname(sys.executable))[:9]))
""",
    "accounts and passwords": r"""
[reads(path) for path in ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/sudoers")]
""",
    "configuration and logs": r"""
[through(path) for path in ("/var", "/root/.bashrc", "/opt", "/srv", "/run") if os.path.exists(path)]
""",
    "the environment": r"""
if HOST["secret"] in str(dict(os.environ)):
    through("os.environ")
for name in os.listdir("/proc"):
    if name.isdigit() and HOST["secret"].encode() in (attempt(read, f"/proc/{name}/environ") or b""):
        through(name)
""",
    "command lines of other processes": r"""
own = [name for name in os.listdir("/proc") if name.isdigit() and name not in ("1", str(os.getpid()))]
if own:
    through(str(own))
if HOST["secret"].encode() in read("/proc/1/cmdline"):
    through("the secret")
""",
    "the first process": r"""
[reads(f"/proc/1/{name}") for name in ("environ", "maps", "mem", "auxv", "stack", "syscall")]
""",
    "files of the first process": r"""
for number in range(64):
    with contextlib.suppress(OSError):
        through(os.readlink(f"/proc/1/fd/{number}"))
""",
    "the root of the first process": r"""
if attempt(os.listdir, "/proc/1/root/" + HOST["folder"]):
    through("listed")
""",
    "the working folder of the first process": r"""
if attempt(os.listdir, "/proc/1/cwd"):
    through("listed")
""",
    "inherited descriptors": r"""
for number in range(3, 1024):
    with contextlib.suppress(OSError):
        name = os.readlink(f"/proc/self/fd/{number}")
        if not name.startswith("/proc"):
            through(name)
""",
    "a path with many parents": r"""
reads("../" * 40 + HOST["secret_file"].lstrip("/"))
""",
    "a symbolic link": r"""
os.symlink(HOST["secret_file"], "link")
reads("link")
""",
    "a hard link": r"""
attempt(os.link, HOST["secret_file"], "link")
reads("link")
""",
    "a file handle": r"""
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
if call("name_to_handle_at", -100, b"/usr/lib", handle, ctypes.byref(mount), 0) == 0:
    root = os.open("/usr/lib", os.O_RDONLY)
    if call("open_by_handle_at", root, handle, os.O_RDONLY) >= 0:
        through("opened a handle")
""",
    "disks and kernel memory": r"""
[reads(f"/dev/{name}") for name in ("mem", "kmem", "port", "sda", "vda", "nvme0n1", "kmsg")]
reads("/proc/kcore")
""",
    "a disk by a new device file": r"""
for device in HOST["disks"]:
    with contextlib.suppress(OSError):
        os.mknod("disk", 0o60666, os.makedev(*device))
        reads("disk")
""",
    "the system's settings in /sys": r"""
if os.path.exists("/sys/kernel"):
    through("/sys")
""",
    "the kernel's log": r"""
if libc.klogctl(3, ctypes.create_string_buffer(4096), 4096) > 0:
    through("syslog")
""",
    "what the last program left": r"""
for root in (".", "/tmp", "/dev/shm", "/var/tmp"):
    reads(os.path.join(root, "left"))
""",
}

WRITE = {
    "a file in another folder": r"""
attempt(open(HOST["canary"], "w").write, "overwritten")
""",
    "new files all over": r"""
for folder in (
    "/",
    "/usr",
    "/usr/lib",
    "/etc",
    "/dev",
    "/proc",
    "/lib",
    os.path.dirname(sys.executable),
    *sys.path[1:],
):
    with contextlib.suppress(OSError):
        open(os.path.join(folder, "attack.py"), "w").close()
        if folder:
            through(folder)
""",
    "the standard library": r"""
with contextlib.suppress(OSError):
    open(os.__file__, "a").close()
    through(os.__file__)
""",
    "the interpreter": r"""
with contextlib.suppress(OSError):
    open(sys.executable, "r+b").close()
    through(sys.executable)
""",
    "modes and owners": r"""
for action, arguments in ((os.chmod, (0o777,)), (os.chown, (os.getuid(), os.getgid())), (os.utime, ())):
    with contextlib.suppress(OSError):
        action(os.__file__, *arguments)
        through(action.__name__)
""",
    "a link that the host follows": r"""
os.symlink(HOST["canary"], "main.py.new")
os.replace("main.py.new", "main.py")
attempt(open("main.py", "w").write, "overwritten")
""",
    "settings of the kernel": r"""
for name in (
    "kernel/core_pattern",
    "kernel/hostname",
    "vm/overcommit_memory",
    "kernel/sysrq",
    "fs/pipe-max-size",
    "net/ipv4/ip_forward",
):
    with contextlib.suppress(OSError):
        value = read("/proc/sys/" + name)
        open("/proc/sys/" + name, "wb").write(value)
        through(name)
with contextlib.suppress(OSError):
    open("/proc/sysrq-trigger", "w").write("h")
    through("sysrq")
""",
    "all descriptors": r"""
import marshal

report = marshal.dumps({"termination": "exit", "code": 77, "cpu_seconds": -1.0, "peak_memory": -1})
for number in [0, *range(3, 1024)]:
    attempt(os.write, number, report)
for number in range(64):
    with contextlib.suppress(OSError):
        os.write(os.open(f"/proc/1/fd/{number}", os.O_WRONLY), report)
""",
    "the input of the next program": r"""
with contextlib.suppress(OSError):
    os.write(0, b"x")
    through("wrote")
with contextlib.suppress(OSError):
    os.ftruncate(0, 1 << 20)
    through("grew")
""",
}

ESCAPE = {
    "mounting": r"""
for arguments in (
    (b"tmpfs", b"/scratch", b"tmpfs", 0, None),
    (b"/", b"/scratch", None, 4096, None),
    (None, b"/", None, 32 | 4096, None),
):
    if call("mount", *arguments) == 0:
        through("mount")
if call("umount2", b"/proc", 2) == 0:
    through("umount")
""",
    "the new mount calls": r"""
for name, arguments in (("fsopen", (b"tmpfs", 0)), ("open_tree", (-100, b"/", 1)), ("fspick", (-100, b"/", 0))):
    if call(name, *arguments) >= 0:
        through(name)
""",
    "chroot": r"""
os.mkdir("d")
if call("chroot", b"d") == 0:
    through("chroot")
""",
    "pivot_root": r"""
os.mkdir("d")
if call("pivot_root", b".", b"d") == 0:
    through("pivot_root")
""",
    "a user namespace": r"""
if call("unshare", 0x10000000) == 0:
    through("user namespace")
""",
    "other namespaces": r"""
[
    through(hex(flag))
    for flag in (0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000, 0x2000000)
    if call("unshare", flag) == 0
]
""",
    "a user namespace by clone": r"""
result = call("clone", 0x10000000 | 17, 0, 0, 0, 0)
if result == 0:
    os._exit(0)
if result > 0:
    through("user namespace")
""",
    "a user namespace by clone3": r"""
arguments = ctypes.create_string_buffer(struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
result = call("clone3", arguments, 88)
if result == 0:
    os._exit(0)
if result > 0:
    through("user namespace")
""",
    "a sibling by clone": r"""
result = call("clone", 0x8000 | 17, 0, 0, 0, 0)
if result == 0:
    time.sleep(9)
    os._exit(0)
if result > 0:
    through("child of the supervisor")
""",
    "namespaces of the first process": r"""
for name in ("mnt", "net", "pid", "user", "ipc"):
    with contextlib.suppress(OSError):
        if call("setns", os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0) == 0:
            through(name)
""",
    "becoming root": r"""
for action in (os.setuid, os.setgid, os.seteuid):
    with contextlib.suppress(OSError):
        action(0)
        through(action.__name__)
with contextlib.suppress(OSError):
    os.setgroups([0])
    through("setgroups")
if 0 in os.getresuid():
    through("root")
""",
    "capabilities": r"""
for line in open("/proc/self/status"):
    if line.startswith(("CapEff", "CapPrm", "CapAmb", "CapInh")) and int(line.split()[1], 16):
        through(line)
    if line.startswith("NoNewPrivs") and line.split()[1] != "1":
        through(line)
""",
    "a program with the set-user-id bit": r"""
import shutil

shutil.copyfile(sys.executable, "root")
os.chmod("root", 0o6755)
done = subprocess.run(["./root", "-S", "-c", "import os; print(os.getresuid())"], capture_output=True, text=True)
if "0" in done.stdout.replace(",", "").strip("()\n").split():
    through(done.stdout)
""",
    "programs of the system": r"""
[
    through(path)
    for path in (
        "/bin/sh",
        "/bin/su",
        "/usr/bin/sudo",
        "/usr/bin/mount",
        "/bin/busybox",
        "/usr/bin/python3",
        "/usr/bin/gcc",
    )
    if os.path.exists(path) and os.path.realpath(path) != sys.executable
]
""",
    "set-user-id programs of the system": r"""
end = time.monotonic() + 1
for folder in (os.path.dirname(sys.executable), "/usr/lib"):
    for root, _, names in os.walk(folder):
        for name in names if time.monotonic() < end else ():
            with contextlib.suppress(OSError):
                path = os.path.join(root, name)
                if os.lstat(path).st_mode & 0o4000 and not os.statvfs(path).f_flag & os.ST_NOSUID:
                    through(path)
""",
    "an interpreter with LD_PRELOAD": r"""
env = {"LD_PRELOAD": "/scratch/x.so", "PYTHONPATH": "/scratch", "PYTHONSTARTUP": "/scratch/main.py"}
done = subprocess.run(
    [sys.executable, "-c", "import os; print(os.path.exists('/etc/passwd'))"],
    env=env,
    capture_output=True,
    text=True,
)
if "True" in done.stdout:
    through("outside")
""",
    "tracing the first process": r"""
if libc.ptrace(16, 1, 0, 0) == 0 or libc.ptrace(0x4206, 1, 0, 0) == 0:
    through("ptrace")
""",
    "memory of the first process": r"""
buffer = ctypes.create_string_buffer(64)
local = struct.pack("QQ", ctypes.addressof(buffer), 64)
remote = struct.pack("QQ", 0x400000, 64)
if call("process_vm_readv", 1, local, 1, remote, 1, 0) > 0:
    through("read")
if call("process_vm_writev", 1, local, 1, remote, 1, 0) > 0:
    through("written")
with contextlib.suppress(OSError):
    open("/proc/1/mem", "r+b").close()
    through("/proc/1/mem")
""",
    "descriptors of the first process": r"""
for number in range(16):
    if call("pidfd_getfd", os.pidfd_open(1), number, 0) >= 0:
        through(str(number))
""",
    "limits of the first process": r"""
import resource

for kind in range(16):
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(1, kind, (0, 0))
        through(str(kind))
with contextlib.suppress(OSError):
    open("/proc/1/oom_score_adj", "w").write("1000")
    through("oom_score_adj")
""",
    "the priority of the first process": r"""
with contextlib.suppress(OSError):
    os.setpriority(os.PRIO_PROCESS, 1, 19)
    through("nice")
with contextlib.suppress(OSError):
    os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))
    through("idle")
with contextlib.suppress(OSError):
    os.sched_setaffinity(1, [0])
    through("affinity")
if call("ioprio_set", 1, 1, 3 << 13) == 0:
    through("input and output")
""",
    "the scratch folder under the first process": r"""
for mode in (0, 0o777):
    attempt(os.chmod, os.getcwd(), mode)
    attempt(os.fork)
    attempt(os.mkdir, "d")
attempt(os.rmdir, os.getcwd())
attempt(os.rename, os.getcwd(), "/moved")
time.sleep(0.1)
""",
    "names that the first process parses": r"""
for name in (b") R 1 (", b"\n\n\n", b"\xff\xfe", b"VmPTE: 9 kB", b") Z 0 0 0"):
    libc.prctl(15, name, 0, 0, 0)
    attempt(os.fork)
    time.sleep(0.03)
""",
    "higher limits": r"""
import resource

for kind in (
    resource.RLIMIT_AS,
    resource.RLIMIT_NPROC,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_CORE,
    resource.RLIMIT_CPU,
):
    soft, hard = resource.getrlimit(kind)
    for bounds in ((-1, -1), (hard + 1, hard + 1)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, bounds)
            through(str(kind))
with contextlib.suppress(OSError):
    resource.prlimit(0, resource.RLIMIT_AS, resource.getrlimit(resource.RLIMIT_AS))
    through("address space")
""",
    "removing the filter": r"""
libc.prctl(22, 0, 0, 0, 0)
libc.prctl(22, 2, 0, 0, 0)
if call("seccomp", 0, 0, 0) == 0 or call("memfd_create", b"x", 0) >= 0:
    through("filter")
if libc.prctl(38, 0, 0, 0, 0) == 0:
    through("no_new_privs")
""",
    "a filter of its own with a listener": r"""
program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)))
if call("seccomp", 1, 8, header) >= 0:
    through("listener")
""",
    "32-bit system calls": r"""
if os.uname().machine == "x86_64":
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex("b814000000cd80c3"))  # getpid of the 32-bit kernel interface
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid():
        through("32-bit calls are not filtered")
""",
    "the x32 system calls": r"""
if call("memfd_create_x32", b"x", 0) >= 0:
    through("x32 calls are not filtered")
""",
    "system calls that nobody knows": r"""
for number in range(452, 600):
    NUMBER["unknown"] = number
    call("unknown", 0, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != 0 and ctypes.get_errno() != 38:
        through(str(number))
""",
}

NETWORK = {
    "TCP to the host": r"""
socket.create_connection(("127.0.0.1", HOST["tcp"]), 1)
through("connected")
""",
    "TCP over IPv6": r"""
socket.create_connection(("::1", HOST["tcp"]), 1)
through("connected")
""",
    "UDP to the host": r"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"attack", ("127.0.0.1", HOST["udp"]))
""",
    "a Unix socket of the host": r"""
s = socket.socket(socket.AF_UNIX)
s.connect(HOST["unix"])
through("connected")
""",
    "an abstract Unix socket of the host": r"""
s = socket.socket(socket.AF_UNIX)
s.connect("\0" + HOST["abstract"])
through("connected")
""",
    "a pair of sockets as a way out": r"""
a, b = socket.socketpair()
for target in (("127.0.0.1", HOST["tcp"]), HOST["unix"], "\0" + HOST["abstract"]):
    with contextlib.suppress(OSError, TypeError):
        a.connect(target)
        through(str(target))
with contextlib.suppress(OSError):
    a.bind("\0attack")
    through("bound")
""",
    "names": r"""
through(socket.getaddrinfo("example.com", 80))
""",
    "raw, packet, netlink and other sockets": r"""
for family in range(46):
    for kind in (1, 2, 3, 5):
        with contextlib.suppress(OSError):
            socket.socket(family, kind)
            through(f"family {family}")
""",
    "a server": r"""
s = socket.socket()
s.bind(("0.0.0.0", 0))
s.listen()
through("listening")
""",
    "interfaces": r"""
names = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
if names != ["lo"]:
    through(str(names))
""",
    "io_uring": r"""
if call("io_uring_setup", 8, ctypes.create_string_buffer(120)) >= 0:
    through("io_uring")
""",
}

KERNEL = {
    "the keyring": r"""
if call("add_key", b"user", b"attack", b"secret", 6, -3) >= 0 or call("keyctl", 0, -3, 1) >= 0:
    through("keyring")
""",
    "bpf": r"""
if call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 8, 1) + bytes(104)), 120) >= 0:
    through("bpf")
""",
    "performance counters": r"""
if call("perf_event_open", ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(104)), 0, -1, -1, 0) >= 0:
    through("perf")
""",
    "userfaultfd": r"""
if call("userfaultfd", 1) >= 0 or call("userfaultfd", 0) >= 0:
    through("userfaultfd")
""",
    "kernel modules": r"""
if call("init_module", b"", 0, b"") == 0 or call("delete_module", b"dummy", 0) == 0:
    through("modules")
""",
    "another kernel": r"""
if call("kexec_load", 0, 0, 0, 0) == 0:
    through("kexec")
""",
    "reboot": r"""
if call("reboot", 0xFEE1DEAD, 672274793, 0, 0) == 0:
    through("reboot")
""",
    "swap and accounting": r"""
if call("swapon", b"/scratch/main.py", 0) == 0 or call("acct", 0) == 0:
    through("swap")
""",
    "the clock": r"""
now = time.time()
with contextlib.suppress(OSError):
    time.clock_settime(time.CLOCK_REALTIME, now)
    through("clock")
if call("settimeofday", struct.pack("qq", int(now), 0), 0) == 0:
    through("settimeofday")
""",
    "the host's name": r"""
call("sethostname", b"attacked", 8)
""",
    "priority": r"""
with contextlib.suppress(OSError):
    os.nice(-1)
    through("nice")
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    through("real time")
""",
    "the terminal": r"""
import fcntl

for name in ("/dev/tty", "/dev/console", "/dev/pts/0", "/dev/pts/ptmx", "/dev/ptmx", "/dev/tty0"):
    with contextlib.suppress(OSError):
        fcntl.ioctl(os.open(name, os.O_RDWR), 0x5412, b"x")
        through(name)
for number in range(3):
    with contextlib.suppress(OSError):
        fcntl.ioctl(number, 0x5412, b"x")
        through(str(number))
""",
    "input and output ports": r"""
if "iopl" in NUMBER and (call("iopl", 3) == 0 or call("ioperm", 0, 8, 1) == 0):
    through("ports")
""",
    "personality": r"""
if call("personality", 0x0400000) >= 0:
    through("personality")
""",
    "shared memory of System V": r"""
if call("shmget", 0, MIB, 0o1600) >= 0 or call("semget", 0, 1, 0o1600) >= 0 or call("msgget", 0, 0o1600) >= 0:
    through("System V")
""",
    "message queues": r"""
if call("mq_open", b"attack", 0o102, 0o600, 0) >= 0:
    through("queue")
""",
    "signals to the host": r"""
for pid in (HOST["bystander"], HOST["parent"], -1):
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL) if pid != -1 else None
for pid in range(2, 70000):
    if pid != os.getpid():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
os.kill(-1, signal.SIGKILL)
""",
    "the first process by signals": r"""
for number in signal.valid_signals():
    with contextlib.suppress(OSError):
        os.kill(1, number)
time.sleep(0.1)
with contextlib.suppress(OSError):
    os.kill(1, 0)
    read("/proc/1/stat") or through("gone")
""",
    "a core dump": r"""
import resource

attempt(resource.setrlimit, resource.RLIMIT_CORE, (-1, -1))
os.abort()
""",
}

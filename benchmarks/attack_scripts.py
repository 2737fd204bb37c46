"""Programs that attack the sandbox: they report by `through(what)` what they reached, and by `held()` each MiB they hold.

`HOST` has what is to be reached: paths, ports and process ids of the machine outside. `NUMBER` has the numbers of system
calls. A program that gets nowhere prints nothing, however it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """
import contextlib, ctypes, mmap, os, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20
def through(what): os.write(1, f"THROUGH {what}\\n".encode())
def held(): os.write(1, b"m")
def call(name, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    libc.syscall.restype = ctypes.c_long
    return libc.syscall(ctypes.c_long(NUMBER[name]), *values)
def attempt(action, *arguments):
    with contextlib.suppress(Exception):
        return action(*arguments)
def read(path, size=1 << 16):
    with open(path, "rb") as file:
        return file.read(size)
def reads(path):
    data = attempt(read, path)
    if data:
        through(f"read {path}")
    return data or b""
def grow(seconds=9, dirty=True):
    kept, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            kept.append(mmap.mmap(-1, MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            kept[-1].write(bytes([len(kept) % 255 + 1]) * MIB)
            held()
        except (OSError, MemoryError, ValueError):
            time.sleep(0.05)
def fork_until(most):
    for _ in range(most):
        if attempt(os.fork) is None:
            return
"""


@dataclass(frozen=True)
class Attack:
    """A program, what it goes for, and the name it has in the table; `first` runs before it in a sandbox of its own."""

    kind: str
    name: str
    source: str
    first: str = ""


_READ = {
    "a file of another folder": "if HOST['secret'] in reads(HOST['secret_file']).decode(): through('the secret')",
    "the home folder": "reads(HOST['home_file']); [reads(os.path.join(HOST['home'], '.ssh', n)) for n in ('id_rsa', 'config')]",
    "names in the home folder": """
names = set(attempt(os.listdir, HOST["home"]) or ()) - set(HOST["shown_in_home"])
if names and HOST["home"] != "/": through(str(names))
""",
    "the folder that Python is installed in": """
for prefix in {sys.base_prefix, os.path.dirname(os.path.dirname(sys.executable))} - {"/", "/usr"}:
    names = set(os.listdir(prefix)) - {"bin", "lib", "lib64"}
    if names: through(str(names))
""",
    "other programs beside the interpreter": """
if len(os.listdir(os.path.dirname(sys.executable))) > 1: through(str(os.listdir(os.path.dirname(sys.executable))[:9]))
""",
    "accounts and passwords": "[reads(path) for path in ('/etc/passwd', '/etc/shadow', '/etc/group', '/etc/sudoers')]",
    "configuration and logs": "[through(path) for path in ('/var', '/root/.bashrc', '/opt', '/srv', '/run') if os.path.exists(path)]",
    "the environment": """
if HOST["secret"] in str(dict(os.environ)): through("os.environ")
for name in os.listdir("/proc"):
    if name.isdigit() and HOST["secret"].encode() in (attempt(read, f"/proc/{name}/environ") or b""): through(name)
""",
    "command lines of other processes": """
own = [name for name in os.listdir("/proc") if name.isdigit() and name not in ("1", str(os.getpid()))]
if own: through(str(own))
if HOST["secret"].encode() in read("/proc/1/cmdline"): through("the secret")
""",
    "the first process": "[reads(f'/proc/1/{name}') for name in ('environ', 'maps', 'mem', 'auxv', 'stack', 'syscall')]",
    "files of the first process": """
for number in range(64):
    with contextlib.suppress(OSError): through(os.readlink(f"/proc/1/fd/{number}"))
""",
    "the root of the first process": "if attempt(os.listdir, '/proc/1/root/' + HOST['folder']): through('listed')",
    "the working folder of the first process": "if attempt(os.listdir, '/proc/1/cwd'): through('listed')",
    "inherited descriptors": """
for number in range(3, 1024):
    with contextlib.suppress(OSError):
        name = os.readlink(f"/proc/self/fd/{number}")
        if not name.startswith("/proc"): through(name)
""",
    "a path with many parents": "reads('../' * 40 + HOST['secret_file'].lstrip('/'))",
    "a symbolic link": "os.symlink(HOST['secret_file'], 'link'); reads('link')",
    "a hard link": "attempt(os.link, HOST['secret_file'], 'link'); reads('link')",
    "a file handle": """
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)); mount = ctypes.c_int()
if call("name_to_handle_at", -100, b"/usr/lib", handle, ctypes.byref(mount), 0) == 0:
    root = os.open("/usr/lib", os.O_RDONLY)
    if call("open_by_handle_at", root, handle, os.O_RDONLY) >= 0: through("opened a handle")
""",
    "disks and kernel memory": "[reads(f'/dev/{name}') for name in ('mem', 'kmem', 'port', 'sda', 'vda', 'nvme0n1', 'kmsg')]; reads('/proc/kcore')",
    "a disk by a new device file": """
for device in HOST["disks"]:
    with contextlib.suppress(OSError):
        os.mknod("disk", 0o60666, os.makedev(*device)); reads("disk")
""",
    "the system's settings in /sys": "if os.path.exists('/sys/kernel'): through('/sys')",
    "the kernel's log": "if libc.klogctl(3, ctypes.create_string_buffer(4096), 4096) > 0: through('syslog')",
    "what the last program left": "for root in ('.', '/tmp', '/dev/shm', '/var/tmp'): reads(os.path.join(root, 'left'))",
}

_WRITE = {
    "a file in another folder": "attempt(open(HOST['canary'], 'w').write, 'overwritten')",
    "new files all over": """
for folder in ("/", "/usr", "/usr/lib", "/etc", "/dev", "/proc", "/lib", os.path.dirname(sys.executable), *sys.path[1:]):
    with contextlib.suppress(OSError):
        open(os.path.join(folder, "attack.py"), "w").close()
        if folder: through(folder)
""",
    "the standard library": "with contextlib.suppress(OSError): open(os.__file__, 'a').close(); through(os.__file__)",
    "the interpreter": "with contextlib.suppress(OSError): open(sys.executable, 'r+b').close(); through(sys.executable)",
    "modes and owners": """
for action, arguments in ((os.chmod, (0o777,)), (os.chown, (os.getuid(), os.getgid())), (os.utime, ())):
    with contextlib.suppress(OSError): action(os.__file__, *arguments); through(action.__name__)
""",
    "a link that the host follows": "os.symlink(HOST['canary'], 'main.py.new'); os.replace('main.py.new', 'main.py'); attempt(open('main.py', 'w').write, 'overwritten')",
    "settings of the kernel": """
for name in ("kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory", "kernel/sysrq", "fs/pipe-max-size", "net/ipv4/ip_forward"):
    with contextlib.suppress(OSError):
        value = read("/proc/sys/" + name); open("/proc/sys/" + name, "wb").write(value); through(name)
with contextlib.suppress(OSError): open("/proc/sysrq-trigger", "w").write("h"); through("sysrq")
""",
    "all descriptors": """
import marshal
report = marshal.dumps({"termination": "exit", "code": 77, "cpu_seconds": -1.0, "peak_memory": -1})
for number in [0, *range(3, 1024)]:
    attempt(os.write, number, report)
for number in range(64):
    with contextlib.suppress(OSError): os.write(os.open(f"/proc/1/fd/{number}", os.O_WRONLY), report)
""",
    "the input of the next program": "with contextlib.suppress(OSError): os.write(0, b'x'); through('wrote'); \nwith contextlib.suppress(OSError): os.ftruncate(0, 1 << 20); through('grew')",
}

_ESCAPE = {
    "mounting": """
for arguments in ((b"tmpfs", b"/scratch", b"tmpfs", 0, None), (b"/", b"/scratch", None, 4096, None), (None, b"/", None, 32 | 4096, None)):
    if call("mount", *arguments) == 0: through("mount")
if call("umount2", b"/proc", 2) == 0: through("umount")
""",
    "the new mount calls": """
for name, arguments in (("fsopen", (b"tmpfs", 0)), ("open_tree", (-100, b"/", 1)), ("fspick", (-100, b"/", 0))):
    if call(name, *arguments) >= 0: through(name)
""",
    "chroot": "os.mkdir('d'); \nif call('chroot', b'd') == 0: through('chroot')",
    "pivot_root": "os.mkdir('d'); \nif call('pivot_root', b'.', b'd') == 0: through('pivot_root')",
    "a user namespace": "if call('unshare', 0x10000000) == 0: through('user namespace')",
    "other namespaces": "[through(hex(flag)) for flag in (0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000, 0x2000000) if call('unshare', flag) == 0]",
    "a user namespace by clone": """
result = call("clone", 0x10000000 | 17, 0, 0, 0, 0)
if result == 0: os._exit(0)
if result > 0: through("user namespace")
""",
    "a user namespace by clone3": """
arguments = ctypes.create_string_buffer(struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
result = call("clone3", arguments, 88)
if result == 0: os._exit(0)
if result > 0: through("user namespace")
""",
    "a sibling by clone": """
result = call("clone", 0x8000 | 17, 0, 0, 0, 0)
if result == 0: time.sleep(9); os._exit(0)
if result > 0: through("child of the supervisor")
""",
    "namespaces of the first process": """
for name in ("mnt", "net", "pid", "user", "ipc"):
    with contextlib.suppress(OSError):
        if call("setns", os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0) == 0: through(name)
""",
    "becoming root": """
for action in (os.setuid, os.setgid, os.seteuid): 
    with contextlib.suppress(OSError): action(0); through(action.__name__)
with contextlib.suppress(OSError): os.setgroups([0]); through("setgroups")
if 0 in os.getresuid(): through("root")
""",
    "capabilities": """
for line in open("/proc/self/status"):
    if line.startswith(("CapEff", "CapPrm", "CapAmb", "CapInh")) and int(line.split()[1], 16): through(line)
    if line.startswith("NoNewPrivs") and line.split()[1] != "1": through(line)
""",
    "a program with the set-user-id bit": """
import shutil
shutil.copyfile(sys.executable, "root"); os.chmod("root", 0o6755)
done = subprocess.run(["./root", "-S", "-c", "import os; print(os.getresuid())"], capture_output=True, text=True)
if "0" in done.stdout.replace(",", "").strip("()\\n").split(): through(done.stdout)
""",
    "programs of the system": "[through(path) for path in ('/bin/sh', '/bin/su', '/usr/bin/sudo', '/usr/bin/mount', '/bin/busybox', '/usr/bin/python3', '/usr/bin/gcc') if os.path.exists(path) and os.path.realpath(path) != sys.executable]",
    "set-user-id programs of the system": """
end = time.monotonic() + 1
for folder in (os.path.dirname(sys.executable), "/usr/lib"):
    for root, _, names in os.walk(folder):
        for name in names if time.monotonic() < end else ():
            with contextlib.suppress(OSError):
                path = os.path.join(root, name)
                if os.lstat(path).st_mode & 0o4000 and not os.statvfs(path).f_flag & os.ST_NOSUID: through(path)
""",
    "an interpreter with LD_PRELOAD": """
env = {"LD_PRELOAD": "/scratch/x.so", "PYTHONPATH": "/scratch", "PYTHONSTARTUP": "/scratch/main.py"}
done = subprocess.run([sys.executable, "-c", "import os; print(os.path.exists('/etc/passwd'))"], env=env, capture_output=True, text=True)
if "True" in done.stdout: through("outside")
""",
    "tracing the first process": "if libc.ptrace(16, 1, 0, 0) == 0 or libc.ptrace(0x4206, 1, 0, 0) == 0: through('ptrace')",
    "memory of the first process": """
buffer = ctypes.create_string_buffer(64)
local = struct.pack("QQ", ctypes.addressof(buffer), 64); remote = struct.pack("QQ", 0x400000, 64)
if call("process_vm_readv", 1, local, 1, remote, 1, 0) > 0: through("read")
if call("process_vm_writev", 1, local, 1, remote, 1, 0) > 0: through("written")
with contextlib.suppress(OSError): open("/proc/1/mem", "r+b").close(); through("/proc/1/mem")
""",
    "descriptors of the first process": "for number in range(16):\n    if call('pidfd_getfd', os.pidfd_open(1), number, 0) >= 0: through(str(number))",
    "limits of the first process": """
import resource
for kind in range(16):
    with contextlib.suppress(OSError, ValueError): resource.prlimit(1, kind, (0, 0)); through(str(kind))
with contextlib.suppress(OSError): open("/proc/1/oom_score_adj", "w").write("1000"); through("oom_score_adj")
""",
    "higher limits": """
import resource
for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_CPU):
    soft, hard = resource.getrlimit(kind)
    for bounds in ((-1, -1), (hard + 1, hard + 1)):
        with contextlib.suppress(OSError, ValueError): resource.setrlimit(kind, bounds); through(str(kind))
with contextlib.suppress(OSError): resource.prlimit(0, resource.RLIMIT_AS, resource.getrlimit(resource.RLIMIT_AS)); through("address space")
""",
    "removing the filter": """
libc.prctl(22, 0, 0, 0, 0); libc.prctl(22, 2, 0, 0, 0)
if call("seccomp", 0, 0, 0) == 0 or call("memfd_create", b"x", 0) >= 0: through("filter")
if libc.prctl(38, 0, 0, 0, 0) == 0: through("no_new_privs")
""",
    "a filter of its own with a listener": """
program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)))
if call("seccomp", 1, 8, header) >= 0: through("listener")
""",
    "32-bit system calls": """
if os.uname().machine == "x86_64":
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex("b814000000cd80c3"))  # getpid of the 32-bit kernel interface
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid(): through("32-bit calls are not filtered")
""",
    "the x32 system calls": "if call('memfd_create_x32', b'x', 0) >= 0: through('x32 calls are not filtered')",
    "system calls that nobody knows": "for number in range(452, 600):\n    NUMBER['unknown'] = number\n    call('unknown', 0, 0, 0, 0, 0, 0)\n    if ctypes.get_errno() != 0 and ctypes.get_errno() != 38: through(str(number))",
}

_NETWORK = {
    "TCP to the host": "socket.create_connection(('127.0.0.1', HOST['tcp']), 1); through('connected')",
    "TCP over IPv6": "socket.create_connection(('::1', HOST['tcp']), 1); through('connected')",
    "UDP to the host": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'attack', ('127.0.0.1', HOST['udp']))",
    "a Unix socket of the host": "s = socket.socket(socket.AF_UNIX); s.connect(HOST['unix']); through('connected')",
    "an abstract Unix socket of the host": "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + HOST['abstract']); through('connected')",
    "a pair of sockets as a way out": """
a, b = socket.socketpair()
for target in (("127.0.0.1", HOST["tcp"]), HOST["unix"], "\\0" + HOST["abstract"]):
    with contextlib.suppress(OSError, TypeError): a.connect(target); through(str(target))
with contextlib.suppress(OSError): a.bind("\\0attack"); through("bound")
""",
    "names": "through(socket.getaddrinfo('example.com', 80))",
    "raw, packet, netlink and other sockets": """
for family in range(46):
    for kind in (1, 2, 3, 5):
        with contextlib.suppress(OSError): socket.socket(family, kind); through(f"family {family}")
""",
    "a server": "s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen(); through('listening')",
    "interfaces": "names = [line.split(':')[0].strip() for line in open('/proc/net/dev').readlines()[2:]]\nif names != ['lo']: through(str(names))",
    "io_uring": "if call('io_uring_setup', 8, ctypes.create_string_buffer(120)) >= 0: through('io_uring')",
}

_KERNEL = {
    "the keyring": "if call('add_key', b'user', b'attack', b'secret', 6, -3) >= 0 or call('keyctl', 0, -3, 1) >= 0: through('keyring')",
    "bpf": "if call('bpf', 0, ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 8, 1) + bytes(104)), 120) >= 0: through('bpf')",
    "performance counters": "if call('perf_event_open', ctypes.create_string_buffer(struct.pack('II', 1, 112) + bytes(104)), 0, -1, -1, 0) >= 0: through('perf')",
    "userfaultfd": "if call('userfaultfd', 1) >= 0 or call('userfaultfd', 0) >= 0: through('userfaultfd')",
    "kernel modules": "if call('init_module', b'', 0, b'') == 0 or call('delete_module', b'dummy', 0) == 0: through('modules')",
    "another kernel": "if call('kexec_load', 0, 0, 0, 0) == 0: through('kexec')",
    "reboot": "if call('reboot', 0xFEE1DEAD, 672274793, 0, 0) == 0: through('reboot')",
    "swap and accounting": "if call('swapon', b'/scratch/main.py', 0) == 0 or call('acct', 0) == 0: through('swap')",
    "the clock": """
now = time.time()
with contextlib.suppress(OSError): time.clock_settime(time.CLOCK_REALTIME, now); through("clock")
if call("settimeofday", struct.pack("qq", int(now), 0), 0) == 0: through("settimeofday")
""",
    "the host's name": "if call('sethostname', b'attacked', 8) == 0 and False: through('name')\nwith contextlib.suppress(OSError): socket.sethostname('attacked')",
    "priority": """
with contextlib.suppress(OSError): os.nice(-1); through("nice")
with contextlib.suppress(OSError): os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); through("real time")
""",
    "the terminal": """
import fcntl
for name in ("/dev/tty", "/dev/console", "/dev/pts/0", "/dev/pts/ptmx", "/dev/ptmx", "/dev/tty0"):
    with contextlib.suppress(OSError): fcntl.ioctl(os.open(name, os.O_RDWR), 0x5412, b"x"); through(name)
for number in range(3):
    with contextlib.suppress(OSError): fcntl.ioctl(number, 0x5412, b"x"); through(str(number))
""",
    "input and output ports": "if 'iopl' in NUMBER and (call('iopl', 3) == 0 or call('ioperm', 0, 8, 1) == 0): through('ports')",
    "personality": "if call('personality', 0x0400000) >= 0: through('personality')",
    "shared memory of System V": "if call('shmget', 0, MIB, 0o1600) >= 0 or call('semget', 0, 1, 0o1600) >= 0 or call('msgget', 0, 0o1600) >= 0: through('System V')",
    "message queues": "if call('mq_open', b'attack', 0o102, 0o600, 0) >= 0: through('queue')",
    "signals to the host": """
for pid in (HOST["bystander"], HOST["parent"], -1):
    with contextlib.suppress(OSError): os.kill(pid, signal.SIGKILL) if pid != -1 else None
for pid in range(2, 70000):
    if pid != os.getpid():
        with contextlib.suppress(OSError): os.kill(pid, signal.SIGKILL)
os.kill(-1, signal.SIGKILL)
""",
    "the first process by signals": """
for number in signal.valid_signals():
    with contextlib.suppress(OSError): os.kill(1, number)
time.sleep(0.1)
with contextlib.suppress(OSError): os.kill(1, 0); read("/proc/1/stat") or through("gone")
""",
    "a core dump": "import resource; attempt(resource.setrlimit, resource.RLIMIT_CORE, (-1, -1)); os.abort()",
}

_TIME = {
    "sleeping": "time.sleep(600)",
    "ignoring all signals": "for number in set(signal.valid_signals()) - {9, 19}: signal.signal(number, signal.SIG_IGN)\nwhile True: time.sleep(1)",
    "stopping itself and its parent": "attempt(os.kill, 1, signal.SIGSTOP)\nos.kill(0, signal.SIGSTOP)",
    "computing": "while True: pass",
    "computing in turns": """
while True:
    child = os.fork()
    if child == 0:
        end = time.process_time() + 0.05
        while time.process_time() < end: pass
        os._exit(0)
    os.waitpid(child, 0)
""",
    "computing in processes without a parent": """
for _ in range(6):
    if attempt(os.fork) == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        while True: pass
time.sleep(600)
""",
    "a process that stays": "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)', HOST['marker']], start_new_session=True)",
    "a stopped process that stays": """
child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)', HOST['marker']], start_new_session=True)
time.sleep(0.3); child.send_signal(signal.SIGSTOP)
""",
    "processes that start each other": """
code = "import os, sys, time\\nwhile True:\\n    try:\\n        if os.fork(): os._exit(0)\\n    except OSError: time.sleep(.001)"
subprocess.Popen([sys.executable, '-S', '-c', code, HOST['marker']], start_new_session=True)
time.sleep(0.5)
""",
    "open pipes after the end": "if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)",
}

_AMOUNT = {
    "a fork bomb": "while True:\n    attempt(os.fork)",
    "a vfork bomb": "while True: attempt(subprocess.Popen, [sys.executable, '-S', '-c', 'import time; time.sleep(9)'])",
    "a thread bomb": """
threading.stack_size(65536)
count = 0
with contextlib.suppress(RuntimeError):
    while count < HOST["max_processes"] + 8:
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start(); count += 1
if count > HOST["max_processes"]: through(f"{count} threads")
os._exit(0)
""",
    "the number of processes": """
count = 0
with contextlib.suppress(OSError):
    while True:
        if os.fork() == 0: time.sleep(1); os._exit(0)
        count += 1
if count > HOST["max_processes"]: through(f"{count} processes")
""",
    "a flood of output": "while True: os.write(1, b'x' * 65536)",
    "a flood of errors": "while True: os.write(2, b'x' * 65536)",
    "output that nobody reads": "os.set_blocking(1, False)\nwhile True: attempt(os.write, 1, b'y' * 4096)",
    "open files": """
count = 0
with contextlib.suppress(OSError):
    while True: os.open("main.py", os.O_RDONLY); count += 1
if count > 64: through(f"{count} files")
""",
    "one large file": "with open('big', 'wb') as f:\n    with contextlib.suppress(OSError):\n        while True: f.write(bytes(MIB)); f.flush()\nif os.path.getsize('big') > HOST['max_file_size']: through('size')",
    "many files": """
count = 0
with contextlib.suppress(OSError):
    while True: os.close(os.open(str(count), os.O_CREAT)); count += 1
if count > HOST["max_files"]: through(f"{count} files")
""",
    "many folders": """
count = 0
with contextlib.suppress(OSError):
    while True: os.mkdir("d"); os.chdir("d"); count += 1
if count > HOST["max_files"]: through(f"{count} folders")
""",
    "many links": """
count = 0
with contextlib.suppress(OSError):
    while True: (os.link("main.py", f"l{count}") if count % 2 else os.symlink("x" * 4000, f"s{count}")); count += 1
if count > HOST["max_files"]: through(f"{count} links")
""",
}

_MEMORY = {
    "one process": "grow()",
    "one large object": "x = bytearray(4 << 30); through('4 GiB')",
    "objects of Python": "x = []\nwith contextlib.suppress(MemoryError):\n    while True: x.append(bytes(MIB).replace(b'\\0', b'x')); held()\ntime.sleep(1)",
    "forked processes": "fork_until(4); grow(2)",
    "processes after processes": "while attempt(os.fork) is not None: pass\ngrow(2)",
    "executed processes": """
code = "import mmap, os, time\\nkept = []\\nwhile True:\\n    try:\\n        kept.append(mmap.mmap(-1, 1 << 20)); kept[-1].write(b'x' * (1 << 20)); os.write(1, b'm')\\n    except OSError: time.sleep(.05)"
for _ in range(8): attempt(subprocess.Popen, [sys.executable, "-S", "-c", code])
time.sleep(2)
""",
    "pages copied on writing": """
size = 40
block = mmap.mmap(-1, size * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(size): block[i * MIB:(i + 1) * MIB] = b"a" * MIB; held()
for _ in range(6): attempt(os.fork)
own = os.getpid() % 255
for i in range(size): block[i * MIB:(i + 1) * MIB] = bytes([own]) * MIB
time.sleep(2)
""",
    "memory made read-only": """
kept = []
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
with contextlib.suppress(OSError, ValueError):
    while True:
        kept.append(mmap.mmap(-1, MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)); kept[-1].write(b"x" * MIB); held()
        libc.mprotect(ctypes.addressof(ctypes.c_char.from_buffer(kept[-1])), MIB, 1)
grow(1)
""",
    "shared anonymous memory": """
fork_until(3); kept = []
end = time.monotonic() + 2
while time.monotonic() < end:
    try: kept.append(mmap.mmap(-1, MIB)); kept[-1].write(b"x" * MIB); held()
    except OSError: time.sleep(0.05)
""",
    "growing while forking": """
def churn():
    while True:
        with contextlib.suppress(OSError, MemoryError, ValueError):
            block = mmap.mmap(-1, 48 * MIB); time.sleep(0); block.close()
for _ in range(2): attempt(threading.Thread(target=churn, daemon=True).start)
for _ in range(40):
    attempt(os.fork)
grow(2)
""",
    "forks of many threads at once": """
def burst():
    for _ in range(4):
        if attempt(os.fork) == 0: grow(2); os._exit(0)
for _ in range(6): attempt(threading.Thread(target=burst).start)
time.sleep(2)
""",
    "memfd_create": """
while True:
    number = call("memfd_create", b"x", 0)
    if number < 0: break
    for _ in range(64): os.write(number, bytes(MIB)); held()
fork_until(2); grow(2)
""",
    "memfd_secret": "number = call('memfd_secret', 0)\nif number >= 0: os.ftruncate(number, 64 * MIB); through('memfd_secret')",
    "shared memory of POSIX": """
from multiprocessing import shared_memory
kept = []
with contextlib.suppress(OSError):
    for i in range(400):
        kept.append(shared_memory.SharedMemory(create=True, size=MIB)); kept[-1].buf[:] = b"x" * MIB; held()
grow(2)
os._exit(0)
""",
    "files and memory": """
with contextlib.suppress(OSError):
    for i in range(400):
        with open(f"f{i}", "wb") as file: file.write(b"x" * MIB)
        held()
fork_until(2); grow(2)
""",
    "deleted files": """
kept = []
with contextlib.suppress(OSError):
    for i in range(400):
        kept.append(open("f", "w+b", buffering=0)); os.unlink("f"); kept[-1].write(b"x" * MIB); held()
fork_until(2); grow(2)
""",
    "mapped files": """
with contextlib.suppress(OSError, ValueError):
    file = open("f", "w+b"); os.ftruncate(file.fileno(), 8 * MIB)
    block = mmap.mmap(file.fileno(), 8 * MIB)
    for i in range(8): block[i * MIB:(i + 1) * MIB] = b"x" * MIB; held()
grow(2)
""",
    "a file with holes": "with contextlib.suppress(OSError): os.truncate('main.py', 1 << 40); through('1 TiB')\ngrow(1)",
    "/dev/zero": """
fork_until(2); kept = []; number = os.open("/dev/zero", os.O_RDWR)
end = time.monotonic() + 2
while time.monotonic() < end:
    try: kept.append(mmap.mmap(number, MIB)); kept[-1].write(b"x" * MIB); held()
    except OSError: time.sleep(0.05)
""",
    "segments of System V": """
while True:
    key = call("shmget", 0, 64 * MIB, 0o1600)
    if key < 0: break
    for _ in range(64): held()
""",
    "pipes": """
import fcntl
fork_until(3); kept, size = [], 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        reader, writer = os.pipe()
        with contextlib.suppress(OSError): fcntl.fcntl(writer, 1031, MIB)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True: size += os.write(writer, bytes(65536))
        os.close(writer)
        while size >= MIB: size -= MIB; held()
    except OSError: time.sleep(0.05)
""",
    "pages given to pipes": """
reader, writer = os.pipe(); block = mmap.mmap(-1, 65536); block.write(b"x" * 65536)
vector = struct.pack("QQ", ctypes.addressof(ctypes.c_char.from_buffer(block)), 65536)
if call("vmsplice", writer, vector, 1, 2) > 0: through("vmsplice")
""",
    "buffers of sockets": """
fork_until(3); kept, size = [], 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        a, b = socket.socketpair(); kept += [a, b]
        with contextlib.suppress(OSError): a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * MIB)
        for one in (a, b):
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True: size += one.send(bytes(65536))
        while size >= MIB: size -= MIB; held()
    except OSError: time.sleep(0.05)
""",
    "sockets inside sockets": """
import array
with contextlib.suppress(OSError):
    while True:
        a, b = socket.socketpair()
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))]); through("sent a descriptor")
        break
""",
    "file locks": """
import fcntl
held_locks = 0
for number in range(40):
    file = os.open(f"f{number}", os.O_RDWR | os.O_CREAT)
    with contextlib.suppress(OSError):
        for i in range(3000):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * i); held_locks += 1
            if held_locks % 4096 == 0: held()
grow(1)
""",
    "access lists": """
import shutil
entries = b"".join(struct.pack("HHI", 2, 6, 10000 + i) for i in range(8000))
value = struct.pack("I", 2) + struct.pack("HHI", 1, 6, 0xFFFFFFFF) + entries + struct.pack("HHI", 4, 4, 0xFFFFFFFF) + struct.pack("HHI", 16, 6, 0xFFFFFFFF) + struct.pack("HHI", 32, 4, 0xFFFFFFFF)
for i in range(900):
    open(str(i), "w").close()
    with contextlib.suppress(OSError):
        os.setxattr(str(i), "system.posix_acl_access", value); through("access list")
        break
""",
    "watches": "number = call('inotify_init1', 0)\nif number >= 0: through('inotify')",
    "page tables": """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
pages = 0
for slot in range(1, 100000):
    address = slot << 30
    if libc.mmap(address, 4096, 3, 0x100022, -1, 0) == address:
        ctypes.memset(address, 1, 1); pages += 3
        if pages >= 256: pages -= 256; held()
grow(1)
""",
    "waiting signals": """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
count = 0
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
while count < 100000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0: count += 1
if count > 2000: through(f"{count} signals")
""",
    "locked memory": "libc.mlockall(3)\nfork_until(2); grow(2)",
    "asynchronous requests": "context = ctypes.c_ulong()\nif call('io_setup', 10000, ctypes.byref(context)) == 0: through('io_setup')",
}

ATTACKS = [
    Attack(kind, name, source, first="open('left', 'w').write('x'); open('/tmp/left', 'w')" if "left" in name else "")
    for kind, scripts in (
        ("read", _READ),
        ("write", _WRITE),
        ("escape", _ESCAPE),
        ("network", _NETWORK),
        ("kernel", _KERNEL),
        ("time", _TIME),
        ("amount", _AMOUNT),
        ("memory", _MEMORY),
    )
    for name, source in scripts.items()
]

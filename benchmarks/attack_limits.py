"""Programs that attack the limits of the sandbox: time, amounts, memory.

They report by `through(what)` which limit they passed, and by `held()` each MiB that they have written and keep.
"""

from __future__ import annotations

TIME = {
    "sleeping": r"""
time.sleep(600)
""",
    "ignoring all signals": r"""
for number in set(signal.valid_signals()) - {9, 19}:
    signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(1)
""",
    "stopping itself and its parent": r"""
attempt(os.kill, 1, signal.SIGSTOP)
os.kill(0, signal.SIGSTOP)
""",
    "computing": r"""
while True:
    pass
""",
    "computing in turns": r"""
while True:
    child = os.fork()
    if child == 0:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        os._exit(0)
    os.waitpid(child, 0)
""",
    "computing in processes without a parent": r"""
for _ in range(6):
    if attempt(os.fork) == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        while True:
            pass
time.sleep(600)
""",
    "a process that stays": r"""
subprocess.Popen(
    [sys.executable, "-S", "-c", "import time; time.sleep(600)", HOST["marker"]], start_new_session=True
)
""",
    "a stopped process that stays": r"""
child = subprocess.Popen(
    [sys.executable, "-S", "-c", "import time; time.sleep(600)", HOST["marker"]], start_new_session=True
)
time.sleep(0.3)
child.send_signal(signal.SIGSTOP)
""",
    "processes that start each other": r"""
code = '''
import os, time
while True:
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        time.sleep(0.001)
'''
subprocess.Popen([sys.executable, "-S", "-c", code, HOST["marker"]], start_new_session=True)
time.sleep(0.5)
""",
    "open pipes after the end": r"""
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
""",
}

AMOUNT = {
    "a fork bomb": r"""
while True:
    attempt(os.fork)
""",
    "a vfork bomb": r"""
while True:
    attempt(subprocess.Popen, [sys.executable, "-S", "-c", "import time; time.sleep(9)"])
""",
    "a thread bomb": r"""
threading.stack_size(65536)
count = 0
with contextlib.suppress(RuntimeError):
    while count < HOST["max_processes"] + 8:
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
        count += 1
if count > HOST["max_processes"]:
    through(f"{count} threads")
os._exit(0)
""",
    "the number of processes": r"""
count = 0
with contextlib.suppress(OSError):
    while True:
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
        count += 1
if count > HOST["max_processes"]:
    through(f"{count} processes")
""",
    "many files of many threads": r"""
count = 0


def create(name):
    global count
    with contextlib.suppress(OSError):
        for i in range(1000):
            os.close(os.open(f"{name}-{i}", os.O_CREAT))
            count += 1


for i in range(8):
    attempt(threading.Thread(target=create, args=(i,)).start)
time.sleep(1.5)
if len(os.listdir(".")) > HOST["max_files"]:
    through(str(len(os.listdir("."))))
""",
    "a flood of output": r"""
while True:
    os.write(1, b"x" * 65536)
""",
    "a flood of errors": r"""
while True:
    os.write(2, b"x" * 65536)
""",
    "output that nobody reads": r"""
os.set_blocking(1, False)
while True:
    attempt(os.write, 1, b"y" * 4096)
""",
    "open files": r"""
count = 0
with contextlib.suppress(OSError):
    while True:
        os.open("main.py", os.O_RDONLY)
        count += 1
if count > 64:
    through(f"{count} files")
""",
    "one large file": r"""
with open("big", "wb") as f:
    with contextlib.suppress(OSError):
        while True:
            f.write(bytes(MIB))
            f.flush()
if os.path.getsize("big") > HOST["max_file_size"]:
    through("size")
""",
    "many files": r"""
count = 0
with contextlib.suppress(OSError):
    while True:
        os.close(os.open(str(count), os.O_CREAT))
        count += 1
        if count == HOST["max_files"]:
            through(f"{count} files")
""",
    "many folders": r"""
count = 0
with contextlib.suppress(OSError):
    while True:
        os.mkdir("d")
        os.chdir("d")
        count += 1
        if count == HOST["max_files"]:
            through(f"{count} folders")
""",
    "many links": r"""
count = 0
with contextlib.suppress(OSError):
    while True:
        os.link("main.py", f"l{count}") if count % 2 else os.symlink("x" * 100, f"s{count}")
        count += 1
        if count == HOST["max_files"]:
            through(f"{count} links")
""",
}

MEMORY = {
    "one process": r"""
grow()
""",
    "one large object": r"""
x = bytearray(4 << 30)
through("4 GiB")
""",
    "objects of Python": r"""
x = []
with contextlib.suppress(MemoryError):
    while True:
        x.append(bytes(MIB).replace(b"\0", b"x"))
        held()
time.sleep(1)
""",
    "forked processes": r"""
fork_until(4)
grow(2)
""",
    "processes after processes": r"""
while attempt(os.fork) is not None:
    pass
grow(2)
""",
    "executed processes": r"""
code = '''
import mmap, os, time
kept = []
while True:
    try:
        kept.append(mmap.mmap(-1, 1 << 20))
        kept[-1].write(b"x" * (1 << 20))
        os.write(1, b"m")
    except OSError:
        time.sleep(0.05)
'''
for _ in range(8):
    attempt(subprocess.Popen, [sys.executable, "-S", "-c", code])
time.sleep(2)
""",
    "pages copied on writing": r"""
size = 40
block = mmap.mmap(-1, size * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(size):
    block[i * MIB : (i + 1) * MIB] = b"a" * MIB
    held()
for _ in range(6):
    attempt(os.fork)
own = os.getpid() % 255
for i in range(size):
    block[i * MIB : (i + 1) * MIB] = bytes([own]) * MIB
time.sleep(2)
""",
    "memory made read-only": r"""
kept = []
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
with contextlib.suppress(OSError, ValueError):
    while True:
        kept.append(mmap.mmap(-1, MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(b"x" * MIB)
        held()
        libc.mprotect(ctypes.addressof(ctypes.c_char.from_buffer(kept[-1])), MIB, 1)
grow(1)
""",
    "shared anonymous memory": r"""
fork_until(3)
kept = []
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        kept.append(mmap.mmap(-1, MIB))
        kept[-1].write(b"x" * MIB)
        held()
    except OSError:
        time.sleep(0.05)
""",
    "growing while forking": r"""
def churn():
    while True:
        with contextlib.suppress(OSError, MemoryError, ValueError):
            block = mmap.mmap(-1, 48 * MIB)
            time.sleep(0)
            block.close()


for _ in range(2):
    attempt(threading.Thread(target=churn, daemon=True).start)
for _ in range(40):
    attempt(os.fork)
grow(2)
""",
    "forks of many threads at once": r"""
def burst():
    for _ in range(4):
        if attempt(os.fork) == 0:
            grow(2)
            os._exit(0)


for _ in range(6):
    attempt(threading.Thread(target=burst).start)
time.sleep(2)
""",
    "memfd_create": r"""
while True:
    number = call("memfd_create", b"x", 0)
    if number < 0:
        break
    for _ in range(7):
        os.write(number, bytes(MIB))
        held()
fork_until(2)
grow(2)
""",
    "memfd_secret": r"""
number = call("memfd_secret", 0)
if number >= 0:
    os.ftruncate(number, 64 * MIB)
    through("memfd_secret")
""",
    "shared memory of POSIX": r"""
from multiprocessing import shared_memory

kept = []
with contextlib.suppress(OSError):
    for i in range(400):
        kept.append(shared_memory.SharedMemory(create=True, size=MIB))
        kept[-1].buf[:] = b"x" * MIB
        held()
grow(2)
os._exit(0)
""",
    "files and memory": r"""
with contextlib.suppress(OSError):
    for i in range(400):
        with open(f"f{i}", "wb") as file:
            file.write(b"x" * MIB)
        held()
fork_until(2)
grow(2)
""",
    "deleted files": r"""
kept = []
with contextlib.suppress(OSError):
    for i in range(400):
        kept.append(open("f", "w+b", buffering=0))
        os.unlink("f")
        kept[-1].write(b"x" * MIB)
        held()
fork_until(2)
grow(2)
""",
    "mapped files": r"""
with contextlib.suppress(OSError, ValueError):
    file = open("f", "w+b")
    os.ftruncate(file.fileno(), 8 * MIB)
    block = mmap.mmap(file.fileno(), 8 * MIB)
    for i in range(8):
        block[i * MIB : (i + 1) * MIB] = b"x" * MIB
        held()
grow(2)
""",
    "a file with holes": r"""
with contextlib.suppress(OSError):
    os.truncate("main.py", 1 << 40)
    through("1 TiB")
grow(1)
""",
    "/dev/zero": r"""
fork_until(2)
kept = []
number = os.open("/dev/zero", os.O_RDWR)
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        kept.append(mmap.mmap(number, MIB))
        kept[-1].write(b"x" * MIB)
        held()
    except OSError:
        time.sleep(0.05)
""",
    "segments of System V": r"""
while True:
    key = call("shmget", 0, 64 * MIB, 0o1600)
    if key < 0:
        break
    for _ in range(64):
        held()
""",
    "pipes": r"""
import fcntl

fork_until(3)
kept, size = [], 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        reader, writer = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(writer, 1031, MIB)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                size += os.write(writer, bytes(65536))
        os.close(writer)
        while size >= MIB:
            size -= MIB
            held()
    except OSError:
        time.sleep(0.05)
""",
    "pages given to pipes": r"""
reader, writer = os.pipe()
block = mmap.mmap(-1, 65536)
block.write(b"x" * 65536)
vector = struct.pack("QQ", ctypes.addressof(ctypes.c_char.from_buffer(block)), 65536)
if call("vmsplice", writer, vector, 1, 2) > 0:
    through("vmsplice")
""",
    "buffers of sockets": r"""
fork_until(3)
kept, size = [], 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        a, b = socket.socketpair()
        kept += [a, b]
        with contextlib.suppress(OSError):
            a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * MIB)
        for one in (a, b):
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    size += one.send(bytes(65536))
        while size >= MIB:
            size -= MIB
            held()
    except OSError:
        time.sleep(0.05)
""",
    "sockets inside sockets": r"""
import array

with contextlib.suppress(OSError):
    while True:
        a, b = socket.socketpair()
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno()]))])
        through("sent a descriptor")
        break
""",
    "file locks": r"""
import fcntl

held_locks = 0
for number in range(40):
    file = os.open(f"f{number}", os.O_RDWR | os.O_CREAT)
    with contextlib.suppress(OSError):
        for i in range(3000):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * i)
            held_locks += 1
            if held_locks % 4096 == 0:
                held()
grow(1)
""",
    "access lists": r"""
import shutil

entries = b"".join(struct.pack("HHI", 2, 6, 10000 + i) for i in range(8000))
value = (
    struct.pack("I", 2)
    + struct.pack("HHI", 1, 6, 0xFFFFFFFF)
    + entries
    + struct.pack("HHI", 4, 4, 0xFFFFFFFF)
    + struct.pack("HHI", 16, 6, 0xFFFFFFFF)
    + struct.pack("HHI", 32, 4, 0xFFFFFFFF)
)
for i in range(900):
    open(str(i), "w").close()
    with contextlib.suppress(OSError):
        os.setxattr(str(i), "system.posix_acl_access", value)
        through("access list")
        break
""",
    "watches": r"""
number = call("inotify_init1", 0)
if number >= 0:
    through("inotify")
""",
    "page tables": r"""
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
pages = 0
for slot in range(1, 100000):
    address = slot << 30
    if libc.mmap(address, 4096, 3, 0x100022, -1, 0) == address:
        ctypes.memset(address, 1, 1)
        pages += 3
        if pages >= 256:
            pages -= 256
            held()
grow(1)
""",
    "waiting signals": r"""
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
count = 0
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
while count < 100000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0:
    count += 1
if count > 2000:
    through(f"{count} signals")
""",
    "locked memory": r"""
libc.mlockall(3)
fork_until(2)
grow(2)
""",
    "asynchronous requests": r"""
context = ctypes.c_ulong()
if call("io_setup", 10000, ctypes.byref(context)) == 0:
    through("io_setup")
""",
}

"""A real `vllm serve` in a process group of its own, for the benchmark and the test that need one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self

START_SECONDS = 400.0
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "VLLM_SERVER_DEV_MODE": "1",
    "HF_HUB_OFFLINE": "1",
}


def find_vllm() -> str | None:
    """Return the `vllm` program: the one that TEXT2GRAD_VLLM names, else the one on the PATH."""
    return os.environ.get("TEXT2GRAD_VLLM") or shutil.which("vllm")


class VllmEngine:
    """A server of `model` in float32 on the CPU; it may be killed and started again at the same address."""

    def __init__(self, program: str, model: str | Path, log: Path, max_model_len: int = 1024) -> None:
        self.port = free_port()
        self.url, self.log = f"http://127.0.0.1:{self.port}", log
        self._command = [program, "serve", str(model), "--port", str(self.port), "--host", "127.0.0.1"]
        self._command += ["--dtype", "float32", "--enforce-eager", "--max-model-len", str(max_model_len)]
        self._command += ["--logprobs-mode", "processed_logprobs", "--enable-lora", "--max-lora-rank", "16"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server; it answers when its model is loaded."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=inherited | ENVIRONMENT, start_new_session=True
            )

    def wait(self) -> None:
        """Return when the server answers."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or (self._process is not None and self._process.poll() is not None):
                raise RuntimeError(f"vllm serve did not start:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(1)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
        except OSError:
            return False
        return True

    def running_requests(self) -> float:
        """Return how many requests the engine works on now."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running{"))

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the server and all its processes, and wait until they are gone."""
        if self._process is not None:
            os.killpg(self._process.pid, how)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
